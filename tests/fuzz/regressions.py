"""What the fuzzer found, rewritten with words of our own: the first byte names the format, as the harness reads it."""

from __future__ import annotations

#: what was wrong -> input
FOUND = {
    "a title cut for its length ended in a blank": b"\x03<rss version='2.0'><channel><item><title>"
    + b"k" * 999
    + b" kelp</title></item></channel></rss>",
}
