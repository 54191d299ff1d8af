"""What a run did, counted and named for its log; and which runs are kept to be looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from retrieval.models import SourceItem, SourceRun

# In the log of a run; the numbers count all.
MOST_NAMED = 100
RUNS_KEPT = 50
Outcome = SourceItem.Outcome
_COUNTED = (Outcome.ADDED, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.FAILED)
_NAMED = (Outcome.ADDED, Outcome.CHANGED)


class Tally:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.named: dict[str, list[str]] = {}
        self.failures: list[list[str]] = []
        self.removed = 0
        self.held = 0

    @classmethod
    def resumed(cls, run: SourceRun, items: Iterable[SourceItem]) -> Tally:
        """With what earlier attempts at the same run have done."""
        tally = cls()
        if run.is_preview:
            return tally
        tally.removed = run.removed
        tally.named["removed"] = run.details.get("removed", [])
        for item in items:
            if item.seen_by_run != run.pk:
                continue
            if item.outcome == Outcome.FAILED:
                tally.fail(item.key, item.error)
            else:
                tally.count(Outcome(item.outcome), item.key)
        return tally

    def count(self, outcome: SourceItem.Outcome, name: str) -> None:
        self.counts[outcome] += 1
        if outcome in _NAMED:
            self._name(outcome, name)

    def fail(self, name: str, error: str) -> None:
        self.counts[Outcome.FAILED] += 1
        if len(self.failures) < MOST_NAMED:
            self.failures.append([name, error[:500]])

    def remove(self, name: str) -> None:
        self.removed += 1
        self._name("removed", name)

    def hold(self, names: Iterable[str]) -> None:
        for name in names:
            self.held += 1
            self._name("held", name)

    def _name(self, group: str, name: str) -> None:
        named = self.named.setdefault(group, [])
        if len(named) < MOST_NAMED:
            named.append(name)

    def numbers(self) -> dict[str, int]:
        return {outcome.value: self.counts[outcome] for outcome in _COUNTED}

    def details(self) -> dict[str, Any]:
        return {**self.named, "failures": self.failures}


def forget_old_runs(run: SourceRun) -> None:
    """Of runs in a row that found nothing new, the last is kept: by the minute, they would soon be all there is."""
    ended = run.source.runs.exclude(status__in=SourceRun.ACTIVE)
    last = list(ended.filter(is_preview=False)[:2])
    if len(last) == 2 and all(map(_found_nothing, last)) and last[0].details == last[1].details:
        last[1].delete()
    SourceRun.objects.filter(pk__in=list(ended.values_list("pk", flat=True)[RUNS_KEPT:])).delete()


def _found_nothing(run: SourceRun) -> bool:
    return run.status == SourceRun.Status.DONE and not (run.added or run.changed or run.removed or run.kept_back)
