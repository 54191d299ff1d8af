"""When each stage of an answer began and how long it took. Pure Python.

Durations are what is measured; where a stage begins follows from the order of the work: the stages of a search come one
after the other, and the two retrievers begin together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# The order of the work. Beside the stages themselves, `retrievers` waits for the two that run at once.
_SEARCH = ("reformulate", "classify", "legs", "scores", "fuse", "rerank", "support", "load")
_AT_ONCE = ("vector", "lexical")


@dataclass(frozen=True, slots=True)
class Bar:
    """A stage: ``left`` and ``width`` in percent of the whole. ``start_ms`` is None when nobody knows when it began."""

    name: str
    start_ms: float | None
    milliseconds: float
    left: float = 0.0
    width: float = 0.0
    nested: bool = False


def search_bars(timings_ms: Mapping[str, float]) -> tuple[Bar, ...]:
    """The stages of a search from its timings, in the order of the work; those that it does not know last, without a
    beginning. Empty without timings."""
    whole = _whole(timings_ms)
    bars = []
    at = 0.0
    for stage in _SEARCH:
        if stage not in timings_ms:
            continue
        bars.append(_bar(stage, at, timings_ms[stage], whole))
        if stage == "legs":
            bars += [
                _bar(retriever, at, timings_ms[retriever], whole, nested=True)
                for retriever in _AT_ONCE
                if timings_ms.get(retriever)
            ]
        at += timings_ms[stage]
    known = {*_SEARCH, *_AT_ONCE, "total"}
    bars += [Bar(stage, None, timings_ms[stage]) for stage in sorted(timings_ms) if stage not in known]
    return tuple(bars)


def answer_bars(timings_ms: Mapping[str, float], search_ms: float | None = None) -> tuple[Bar, ...]:
    """The stages of an answer: search, context, wait, write, check; those that its timings cannot tell are left out.

    ``timings_ms`` are moments since its beginning: `searched`, `first_token`, `written` and `total`. Of what passed
    before `searched`, ``search_ms`` was the search. Without `written`, writing and checking are one stage,
    `write and check`.
    """
    total = timings_ms.get("total", 0.0)
    searched = timings_ms.get("searched")
    if not total or searched is None:
        return (_bar("answer", 0.0, total, total),) if total else ()
    bars = []
    if search_ms is not None and search_ms <= searched:
        bars += [_bar("search", 0.0, search_ms, total), _bar("context", search_ms, searched - search_ms, total)]
    else:
        bars.append(_bar("search", 0.0, searched, total))
    first, written = timings_ms.get("first_token"), timings_ms.get("written")
    if first is not None:
        bars.append(_bar("wait", searched, first - searched, total))
        if written is None:
            bars.append(_bar("write and check", first, total - first, total))
        else:
            bars += [_bar("write", first, written - first, total), _bar("check", written, total - written, total)]
    elif total - searched > 0:
        bars.append(_bar("decide", searched, total - searched, total))
    return tuple(bars)


def _whole(timings_ms: Mapping[str, float]) -> float:
    one_after_the_other = sum(milliseconds for stage, milliseconds in timings_ms.items() if stage in _SEARCH)
    return max(timings_ms.get("total", 0.0), one_after_the_other) or 1.0


def _bar(name: str, start_ms: float, milliseconds: float, whole: float, *, nested: bool = False) -> Bar:
    milliseconds = max(0.0, milliseconds)
    left = min(100.0, 100 * start_ms / whole)
    width = min(100.0 - left, 100 * milliseconds / whole)
    return Bar(name, start_ms, milliseconds, round(left, 2), round(width, 2), nested)
