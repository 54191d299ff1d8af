"""Show how long each stage of an answer took, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy

STAGES = {
    "reformulate": gettext_lazy("reformulate"),
    "classify": gettext_lazy("classify and plan"),
    "legs": gettext_lazy("both retrievers"),
    "vector": gettext_lazy("vector retriever"),
    "lexical": gettext_lazy("lexical retriever"),
    "scores": gettext_lazy("missing scores"),
    "fuse": gettext_lazy("fuse"),
    "rerank": gettext_lazy("rerank"),
    "load": gettext_lazy("load passages"),
    "search": gettext_lazy("search"),
    "context": gettext_lazy("assemble the context"),
    "wait": gettext_lazy("wait for the first word"),
    "decide": gettext_lazy("decide that no document answers"),
    "write": gettext_lazy("write"),
    "check": gettext_lazy("check the sentences"),
    "answer": gettext_lazy("answer"),
    "total": gettext_lazy("total"),
}


def stage_label(name: str) -> str:
    return str(STAGES.get(name, name.replace("_", " ")))


_SEARCH = ("reformulate", "classify", "legs", "scores", "fuse", "rerank", "load")
_AT_ONCE = ("vector", "lexical")


@dataclass(frozen=True, slots=True)
class StageBar:
    name: str
    start_ms: float
    milliseconds: float
    whole_ms: float
    nested: bool = False

    @property
    def label(self) -> str:
        return stage_label(self.name)

    @property
    def left_percent(self) -> float:
        return round(min(100.0, 100 * self.start_ms / self.whole_ms), 2)

    @property
    def width_percent(self) -> float:
        return round(min(100.0 - self.left_percent, 100 * self.milliseconds / self.whole_ms), 2)


def build_search_stage_bars(timings_ms: Mapping[str, float]) -> tuple[StageBar, ...]:
    stages = [stage for stage in _SEARCH if stage in timings_ms]
    whole = max(timings_ms.get("total", 0.0), sum(timings_ms[stage] for stage in stages)) or 1.0
    bars = []
    at = 0.0
    for stage in stages:
        bars.append(StageBar(stage, at, timings_ms[stage], whole))
        if stage == "legs":
            bars += [
                StageBar(each, at, timings_ms[each], whole, nested=True) for each in _AT_ONCE if timings_ms.get(each)
            ]
        at += timings_ms[stage]
    return tuple(bars)


def build_answer_bars(timings_ms: Mapping[str, float], search_ms: float | None = None) -> tuple[StageBar, ...]:
    """Return a bar for each measured stage of an answer.

    ``timings_ms`` maps a stage to its end, in milliseconds since the beginning. The stage `searched` has two bars: the
    first ``search_ms`` are the search, the rest collects the context.
    """
    total, searched = timings_ms.get("total"), timings_ms.get("searched")
    if not total:
        return ()
    last = "check" if "written" in timings_ms else "answer" if searched is None else "decide"
    ends = {
        "search": searched if searched is None or search_ms is None else min(search_ms, searched),
        "context": searched,
        "wait": timings_ms.get("first_token"),
        "write": timings_ms.get("written"),
        last: total,
    }
    bars: list[StageBar] = []
    at = 0.0
    for stage, end in ends.items():
        if end is not None and end > at:
            bars.append(StageBar(stage, at, end - at, total))
            at = end
    return tuple(bars)
