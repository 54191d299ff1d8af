"""How much memory there is, and which processes the kernel ends first where it runs out."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

# What `serve` starts again by itself goes before the database, and of that what does the work goes first.
SITE_SCORE = 200
WORK_SCORE = 500

_FILE = Path("/proc/self/oom_score_adj")
# Of the second and the first version of control groups, as a container sees its own.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")


def available_memory_mib(root: Path = Path("/sys/fs/cgroup")) -> int:
    """The machine's memory, or what a container may take of it, whichever is less."""
    found = [psutil.virtual_memory().total]
    for name in _LIMITS:
        try:
            found.append(int((root / name).read_text()))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return min(found) // 2**20


def go_before_others(score: int) -> None:
    """Have the kernel end this process, and those it starts, before those of a lower score. Does nothing but on Linux.

    A higher score that was set from outside stays: lowering one is for root.
    """
    if sys.platform == "linux" and int(_FILE.read_text()) < score:
        _FILE.write_text(str(score))
