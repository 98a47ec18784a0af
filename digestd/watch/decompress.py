"""Bounded decompression of gzip and zstd. Floor 3, no I/O; entry points are `Inflater`, `unpack` and `sniff`.

No step makes more bytes than asked for, so that a bomb costs what the cap costs and no more: a library that hands out
"the next chunk" may hand out a gigabyte from one kilobyte.
"""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

from digestd.errors import FetchError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Two to this power is the largest window, 32 MB, that a zstd frame may ask us to keep (RFC 8878 3.1.1.1.2).
ZSTD_WINDOW_LOG_MAX = 25
#: Empty members cost a decoder each and make no bytes, so that a cap on bytes does not bound them.
MAX_MEMBERS = 10_000
#: Content codings by their names (RFC 9110 8.4.1) and by the suffix of a file.
CODINGS = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
SUFFIXES = {".gz": "gzip", ".zst": "zstd"}

_STEP = 64 * 1024
_MAGIC = {b"\x1f\x8b\x08": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


class TooBigError(FetchError):
    """More bytes than the cap allows."""


class DamagedError(FetchError):
    """Compressed bytes that do not decode, are cut, or have something else behind them."""


class _Decoder(Protocol):
    """What one member or frame is decoded with."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """A decoder of one gzip member that keeps its unread input itself, as the zstd decoder does."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)  # 31: gzip header and trailer, with their checksum

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


def sniff(data: bytes) -> str | None:
    """Return the coding that the first bytes show; None if they show none."""
    return next((coding for magic, coding in _MAGIC.items() if data.startswith(magic)), None)


def unpack(data: bytes, coding: str, *, limit: int) -> bytes:
    """Return decoded bytes, all members and frames one after the other.

    Args:
        data: compressed bytes.
        coding: "gzip" or "zstd".
        limit: most bytes to make.

    Raises:
        TooBigError: there would be more.
        DamagedError: damaged, cut, or followed by something else.
    """
    inflater = Inflater(coding, limit=limit)
    inflater.feed(data)
    return inflater.finish()


class Inflater:
    """One compressed stream as it arrives; memory never exceeds the limit by more than a step.

    Args:
        coding: "gzip" or "zstd".
        limit: most bytes to make.
    """

    def __init__(self, coding: str, *, limit: int) -> None:
        self._coding = coding
        self._limit = limit
        self._decoder: _Decoder | None = None
        self._members = 0
        self._made = bytearray()

    def feed(self, data: bytes) -> None:
        """Decode what has arrived; TooBigError as soon as the limit is passed, DamagedError on damage."""
        # in slices: the rest behind each member's end is copied, and a slice keeps that from growing with the square
        for start in range(0, len(data), _STEP):
            try:
                self._feed_slice(data[start : start + _STEP])
            except (zlib.error, zstd.ZstdError, EOFError) as error:
                raise DamagedError(f"{self._coding} data is damaged: {error}") from error

    def finish(self) -> bytes:
        """Return everything made; DamagedError if the stream ended in the middle."""
        if self._decoder is not None or not self._members:
            raise DamagedError(f"{self._coding} data ends in the middle")
        return bytes(self._made)

    def _feed_slice(self, data: bytes) -> None:
        while True:
            if self._decoder is None:
                # archives on tape blocks are padded with zeros; gzip(1) skips them, and so do we
                data = data.lstrip(b"\0") if self._members else data
                if not data:
                    return
                self._decoder = self._next_decoder()
            room = min(_STEP, self._limit - len(self._made) + 1)
            made = self._decoder.decompress(data, room)
            self._made += made
            if len(self._made) > self._limit:
                raise TooBigError(f"{self._coding} data unpacks to more than {self._limit:,} bytes")
            if self._decoder.eof:
                data, self._decoder = self._decoder.unused_data, None
                continue
            if len(made) < room:
                return  # all input is used up
            data = b""

    def _next_decoder(self) -> _Decoder:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise TooBigError(f"{self._coding} data has more than {MAX_MEMBERS:,} parts")
        if self._coding == "gzip":
            return _Gzip()
        options = {int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG_MAX}
        return zstd.ZstdDecompressor(options=options)
