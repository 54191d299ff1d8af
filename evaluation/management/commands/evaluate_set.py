from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from core.exceptions import LanguageModelMisconfigured, RagsiteError
from core.language_model.chat_model import ChatModel
from core.progress import ProgressBar
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationRun, EvaluationSet, RunKind
from evaluation.payload_types import MeanPayload, PercentilesPayload
from evaluation.runs import queue, run_execution
from evaluation.runs.other_product import ProductComparison, compare_products
from evaluation.runs.results import MEASURES, NOTHING_TO_MEASURE, read_confidence_interval
from evaluation.statistics import Interval, round_figures
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import SearchProfileVersion
from retrieval.profile_settings import ImproperProfile
from retrieval.search.profiles.profiles import (
    BUILT_IN,
    NamedProfile,
    active_profile,
    build_named_profile,
    get_built_in_profile,
)

WAIT_SECONDS = 1.0
# Seconds for one question. The other product may read all documents again for each question.
PRODUCT_SECONDS = 300.0
# If the other product limits the rate of requests, it says how long to wait. So one of these attempts succeeds.
PRODUCT_ATTEMPTS = 10


class Command(MigratedDatabaseCommand):
    help = (
        "Run an evaluation set with a search profile, as the button in the admin does, and print the figures with 95 % "
        "bootstrap intervals. The admin shows the run. If a worker is measuring an equal run, wait for it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", help="The set's short name.")
        parser.add_argument("--kind", choices=RunKind.values, default=RunKind.SEARCH.value)
        parser.add_argument(
            "--profile",
            default="",
            metavar="NAME",
            help=f'"{BUILT_IN}", or a version such as "default v2". Default: the one in force.',
        )
        parser.add_argument("--draft", action="store_true", help="Use the documents of the collection's draft.")
        parser.add_argument(
            "--openai",
            default="",
            metavar="URL",
            help="Ask another product the same questions at this address of OpenAI's protocol, such as "
            "http://127.0.0.1:3000/api, and print its figures beside the run's. Implies --kind answers.",
        )
        parser.add_argument("--model", default="", help="The other product's model or assistant, for --openai.")
        parser.add_argument(
            "--key-variable",
            default="OPENAI_API_KEY",
            metavar="NAME",
            help="The environment variable with the other product's key. Default: %(default)s.",
        )
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        evaluation_set = EvaluationSet.objects.filter(slug=options["slug"]).first()
        if evaluation_set is None:
            raise CommandError(f"There is no evaluation set named {options['slug']!r}.")
        kind = RunKind.ANSWERS if options["openai"] else RunKind(options["kind"])
        other = _build_other_product(options) if options["openai"] else None
        if not evaluation_set.questions.measurable(kind).exists():
            raise CommandError(str(NOTHING_TO_MEASURE[kind]))
        try:
            profile = _find_profile(options["profile"])
            draft = evaluation_set.collection.drafts.filter_open().first() if options["draft"] else None
            if options["draft"] and draft is None:
                raise EvaluationError(f"{evaluation_set.collection} has no open draft.")
            run = queue.request_evaluation_run(evaluation_set, profile, kind=kind, draft=draft, to_worker=False)
            self._finish_run(run)
            is_done = run.status == EvaluationRun.Status.DONE
            comparison = self._compare(run, other) if other is not None and is_done else None
        except (EvaluationError, RagsiteError, ImproperProfile, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if run.status != EvaluationRun.Status.DONE:
            raise CommandError(f"Run #{run.pk} is {run.get_status_display()}. {run.error}".strip())
        if options["json"]:
            beside = {} if comparison is None else {"beside": asdict(comparison)}
            self.stdout.write(json.dumps(_as_json(run) | beside, ensure_ascii=False))
        else:
            self._print_figures(run)
            if other is not None and comparison is not None:
                self._print_comparison(other.name, comparison)
        if run.unreliable_reason:
            raise CommandError(f"Run #{run.pk} is not to be relied on: {run.unreliable_reason}")

    def _finish_run(self, run: EvaluationRun) -> None:
        bar = ProgressBar(self.stderr)
        label = f"{run.evaluation_set}: {run.get_kind_display()}"
        try:
            while not run.is_finished:
                measured = run_execution.measure_run(run.pk, lambda asked, total: bar.show(label, asked, total))
                run.refresh_from_db()
                if measured is not None and run.error and not run.is_finished:
                    raise EvaluationError(run.error)
                if measured is None:
                    time.sleep(WAIT_SECONDS)
        except (KeyboardInterrupt, EvaluationError):
            # A run that another user had already requested is with the workers, so it is not cancelled.
            queue.cancel_runs(EvaluationRun.objects.filter(pk=run.pk, enqueued_at=None))
            raise
        finally:
            bar.clear()

    def _compare(self, run: EvaluationRun, other: ChatModel) -> ProductComparison:
        bar = ProgressBar(self.stderr)
        try:
            return compare_products(run, other, lambda asked, total: bar.show(other.name, asked, total))
        finally:
            bar.clear()

    def _print_comparison(self, name: str, comparison: ProductComparison) -> None:
        """Print the figures of both products, for those checks that need only the text of an answer."""
        self.stdout.write(f"\n{'':<32} {'this site':<22} {name}")
        for measure in MEASURES[RunKind.ANSWERS]:
            ours, theirs = (
                _show_mean(each["metrics"].get(measure.key)) for each in (comparison.ours, comparison.theirs)
            )
            if ours or theirs:
                self.stdout.write(f"  {measure.label!s:<30} {ours:<22} {theirs}")
        ours, theirs = (_show_latency(each["latency_ms"]) for each in (comparison.ours, comparison.theirs))
        self.stdout.write(f"  {'milliseconds, p50 / p95':<30} {ours:<22} {theirs}")
        asked = len(comparison.replies)
        self.stdout.write(
            f"{comparison.refusal_count} of {asked} replies of {name} count as refusals; --json shows them."
        )
        if failures := comparison.failures:
            self.stdout.write(f"{len(failures)} of {asked} questions failed and are left out: {failures[0].failure}")

    def _print_figures(self, run: EvaluationRun) -> None:
        documents = "" if run.draft is None else f", on {run.draft}"
        self.stdout.write(f"{run.evaluation_set}: {run.total} questions, {run.profile_name}, run #{run.pk}{documents}")
        for measure in MEASURES[run.kind]:
            found = read_confidence_interval(run, measure.key)
            shown = "-" if found is None else str(found)
            mean = run.summary["metrics"].get(measure.key)
            asked = mean["questions"] if mean else 0
            self.stdout.write(f"  {measure.label!s:<30} {shown:<22} of {asked}")
        self.stdout.write(f"  {'milliseconds, p50 / p95':<30} {_show_latency(run.summary['latency_ms'])}")


def _show_mean(mean: MeanPayload | None) -> str:
    return "" if mean is None else str(Interval(mean["mean"], mean["low"], mean["high"]))


def _show_latency(latency: PercentilesPayload) -> str:
    return f"{latency['p50']:.0f} / {latency['p95']:.0f}"


def _build_other_product(options: dict[str, Any]) -> ChatModel:
    if not options["model"]:
        raise CommandError("Name the other product's model with --model.")
    key = os.environ.get(options["key_variable"], "")
    try:
        return ChatModel(options["openai"], key, options["model"], PRODUCT_SECONDS, PRODUCT_ATTEMPTS)
    except LanguageModelMisconfigured as error:
        raise CommandError(str(error)) from error


def _find_profile(name: str) -> NamedProfile:
    if not name:
        return active_profile()
    if name == BUILT_IN:
        return NamedProfile(BUILT_IN, get_built_in_profile())
    slug, _, number = name.rpartition(" v")
    versions = SearchProfileVersion.objects.select_related("profile")
    version = versions.filter(profile__slug=slug, number=int(number)).first() if number.isdecimal() else None
    if version is None:
        raise CommandError(f"There is no search profile named {name!r}.")
    return build_named_profile(version)


def _as_json(run: EvaluationRun) -> dict[str, object]:
    found = {measure.key: read_confidence_interval(run, measure.key) for measure in MEASURES[run.kind]}
    stored = run.summary["metrics"]
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
            key: mean and {**round_figures(mean), "questions": stored[key].get("questions")}
            for key, mean in found.items()
        },
    }
