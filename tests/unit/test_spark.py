"""What the three drawings of a topic's weeks promise."""

from __future__ import annotations

import struct
import xml.etree.ElementTree as ET
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.render import spark
from digestd.render.spark import MAIL, PAGE, bars, in_numbers, png, svg, unicode_bars, width_of

RISING = (3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7)
QUIET = (1, 0, 2, 1, 0, 1, 1, 0, 1, 2, 0, 0)
SERIES = st.lists(st.integers(0, 5_000), min_size=1, max_size=12)


def decode_png(data: bytes) -> tuple[int, int, list[list[int]], list[tuple[int, int, int]], list[int]]:
    """Return width, height, rows of palette indices, palette and alphas of a picture of two bits a pixel."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.pack(">I", zlib.crc32(name + body)) == data[at + 8 + length : at + 12 + length]
        chunks[name] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    width, height, depth, colour, method, filtering, interlace = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colour, method, filtering, interlace) == (2, 3, 0, 0, 0)
    raw, line = zlib.decompress(chunks[b"IDAT"]), 1 + -(-width // 4)
    assert len(raw) == line * height
    rows = []
    for y in range(height):
        assert raw[y * line] == 0
        packed = raw[y * line + 1 : (y + 1) * line]
        rows.append([packed[x // 4] >> (6 - 2 * (x % 4)) & 3 for x in range(width)])
    levels = chunks[b"PLTE"]
    palette = [(levels[i], levels[i + 1], levels[i + 2]) for i in range(0, len(levels), 3)]
    return width, height, rows, palette, list(chunks[b"tRNS"])


def test_bars_stand_in_groups_of_four() -> None:
    """Twelve bars of 9 px stand 3 px apart, groups 9 px, 153 px in all."""
    drawn = bars(RISING, MAIL)
    assert [bar.x for bar in drawn] == [0, 12, 24, 36, 54, 66, 78, 90, 108, 120, 132, 144]
    assert width_of(drawn) == 153


def test_bars_only_the_last_four_weeks_are_hot() -> None:
    """Red means the last four weeks, counted from the end, however many weeks there are."""
    assert [bar.hot for bar in bars(RISING, MAIL)] == [False] * 8 + [True] * 4
    assert [bar.hot for bar in bars((1, 2, 3), MAIL)] == [True, True, True]
    assert [bar.hot for bar in bars((1, 2, 3, 4, 5), MAIL)] == [False, True, True, True, True]


def test_bars_of_few_weeks_group_from_the_end() -> None:
    """Five weeks are one lone bar and the group of the last four."""
    assert [bar.x for bar in bars((1, 2, 3, 4, 5), MAIL)] == [0, 18, 30, 42, 54]


def test_bars_height_is_to_scale_of_the_peak() -> None:
    """The peak has the full height; 9 of 18 half of it."""
    assert [bar.height for bar in bars((18, 9, 0), MAIL)] == [40, 20, 1]


def test_bars_one_lone_paper_is_a_short_bar() -> None:
    """The scale has at least four papers: one paper is a quarter of the height."""
    assert [bar.height for bar in bars((0, 0, 1), MAIL)] == [1, 1, 10]


def test_bars_without_papers_are_stubs_and_small_ones_are_seen() -> None:
    """A week without papers is one pixel, one paper of hundreds three: never nothing, never alike."""
    assert [bar.height for bar in bars((0, 1, 900), MAIL)] == [1, 3, 40]


@pytest.mark.parametrize(
    ("series", "partial", "expected"),
    [((5, 5), True, [False, True]), ((5, 5), False, [False, False]), ((5, 0), True, [False, False])],
)
def test_bars_unfinished_week_is_hollow(series: tuple[int, ...], partial: bool, expected: list[bool]) -> None:
    """Only the last week of a partial series is hollow, and only if it has papers."""
    assert [bar.hollow for bar in bars(series, MAIL, partial=partial)] == expected


def test_bars_of_nothing() -> None:
    """An empty series has no bars and no width."""
    assert bars((), MAIL) == ()
    assert width_of(()) == 0


@given(SERIES)
@settings(max_examples=200, deadline=None)
def test_bars_stay_in_the_picture_and_in_order(series: list[int]) -> None:
    """Bars never overlap, stand on the base line, and more papers are never a lower bar."""
    drawn = bars(series, MAIL)
    assert all(left.x + left.width < right.x for left, right in pairwise(drawn))
    assert all(bar.y + bar.height == MAIL.height and 1 <= bar.height <= MAIL.height for bar in drawn)
    by_papers = sorted(drawn, key=lambda bar: bar.papers)
    assert [bar.height for bar in by_papers] == sorted(bar.height for bar in drawn)


def test_unicode_bars_rising() -> None:
    """A rising topic as text; zero alone has the lowest block."""
    assert unicode_bars(RISING) == "▂▃▂▃ ▂▃▃▃ ▅▇▆▃"
    assert unicode_bars(QUIET) == "▃▁▄▃ ▁▃▃▁ ▃▄▁▁"
    assert unicode_bars(()) == ""


@given(SERIES)
@settings(max_examples=200, deadline=None)
def test_unicode_bars_one_block_a_week(series: list[int]) -> None:
    """Text has one block a week, the lowest only for weeks without papers, and never the full block."""
    blocks = unicode_bars(series).replace(" ", "")
    assert len(blocks) == len(series)
    assert [block == "▁" for block in blocks] == [papers == 0 for papers in series]
    assert "█" not in blocks


def test_in_numbers_in_groups() -> None:
    """Figures for screen readers, grouped as the bars are."""
    assert in_numbers(RISING) == "3 5 4 6, 4 7 5 6, 13 18 16 7"
    assert in_numbers((1, 2, 3, 4, 5)) == "1, 2 3 4 5"
    assert in_numbers((7,)) == "7"
    assert in_numbers(()) == ""


def test_svg_is_well_formed_and_labelled() -> None:
    """The SVG has one shape a week with the classes of the style sheet, and says its label escaped."""
    root = ET.fromstring(svg(RISING, label='Reef & "Kelp" <b>'))
    assert root.attrib["aria-label"] == 'Reef & "Kelp" <b>'
    assert (root.attrib["width"], root.attrib["height"]) == ("114", "24")  # 12 bars of 7, 9 gaps of 2, 2 of 6
    assert [shape.attrib.get("class", "") for shape in root] == [""] * 8 + ["h", "h", "h", "so"]
    assert root[0].attrib == {"x": "0", "y": "20", "width": "7", "height": "4"}


def test_svg_hollow_bar_lies_inside_its_place() -> None:
    """The outline of the unfinished week is drawn half a pixel in, so that it is sharp."""
    root = ET.fromstring(svg((24, 12), label=""))
    assert root[1].attrib == {"class": "so", "x": "9.5", "y": "12.5", "width": "6", "height": "11"}


def test_svg_finished_week_is_filled() -> None:
    """A series without an unfinished week has no hollow shape."""
    assert "so" not in {shape.attrib.get("class") for shape in ET.fromstring(svg(RISING, label="", partial=False))}


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_png_pixels_are_the_bars(scale: int) -> None:
    """Read back by hand, the picture holds each bar to scale in its colour on a transparent ground."""
    width, height, rows, palette, alphas = decode_png(png(RISING, scale=scale))
    assert (width, height) == (153 * scale, 40 * scale)
    assert palette == [(255, 255, 255), spark.GREY, spark.HOT]
    assert alphas == [0]
    expected = [[0] * width for _ in range(height)]
    for bar in bars(RISING, MAIL):
        for y in range(bar.y * scale, height):
            for x in range(bar.x * scale, (bar.x + 9) * scale):
                across = (bar.x + 1) * scale <= x < (bar.x + 8) * scale
                inside = across and (bar.y + 1) * scale <= y < 39 * scale
                expected[y][x] = 0 if bar.hollow and inside else 2 if bar.hot else 1
    assert expected == rows


def test_png_is_small_and_always_the_same() -> None:
    """The same series gives the same bytes, a few hundred of them."""
    assert png(RISING) == png(list(RISING))
    assert len(png(RISING)) < 400


@given(SERIES, st.booleans(), st.sampled_from((MAIL, PAGE)))
@settings(max_examples=60, deadline=None)
def test_png_any_series_reads_back(series: list[int], partial: bool, size: spark.Size) -> None:
    """Any series gives a picture that reads back at the size that its bars have."""
    width, height, rows, _, _ = decode_png(png(series, size=size, partial=partial))
    assert (width, height) == (2 * width_of(bars(series, size)), 2 * size.height)
    hot = {cell for row in rows for cell in row[-size.bar * 2 :]}
    assert 1 not in hot
