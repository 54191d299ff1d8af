"""What has to be measured before a search profile is published, and after documents changed.

A gate never says that something is good: it says that it is not significantly worse on the questions of its set. With
few questions the interval is wide, and little is ever significant; the pages show it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _t

from evaluation import metrics
from evaluation.figures import fixed
from evaluation.models import CorpusAlert, EvaluationRun, GatePolicy, RunKind
from evaluation.runs.measures import KIND_OF_MEASURE
from evaluation.runs.queue import UNFINISHED, conditions, corpus_version, request_run
from evaluation.runs.results import Comparison, compare
from evaluation.sets.resolution import fingerprint, measured_questions
from retrieval.gates import Objection
from retrieval.models import Document, SearchProfileVersion
from retrieval.profiles import NamedProfile, active_profile, named
from retrieval.ranking.profile import to_json

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)

# A watched collection whose run failed is left alone for so long.
TRIED_AGAIN_AFTER = timedelta(hours=1)


class Verdict(StrEnum):
    """What a gate says of a version."""

    IN_FORCE = "in force"
    PASSED = "passed"
    WORSE = "worse"
    RUNNING = "running"
    NOT_MEASURED = "not measured"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A gate's verdict on a version, and the runs that it rests on, as far as there are any.

    ``failure`` is what the last run of the version or of what is in force said, when it did not succeed.
    """

    policy: GatePolicy
    version: SearchProfileVersion
    in_force: NamedProfile
    verdict: Verdict
    run: EvaluationRun | None = None
    baseline: EvaluationRun | None = None
    comparison: Comparison | None = None
    failure: str = ""

    @property
    def objects(self) -> bool:
        return self.verdict not in (Verdict.IN_FORCE, Verdict.PASSED)


def check(policy: GatePolicy, version: SearchProfileVersion) -> GateCheck:
    """What the gate says of publishing the version now. Raises: ImproperProfile when the version cannot be read.

    It compares runs on the documents and the questions as they are: what was measured before either changed does not
    count.
    """
    in_force, wanted = active_profile(), named(version)
    if to_json(in_force.settings) == to_json(wanted.settings):
        return GateCheck(policy, version, in_force, Verdict.IN_FORCE)
    kind = kind_of(policy)
    questions = measured_questions(policy.evaluation_set, kind)
    if not questions:
        return GateCheck(policy, version, in_force, Verdict.EMPTY)
    asked = fingerprint(questions, kind)
    run, baseline = (_current_run(policy, profile, asked) for profile in (wanted, in_force))
    if run is not None and baseline is not None:
        comparison = compare(run, baseline, policy.metric)
        verdict = Verdict.WORSE if is_worse(policy, comparison) else Verdict.PASSED
        return GateCheck(policy, version, in_force, verdict, run, baseline, comparison)
    missing = [profile for profile, found in ((wanted, run), (in_force, baseline)) if found is None]
    waiting = [_runs(policy, profile).filter(status__in=UNFINISHED).exists() for profile in missing]
    last = [_runs(policy, profile).first() for profile in missing]
    return GateCheck(
        policy,
        version,
        in_force,
        Verdict.RUNNING if all(waiting) else Verdict.NOT_MEASURED,
        run,
        baseline,
        failure=" ".join(one.error or one.distrust for one in last if one is not None).strip(),
    )


def kind_of(policy: GatePolicy) -> RunKind:
    """The kind of run that measures what the gate asks for."""
    return KIND_OF_MEASURE[policy.metric]


def is_worse(policy: GatePolicy, comparison: Comparison) -> bool:
    """Whether the questions became worse by more than the largest allowed loss, beyond chance."""
    changed = [pair.difference for pair in (*comparison.better, *comparison.worse)]
    return comparison.difference is not None and metrics.is_loss(comparison.difference, changed, policy.largest_loss)


def request_runs(
    policy: GatePolicy, version: SearchProfileVersion, by: AbstractBaseUser | AnonymousUser | None = None
) -> list[EvaluationRun]:
    """The runs that the gate lacks for its verdict on the version, for a worker to measure; none when it has them."""
    checked = check(policy, version)
    if checked.verdict is not Verdict.NOT_MEASURED:
        return []
    missing = [
        *([named(version)] if checked.run is None else []),
        *([checked.in_force] if checked.baseline is None else []),
    ]
    kind, trigger = kind_of(policy), EvaluationRun.Trigger.GATE
    return [request_run(policy.evaluation_set, profile, kind=kind, trigger=trigger, by=by) for profile in missing]


def objections_to(version: SearchProfileVersion) -> Iterator[Objection]:
    """Why the gates that are required for publishing would not publish the version, a reason each."""
    policies = GatePolicy.objects.filter(required_for_publishing=True).select_related("evaluation_set__collection")
    for policy in policies:
        checked = check(policy, version)
        if checked.objects:
            address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, version.pk])
            yield Objection(reason_of(checked), address)


