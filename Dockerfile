# digestd in a container. Not built by the tests, which have no container registry; the commands in it are.
# docker build -t digestd . && docker run -v ./config:/etc/digestd:ro -v digestd:/var/lib/digestd -p 127.0.0.1:8080:8080 digestd
FROM python:3.13-slim AS build
COPY . /src
RUN python -m venv /app \
    && /app/bin/pip install --no-cache-dir --require-hashes -r /src/requirements.lock \
    && /app/bin/pip install --no-cache-dir --no-deps --no-build-isolation /src

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/digestd --create-home digestd
COPY --from=build /app /app
ENV PATH=/app/bin:$PATH STATE_DIRECTORY=/var/lib/digestd DIGESTD_WEB__HOST=0.0.0.0 DIGESTD_WEB__PORT=8080
USER 10001
VOLUME /var/lib/digestd
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=10s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as web; web.urlopen('http://127.0.0.1:8080/healthz', timeout=5)"]
CMD ["digestd", "run"]
