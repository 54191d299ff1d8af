"""Figures as Markdown, for the pages of docs/."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from evaluation import statistics


def percentile(values: Sequence[float], percent: float) -> float | None:
    """None of no values."""
    return statistics.percentile(values, percent) if values else None


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