def reason_of(checked: GateCheck) -> str:
    """The verdict in a sentence."""
    names = {
        "set": checked.policy.evaluation_set,
        "version": checked.version,
        "in_force": checked.in_force,
        "metric": checked.policy.get_metric_display(),
    }
    if checked.comparison is not None and (difference := checked.comparison.difference) is not None:
        numbers = {
            "difference": fixed(difference.mean, 3, signed=True),
            "interval": f"{fixed(difference.low, 3, signed=True)} … {fixed(difference.high, 3, signed=True)}",
            "allowed": fixed(checked.policy.largest_loss, 3),
        }
        told = (
            _t(
                "%(set)s: %(version)s is significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
            if checked.verdict is Verdict.WORSE
            else _t(
                "%(set)s: %(version)s is not significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
        )
        return told % (names | numbers)
    return {
        Verdict.IN_FORCE: _t("%(set)s: %(version)s has the settings that are in force."),
        Verdict.EMPTY: _t("%(set)s: no question has an expected passage, so nothing can be measured.")
        if kind_of(checked.policy) == RunKind.SEARCH
        else _t("%(set)s: no question has an expected answer or expects a refusal, so nothing can be measured."),
        Verdict.RUNNING: _t("%(set)s: %(version)s is being measured."),
    }.get(
        checked.verdict,
        _t("%(set)s: %(version)s and %(in_force)s have not both been measured on the documents as they are now."),
    ) % names


# After documents changed ---------------------------------------------------------------------------------------------


def watch() -> int:
    """Have measured what is in force on each watched set whose documents changed and have been read since.

    Returns how many runs were asked for.
    """
    asked = 0
    in_force = active_profile()
    for policy in GatePolicy.objects.filter(watches_corpus=True).select_related("evaluation_set"):
        evaluation_set = policy.evaluation_set
        being_read = Document.objects.filter(
            collection=evaluation_set.collection_id, status__in=[Document.Status.PENDING, Document.Status.PROCESSING]
        )
        kind = kind_of(policy)
        questions = measured_questions(evaluation_set, kind)
        runs = _runs(policy, in_force)
        if (
            not questions
            or being_read.exists()
            or runs.filter(status__in=UNFINISHED).exists()
            or runs.filter(
                status=EvaluationRun.Status.FAILED, finished_at__gt=timezone.now() - TRIED_AGAIN_AFTER
            ).exists()
            or _current_run(policy, in_force, fingerprint(questions, kind)) is not None
        ):
            continue
        request_run(evaluation_set, in_force, kind=kind, trigger=EvaluationRun.Trigger.CORPUS)
        asked += 1
    return asked


def examine(run: EvaluationRun) -> CorpusAlert | None:
    """The alert that the run gives, saved: what is in force does significantly worse than before documents changed.

    None for a run of anything else, of a set that nobody watches, of a kind that its gate does not ask for, or without
    an earlier one of the same settings and questions on other documents. It is compared with the last of these.
    """
    policy = GatePolicy.objects.filter(evaluation_set=run.evaluation_set_id, watches_corpus=True).first()
    if policy is None or kind_of(policy) != run.kind or to_json(active_profile().settings) != run.settings:
        return None
    baseline = (
        EvaluationRun.objects.filter(
            pk__lt=run.pk,
            evaluation_set=run.evaluation_set_id,
            kind=run.kind,
            settings=run.settings,
            fingerprint=run.fingerprint,
            conditions=run.conditions,
            status=EvaluationRun.Status.DONE,
            distrust="",
        )
        .exclude(corpus_version=run.corpus_version)
        .first()
    )
    if baseline is None:
        return None
    comparison = compare(run, baseline, policy.metric)
    difference = comparison.difference
    if difference is None or not is_worse(policy, comparison):
        return None
    logger.warning("%s does worse since documents changed: %s %+.3f.", policy, policy.metric, difference.mean)
    return CorpusAlert.objects.get_or_create(
        run=run,
        defaults={
            "policy": policy,
            "baseline": baseline,
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
        },
    )[0]


def open_alerts() -> QuerySet[CorpusAlert]:
    """What nobody has marked as seen, the newest first."""
    return CorpusAlert.objects.filter(acknowledged_at=None)


def _runs(policy: GatePolicy, profile: NamedProfile) -> QuerySet[EvaluationRun]:
    """Runs of the kind that the gate asks for, with the profile's settings, whatever they were called, newest first."""
    return EvaluationRun.objects.filter(
        evaluation_set=policy.evaluation_set_id, kind=kind_of(policy), settings=to_json(profile.settings)
    )


def _current_run(policy: GatePolicy, profile: NamedProfile, asked: str) -> EvaluationRun | None:
    """The newest reliable run of these questions on the documents as they are now."""
    return (
        _runs(policy, profile)
        .filter(
            status=EvaluationRun.Status.DONE,
            distrust="",
            fingerprint=asked,
            corpus_version=corpus_version(policy.evaluation_set.collection_id),
            conditions=conditions(kind_of(policy)),
        )
        .first()
    )
