# make demo and make test need git, make and Python 3.11 or newer with venv; everything else is installed into .venv.

PYTHON ?= python3
UV ?= uv
VENV := .venv
BIN := $(VENV)/bin
# The worker processes of the test run; 0 runs all tests in one process.
JOBS ?= auto
BENCH ?=
WORLDS ?=
SIZE ?= small
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PIP := $(BIN)/python -m pip install --quiet --quiet --require-virtualenv
LOCK := $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-annotate \
	--custom-compile-command "make lock"

.PHONY: demo test lint types bench bench-full soak lock clean
.DELETE_ON_ERROR:

demo: $(VENV)/.ready-to-run
	$(BIN)/digestd demo $(if $(SERVE),--serve)

test: lint types
	$(BIN)/pytest -n $(JOBS) --dist loadfile

lint: $(VENV)/.ready-to-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.ready-to-test
	$(BIN)/mypy

# make bench BENCH=ingest runs one part.
bench: $(VENV)/.ready-to-test
	$(BIN)/python -m bench $(BENCH)

# All parts in one table, with histories up to a million papers and a peer: an hour.
bench-full: $(VENV)/.ready-to-test
	$(BIN)/python -m bench full

# make soak WORLDS=10000 lives through simulated worlds; SIZE=middle or year makes them longer. It goes on where it was stopped.
soak: $(VENV)/.ready-to-test
	$(BIN)/python -m $(if $(WORLDS),tests.world.soak $(WORLDS) $(SIZE),bench soak)

# Newest releases that pyproject.toml allows, with hashes; the second file repeats the versions of the first.
lock:
	@command -v $(UV) >/dev/null || { echo "make lock: uv is missing (python3 -m pip install uv)" >&2; exit 1; }
	$(LOCK) --upgrade --group build --output-file requirements.lock pyproject.toml
	$(LOCK) --upgrade --group dev --constraint requirements.lock --output-file requirements-dev.lock pyproject.toml

clean:
	rm -rf $(VENV) dist build htmlcov .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .soak
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is missing is said in one line, before anything is made.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "digestd needs Python 3.11 or newer: $(PYTHON) is missing" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v < (3, 11) and sys.exit( \
		"digestd needs Python 3.11 or newer: $(PYTHON) is %d.%d (name another one: make PYTHON=...)" % v[:2])'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "digestd needs the venv module of $(PYTHON) (Debian and Ubuntu: the package python3-venv)" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# The stamps make a second call fast; a changed lock file or pyproject.toml installs again.
$(VENV)/.ready-to-run: requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing what digestd needs"
	@$(PIP) --require-hashes --requirement requirements.lock
	@$(PIP) --no-deps --no-build-isolation --no-index --editable .
	@touch $@

$(VENV)/.ready-to-test: requirements-dev.lock $(VENV)/.ready-to-run
	@echo "installing what the tests need"
	@$(PIP) --require-hashes --requirement requirements-dev.lock
	@touch $@
