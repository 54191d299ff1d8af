"""Runs an evaluation set in the terminal."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationRun, EvaluationSet, RunKind
from evaluation.runs import queue, run_execution
from evaluation.runs.results import MEASURES, NOTHING_TO_MEASURE, interval_of
from evaluation.statistics import rounded
from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Draft, SearchProfileVersion
from retrieval.profile_settings import ImproperProfile
from retrieval.search.profiles import BUILT_IN, NamedProfile, active_profile, built_in_profile, named

WAIT_SECONDS = 1.0


class Command(PreparedCommand):
    help = (
        "Run an evaluation set with a search profile, as the button in the admin does, and print the figures with 95 % "
        "bootstrap intervals. The run is kept, and shows in the admin. A run of the same that a worker is busy with is "
        "waited for."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="The set's short name.")
        parser.add_argument("--kind", choices=RunKind.values, default=RunKind.SEARCH.value)
        parser.add_argument(
            "--profile",
            default="",
            metavar="NAME",
            help=f'"{BUILT_IN}", or a version such as "default v2"; the one in force when left out.',
        )
        parser.add_argument(
            "--draft", action="store_true", help="Ask the documents of the collection's draft, not those in service."
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        evaluation_set = EvaluationSet.objects.filter(slug=options["slug"]).first()
        if evaluation_set is None:
            raise CommandError(f"There is no evaluation set named {options['slug']!r}.")
        kind = RunKind(options["kind"])
        if not evaluation_set.questions.measurable(kind).exists():
            raise CommandError(str(NOTHING_TO_MEASURE[kind]))
        try:
            profile = _profile(options["profile"])
            draft = _draft(evaluation_set) if options["draft"] else None
            run = self._wait_for(queue.request_run(evaluation_set, profile, kind=kind, draft=draft, to_worker=False))
        except (EvaluationError, RetrievalError, ImproperProfile, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if run.status != EvaluationRun.Status.DONE:
            raise CommandError(f"Run #{run.pk} is {run.get_status_display()}. {run.error}".strip())
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(run), ensure_ascii=False))
        else:
            self._tell(run)
        if run.unreliable_reason:
            raise CommandError(f"Run #{run.pk} is not to be relied on: {run.unreliable_reason}")

    def _wait_for(self, run: EvaluationRun) -> EvaluationRun:
        """The run at its end, measured here unless a worker has it. Interrupted, it is cancelled."""
        bar = ProgressBar(self.stderr)

        def report(asked: int, total: int) -> None:
            bar.show(f"{run.evaluation_set}: {run.get_kind_display()}", asked, total)

        try:
            while True:
                measured = run_execution.measure(run.pk, report)
                run.refresh_from_db()
                if run.is_finished:
                    return run
                if measured is not None and run.error:
                    # It would be tried again later; whoever waits here decides that for themselves.
                    raise EvaluationError(run.error)
                if measured is None:
                    report(run.asked, run.total)
                    time.sleep(WAIT_SECONDS)
        except (KeyboardInterrupt, EvaluationError):
            # Not one that a worker was told of: somebody else asked for it.
            queue.cancel(EvaluationRun.objects.filter(pk=run.pk, enqueued_at=None))
            raise
        finally:
            bar.clear()

    def _tell(self, run: EvaluationRun) -> None:
        documents = "" if run.draft is None else f", on {run.draft}"
        self.stdout.write(f"{run.evaluation_set}: {run.total} questions, {run.profile_name}, run #{run.pk}{documents}")
        for measure in MEASURES[run.kind]:
            found = interval_of(run, measure.key)
            shown = "-" if found is None else str(found)
            asked = run.summary["metrics"].get(measure.key, {}).get("questions", 0)
            self.stdout.write(f"  {measure.label!s:<30} {shown:<22} of {asked}")
        latency = run.summary["latency_ms"]
        self.stdout.write(f"  {'milliseconds, p50 / p95':<30} {latency['p50']:.0f} / {latency['p95']:.0f}")


def _draft(evaluation_set: EvaluationSet) -> Draft:
    """Raises: CommandError when the set's collection has no open draft."""
    draft = evaluation_set.collection.drafts.open().first()
    if draft is None:
        raise CommandError(f"{evaluation_set.collection} has no open draft.")
    return draft


def _profile(name: str) -> NamedProfile:
    """Raises: CommandError, ImproperProfile, SearchUnavailable."""
    if not name:
        return active_profile()
    if name == BUILT_IN:
        return NamedProfile(BUILT_IN, built_in_profile())
    slug, _, number = name.rpartition(" v")
    versions = SearchProfileVersion.objects.select_related("profile")
    version = versions.filter(profile__slug=slug, number=int(number)).first() if number.isdecimal() else None
    if version is None:
        raise CommandError(f"There is no search profile named {name!r}.")
    return named(version)


def _as_json(run: EvaluationRun) -> dict[str, Any]:
    metrics = {measure.key: interval_of(run, measure.key) for measure in MEASURES[run.kind]}
    return {
        "run": run.pk,
        "set": run.evaluation_set.slug,
        "kind": run.kind,
        "profile": run.profile_name,
        "draft": run.draft_id,
        "conditions": run.conditions,
        "distrust": run.unreliable_reason,
        **run.summary,
        "metrics": {
            key: None
            if found is None
            else {**rounded(found), "questions": run.summary["metrics"][key].get("questions")}
            for key, found in metrics.items()
        },
    }
