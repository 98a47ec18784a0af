"""Bounded decompression: what is made never exceeds the cap, and damage is never taken for an end."""

from __future__ import annotations

import gzip
import sys
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.watch.decompress import MAX_MEMBERS, DamagedError, Inflater, TooBigError, sniff, unpack

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CODINGS = st.sampled_from(["gzip", "zstd"])


def pack(data: bytes, coding: str) -> bytes:
    """Return packed bytes."""
    return gzip.compress(data, mtime=0) if coding == "gzip" else zstd.compress(data)


@settings(max_examples=60)
@given(coding=CODINGS, parts=st.lists(st.binary(max_size=3000), min_size=1, max_size=5), cut=st.integers(1, 700))
def test_unpack_any_split_gives_the_same(coding: str, parts: list[bytes], cut: int) -> None:
    """Members one after the other unpack to their sum, however the bytes arrive."""
    packed = b"".join(pack(part, coding) for part in parts)
    inflater = Inflater(coding, limit=100_000)
    for start in range(0, len(packed), cut):
        inflater.feed(packed[start : start + cut])
    assert b"".join(parts) == inflater.finish()


@settings(max_examples=60)
@given(coding=CODINGS, data=st.binary(min_size=1, max_size=2000), short=st.integers(0, 1999))
def test_unpack_limit_is_exact(coding: str, data: bytes, short: int) -> None:
    """A limit of the right size lets the data through, and any smaller one refuses it."""
    packed = pack(data, coding)
    assert data == unpack(packed, coding, limit=len(data))
    with pytest.raises(TooBigError):
        unpack(packed, coding, limit=min(short, len(data) - 1))


@settings(max_examples=60)
@given(coding=CODINGS, data=st.binary(min_size=1, max_size=500), kept=st.floats(0, 0.999))
def test_unpack_cut_is_damage(coding: str, data: bytes, kept: float) -> None:
    """Data that ends too early is damage, never a shorter document."""
    packed = pack(data, coding)
    with pytest.raises(DamagedError):
        unpack(packed[: int(len(packed) * kept)], coding, limit=10_000)


@settings(max_examples=80)
@given(coding=CODINGS, junk=st.binary(max_size=300))
def test_unpack_junk_is_damage_or_small(coding: str, junk: bytes) -> None:
    """Any bytes at all give bytes within the limit or one of two errors."""
    with suppress(DamagedError, TooBigError):
        assert len(unpack(junk, coding, limit=1000)) <= 1000


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_unpack_bomb_costs_no_more_than_the_cap(coding: str) -> None:
    """A bomb of 200 MB is stopped at the cap, in memory of a few times the cap."""
    bomb = pack(bytes(200_000_000), coding)
    tracemalloc.start()
    with pytest.raises(TooBigError, match="unpacks to more than 1,000,000 bytes"):
        unpack(bomb, coding, limit=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000 + len(bomb)


@pytest.mark.timeout(20)
def test_unpack_swarm_of_empty_members_is_refused() -> None:
    """Members that make nothing are counted, because no cap on bytes would ever stop them."""
    with pytest.raises(TooBigError, match="parts"):
        unpack(gzip.compress(b"", mtime=0) * (MAX_MEMBERS + 1), "gzip", limit=10)


def test_unpack_zstd_window_is_bounded() -> None:
    """A frame that wants a window of 128 MB is refused whatever its size."""
    options = {
        int(zstd.CompressionParameter.window_log): 27,
        int(zstd.CompressionParameter.content_size_flag): 0,
    }
    packer = zstd.ZstdCompressor(options=options)
    frame = packer.compress(b"x") + packer.flush()
    with pytest.raises(DamagedError):
        unpack(frame, "zstd", limit=100)


def test_unpack_zero_padding_is_skipped() -> None:
    """Zeros behind a gzip member, as tapes leave them, are no damage; other bytes are."""
    assert b"abc" == unpack(gzip.compress(b"abc", mtime=0) + bytes(512), "gzip", limit=10)
    with pytest.raises(DamagedError):
        unpack(gzip.compress(b"abc", mtime=0) + b"junk", "gzip", limit=10)


def test_sniff_knows_both_and_nothing_else() -> None:
    """The first bytes tell gzip and zstd from everything else."""
    found = [sniff(data) for data in (pack(b"a", "gzip"), pack(b"a", "zstd"), b"<rss>", b"", b"\x1f\x8b")]
    assert ["gzip", "zstd", None, None, None] == found
