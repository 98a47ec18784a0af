"""A topic's weeks as bars, drawn three times from one geometry: SVG, Unicode text, PNG. Floor 1.

Bars stand in groups of four counted from the newest week, so that the eye compares the last four weeks (red) with the
four before. The scale is the topic's own peak, at least four papers: one lone paper is a short bar. A week without
papers is a stub of one unit, so that every week stays countable, and an unfinished week is hollow, so that it never
reads as a fall.
"""

from __future__ import annotations

import html
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

#: Both keep a contrast of 3:1 on white and on the dark grounds of mail clients (#121212 to #292a2d).
GREY = (0x8F, 0x88, 0x80)
HOT = (0xCF, 0x4F, 0x2A)
GROUP = 4  #: weeks in a group; the newest group is "the last four weeks"
HOT_CLASS = ' class="h"'
BLOCKS = "▁▂▃▄▅▆▇"  #: never the full block, which many fonts draw from elsewhere
_LEAST_PEAK = 4


@dataclass(frozen=True, slots=True)
class Size:
    """How large bars are drawn, in CSS pixels (characters for text)."""

    bar: int
    gap: int  #: between bars
    group: int  #: between groups
    height: int
    least: int  #: height of the smallest bar that stands for papers


MAIL = Size(bar=9, gap=3, group=9, height=40, least=3)
PAGE = Size(bar=7, gap=2, group=6, height=24, least=2)
_TEXT = Size(bar=1, gap=0, group=1, height=6, least=1)


@dataclass(frozen=True, slots=True)
class Bar:
    """One week; the top left corner is (0, 0)."""

    x: int
    y: int
    width: int
    height: int
    hot: bool  #: one of the last four weeks
    hollow: bool  #: the week is unfinished
    papers: int


def bars(series: Sequence[int], size: Size, *, partial: bool = True) -> tuple[Bar, ...]:
    """Return where the bars of a series stand.

    Args:
        series: papers a week, oldest first, may be empty.
        size: how large to draw.
        partial: whether the last week is unfinished.

    Returns:
        One bar a week, oldest first.
    """
    peak = max(_LEAST_PEAK, *series) if series else _LEAST_PEAK
    found, x = [], 0
    for index, papers in enumerate(series):
        left = len(series) - index  # weeks from here to the end, this one included
        height = 1 if papers <= 0 else max(size.least, round(papers * size.height / peak))
        hollow = partial and left == 1 and papers > 0
        found.append(Bar(x, size.height - height, size.bar, height, left <= GROUP, hollow, papers))
        x += size.bar + (size.group if (left - 1) % GROUP == 0 else size.gap)
    return tuple(found)


def width_of(drawn: Sequence[Bar]) -> int:
    """Return the width of drawn bars, 0 for none."""
    return drawn[-1].x + drawn[-1].width if drawn else 0


def unicode_bars(series: Sequence[int]) -> str:
    """Return the series as block characters with a space between groups; "" for an empty one."""
    text = ""
    for bar in bars(series, _TEXT):
        text = text.ljust(bar.x) + (BLOCKS[bar.height] if bar.papers > 0 else BLOCKS[0])
    return text


def in_numbers(series: Sequence[int]) -> str:
    """Return the series as figures in groups, "3 5 4 6, 4 7 5 6, 13 18 16 7"; "" for an empty one."""
    first = len(series) % GROUP or GROUP
    starts = [0, *range(first, len(series), GROUP)]
    groups = [series[start : start + (first if start == 0 else GROUP)] for start in starts]
    return ", ".join(" ".join(str(papers) for papers in group) for group in groups if group)


def svg(series: Sequence[int], *, label: str, size: Size = PAGE, partial: bool = True, css_class: str = "spark") -> str:
    """Return the series as an inline SVG element, coloured by the page's style sheet (rect, rect.h, rect.so).

    Args:
        series: papers a week, oldest first, may be empty.
        label: what a screen reader says instead; escaped here.
        size: how large to draw.
        partial: whether the last week is unfinished.
        css_class: class of the svg element.
    """
    drawn = bars(series, size, partial=partial)
    shapes = []
    for bar in drawn:
        if bar.hollow:  # half a pixel in, so that the one pixel wide line is sharp
            box = f'x="{bar.x + 0.5}" y="{bar.y + 0.5}" width="{bar.width - 1}" height="{max(bar.height - 1, 1)}"'
            shapes.append(f'<rect class="so" {box}/>')
        else:
            box = f'x="{bar.x}" y="{bar.y}" width="{bar.width}" height="{bar.height}"'
            shapes.append(f"<rect{HOT_CLASS if bar.hot else ''} {box}/>")
    width, height = width_of(drawn), size.height
    frame = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"'
    return f'<svg class="{css_class}" {frame} aria-label="{html.escape(label)}">{"".join(shapes)}</svg>'


def png(series: Sequence[int], *, size: Size = MAIL, partial: bool = True, scale: int = 2) -> bytes:
    """Return the series as a transparent PNG picture; the same bytes for the same series.

    Args:
        series: papers a week, oldest first, at least one.
        size: how large to draw, in CSS pixels.
        partial: whether the last week is unfinished.
        scale: device pixels a CSS pixel; also the line width of the hollow bar.
    """
    drawn = bars(series, size, partial=partial)
    width, height = width_of(drawn) * scale, size.height * scale
    rows = [bytearray(width) for _ in range(height)]
    for bar in drawn:
        left, right = bar.x * scale, (bar.x + bar.width) * scale
        top, bottom = bar.y * scale, (bar.y + bar.height) * scale
        for y in range(top, bottom):
            rows[y][left:right] = bytes([2 if bar.hot else 1]) * (right - left)
        if bar.hollow:
            for y in range(top + scale, bottom - scale):
                rows[y][left + scale : right - scale] = bytes(right - left - 2 * scale)
    return _palette_png(rows, width, ((255, 255, 255), GREY, HOT))


def _palette_png(rows: Sequence[bytes | bytearray], width: int, palette: Sequence[tuple[int, int, int]]) -> bytes:
    """Return rows of palette indices (0 to 3, 0 transparent) as a PNG of two bits a pixel.

    Source: PNG Specification (Third Edition) 11.2.1 IHDR, 11.2.2 PLTE, 11.3.1.1 tRNS, 7.2 scanlines.
    """

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packed: dict[bytes, bytes] = {}  # bars make many rows alike
    for row in map(bytes, rows):
        if row not in packed:
            padded = row + bytes(-width % 4)
            quads = zip(padded[0::4], padded[1::4], padded[2::4], padded[3::4], strict=True)
            packed[row] = b"\0" + bytes(a << 6 | b << 4 | c << 2 | d for a, b, c, d in quads)  # filter type 0: none
    lines = b"".join(packed[bytes(row)] for row in rows)
    header = struct.pack(">IIBBBBB", width, len(rows), 2, 3, 0, 0, 0)  # two bits, indexed, no interlace
    colours = bytes(level for colour in palette for level in colour)
    body = chunk(b"IHDR", header) + chunk(b"PLTE", colours) + chunk(b"tRNS", b"\0")
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
