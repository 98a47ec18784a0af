"""The hostile texts that other tests put in are many and different."""

from tests.vectors import vectors


def test_vectors_are_many() -> None:
    """There are at least 300 different ones."""
    found = list(vectors())
    assert len(set(found)) >= 300
