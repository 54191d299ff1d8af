"""Which processes the kernel ends first where memory runs out."""

from __future__ import annotations

import sys
from pathlib import Path

# What `serve` starts again by itself goes before the database, and of that what does the work goes first.
SITE_SCORE = 200
WORK_SCORE = 500

_FILE = Path("/proc/self/oom_score_adj")


def go_before_others(score: int) -> None:
    """Have the kernel end this process, and those it starts, before those of a lower score. Does nothing but on Linux.

    A higher score that was set from outside stays: lowering one is for root.
    """
    if sys.platform == "linux" and int(_FILE.read_text()) < score:
        _FILE.write_text(str(score))
