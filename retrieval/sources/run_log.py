"""Which runs of a source are kept to be looked at."""

from __future__ import annotations

from retrieval.models import SourceRun

RUNS_KEPT = 50


def forget_old_runs(run: SourceRun) -> None:
    """Of runs in a row that found nothing new, the last is kept: by the minute, they would soon be all there is."""
    ended = run.source.runs.exclude(status__in=SourceRun.ACTIVE)
    last = list(ended.filter(is_preview=False)[:2])
    if len(last) == 2 and all(map(_found_nothing, last)) and last[0].details == last[1].details:
        last[1].delete()
    SourceRun.objects.filter(pk__in=list(ended.values_list("pk", flat=True)[RUNS_KEPT:])).delete()


def _found_nothing(run: SourceRun) -> bool:
    return run.status == SourceRun.Status.DONE and not (run.added or run.changed or run.removed or run.kept_back)
