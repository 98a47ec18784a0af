"""``make soak``: read pages, whole and damaged, for some minutes, and watch that memory stays where it is."""

from __future__ import annotations

import os
import random
import resource
import time
from pathlib import Path

from bench.corpus import PER_PAGE, make_paper, page_text


def resident_mb() -> float:
    """Return the resident set of this process now; where the system does not tell, its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024**2


def damaged(text: str, chance: random.Random) -> bytes:
    """Return the page as bytes, one in two cut, doubled or with bytes changed."""
    body = bytearray(text.encode())
    match chance.randrange(6):
        case 0:
            del body[chance.randrange(len(body)) :]
        case 1:
            body += body[chance.randrange(len(body)) :]
        case 2:
            for _ in range(20):
                body[chance.randrange(len(body))] = chance.randrange(256)
    return bytes(body)


#: kills at each point
CRASH_RUNS = int(os.environ.get("SOAK_CRASHES", "40"))


def power_soak() -> int:
    """Return 0 if no commit was lost when the power was cut, and if the harness would have seen it."""
    from tests.powerloss import soak as cut_often

    return cut_often()


def crash_soak() -> int:
    """Return 0 if nothing was lost, and nothing doubled unknown, when commands were killed at every point."""
    from tests.crash.harness import soak as kill_often
    from tests.crash.other_points import soak as kill_elsewhere

    return max(kill_often(CRASH_RUNS), kill_elsewhere(CRASH_RUNS))


def soak(seconds: float = float(os.environ.get("SOAK_SECONDS", "300"))) -> int:
    """Return 0 if memory grew by less than a tenth after the first quarter, 1 if more."""
    from digestd.errors import ParseError
    from digestd.model.snapshot import Document
    from digestd.parse import parse_document

    chance = random.Random(1)
    begin = time.monotonic()
    papers = refused = number = 0
    early = 0.0
    while (passed := time.monotonic() - begin) < seconds:
        text = page_text(number, [make_paper(chance.randrange(10**7)) for _ in range(PER_PAGE)])
        number += 1
        try:
            papers += len(parse_document(Document(damaged(text, chance))).papers)
        except ParseError:
            refused += 1
        if not early and passed > seconds / 4:
            early = resident_mb()
    late = resident_mb()
    print(
        f"soak: {number:,} pages, {papers:,} papers, {refused:,} refused; {early:.1f} MB after a quarter, {late:.1f} MB now"
    )
    return 0 if late < early * 1.1 else 1
