"""Whether the service is there, for probes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.site import make_house


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probe_is_answered_by_the_store_and_fails_without_it(tmp_path: Path, path: str) -> None:
    """A probe is told ok while the history can be read, a server error when it cannot, and no cache keeps either."""
    house = make_house(tmp_path)
    try:
        found = house.client.get(path)
        assert (200, "ok\n", "no-store") == (found.status_code, found.text, found.headers["cache-control"])
        house.store.close()
        (tmp_path / "history.sqlite").write_bytes(b"\0" * 5000)
        assert 500 <= house.client.get(path).status_code
    finally:
        house.client.close()
        house.store.close()
