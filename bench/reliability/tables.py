"""Figures as Markdown, for the pages of docs/."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def percentile(values: Sequence[float], percent: float) -> float | None:
    """By the nearest rank; None of no values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * (len(ordered) - 1)))]


def seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def progress(done: int, total: int, what: str) -> None:
    """A bar on standard error, rewritten in place in a terminal."""
    filled = round(24 * done / max(1, total))
    end = "\r" if sys.stderr.isatty() and done < total else "\n"
    print(
        f"[{'#' * filled}{'.' * (24 - filled)}] {done} of {total}  {what[:70]:<70}",
        end=end,
        file=sys.stderr,
        flush=True,
    )
