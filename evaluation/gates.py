"""Gates: tests that a candidate (search profile, draft or instructions) must pass before it is published.

A gate tests whether the candidate is significantly worse than what is published now, not whether it is good.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import models, transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat.answering import writers
from chat.models import CollectionInstructions
from core.dataclass_json import to_json
from evaluation.figures import format_fixed
from evaluation.models import EvaluationRun, EvaluationSet, GatePolicy, RunKind
from evaluation.runs.queue import (
    UNFINISHED,
    corpus_version,
    describe_run_conditions,
    find_active_instructions,
    request_evaluation_run,
)
from evaluation.runs.results import KIND_OF_MEASURE, RunComparison, compare_runs
from evaluation.sets.resolution import hash_questions, list_measured_questions
from evaluation.statistics import is_significant_loss
from retrieval.gates import PublicationObjection
from retrieval.models import Collection, Document, Draft, SearchProfileVersion
from retrieval.search.profiles.profiles import NamedProfile, active_profile, build_named_profile

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Verdict(models.TextChoices):
    IN_FORCE = "in_force", _("in use")
    PASSED = "passed", _("passed")
    WORSE = "worse", _("worse")
    RUNNING = "running", _("being measured")
    BEING_READ = "being_read", _("being read")
    NOT_MEASURED = "not_measured", _("not measured")
    EMPTY = "empty", _("nothing to measure")


@dataclass(slots=True)
class GateComparisonSide:
    """A side of a gate's comparison: the candidate or the published state. ``run`` is its newest measurement."""

    name: str
    profile: NamedProfile
    instructions: CollectionInstructions | None
    draft: Draft | None = None
    run: EvaluationRun | None = None

    def find_runs(self, policy: GatePolicy) -> QuerySet[EvaluationRun]:
        return EvaluationRun.objects.filter(
            evaluation_set=policy.evaluation_set_id,
            draft=self.draft,
            kind=get_run_kind(policy),
            instructions=self.instructions,
            settings=to_json(self.profile.settings),
        )


@dataclass(frozen=True, slots=True)
class GateCheck:
    """The decision of a gate: ``candidate`` is compared with ``in_force``, which is published now.

    ``failure`` contains the errors of the last runs.
    """

    policy: GatePolicy
    candidate: GateComparisonSide
    in_force: GateComparisonSide
    verdict: Verdict
    comparison: RunComparison | None = None
    failure: str = ""

    @property
    def compared_sides(self) -> tuple[GateComparisonSide, GateComparisonSide]:
        return self.candidate, self.in_force

    @property
    def is_objection(self) -> bool:
        return self.verdict not in (Verdict.IN_FORCE, Verdict.PASSED)


GateCandidate = SearchProfileVersion | Draft | CollectionInstructions


def check_gate(policy: GatePolicy, subject: GateCandidate) -> GateCheck:
    """Return whether ``subject`` may be published now.

    ``subject`` is a version of a search profile, a draft of a collection's documents, or instructions for the language
    model. Only measurements of the current documents and questions are used. Raises: ImproperProfile.
    """
    now, told = active_profile(), find_active_instructions(policy.evaluation_set, get_run_kind(policy))
    if isinstance(subject, Draft):
        candidate = GateComparisonSide(str(subject.working_copy or subject), now, told, subject)
        in_force = GateComparisonSide(str(subject.collection), now, told)
        unread = (Document.Status.PENDING, Document.Status.PROCESSING)
        if Document.objects.filter(collection=subject.working_copy_id, status__in=unread).exists():
            return GateCheck(policy, candidate, in_force, Verdict.BEING_READ)
    elif isinstance(subject, CollectionInstructions):
        candidate = GateComparisonSide(str(subject), now, subject)
        in_force = GateComparisonSide(str(told or _t("no instructions")), now, told)
    else:
        candidate, in_force = (
            GateComparisonSide(str(subject), build_named_profile(subject), told),
            GateComparisonSide(str(now), now, told),
        )
        if to_json(candidate.profile.settings) == to_json(now.settings):
            return GateCheck(policy, candidate, in_force, Verdict.IN_FORCE)
    return _compare(policy, candidate, in_force)


def _compare(policy: GatePolicy, candidate: GateComparisonSide, in_force: GateComparisonSide) -> GateCheck:
    kind = get_run_kind(policy)
    questions = list_measured_questions(policy.evaluation_set, kind)
    if not questions:
        return GateCheck(policy, candidate, in_force, Verdict.EMPTY)
    asked = hash_questions(questions, kind)
    for side in (candidate, in_force):
        side.run = _find_current_run(policy, side, asked)
    if candidate.run is not None and in_force.run is not None:
        comparison = compare_runs(candidate.run, in_force.run, policy.metric)
        changed = [pair.difference for pair in (*comparison.better, *comparison.worse)]
        if comparison.difference is None:
            verdict = Verdict.EMPTY
        else:
            is_worse = is_significant_loss(comparison.difference, changed, policy.largest_loss)
            verdict = Verdict.WORSE if is_worse else Verdict.PASSED
        return GateCheck(policy, candidate, in_force, verdict, comparison)
    missing = [side.find_runs(policy) for side in (candidate, in_force) if side.run is None]
    are_waiting = all(runs.filter(status__in=UNFINISHED).exists() for runs in missing)
    last = [run for runs in missing if (run := runs.first()) is not None]
    failure = " ".join(run.error or run.unreliable_reason for run in last).strip()
    verdict = Verdict.RUNNING if are_waiting else Verdict.NOT_MEASURED
    return GateCheck(policy, candidate, in_force, verdict, failure=failure)


def request_runs(
    policy: GatePolicy, subject: GateCandidate, by: AbstractBaseUser | AnonymousUser | None = None
) -> list[EvaluationRun]:
    """Start and return the runs that the gate still needs, of ``subject`` and of the published state.

    Raises: ImproperProfile; EvaluationError if ``subject`` is a draft that was published or discarded.
    """
    checked = check_gate(policy, subject)
    if checked.verdict is not Verdict.NOT_MEASURED:
        return []
    kind = get_run_kind(policy)
    return [
        request_evaluation_run(
            policy.evaluation_set,
            side.profile,
            kind=kind,
            by=by,
            draft=side.draft,
            instructions=side.instructions,
        )
        for side in checked.compared_sides
        if side.run is None
    ]


def get_run_kind(policy: GatePolicy) -> RunKind:
    return KIND_OF_MEASURE[policy.metric]


def _find_current_run(policy: GatePolicy, side: GateComparisonSide, asked: str) -> EvaluationRun | None:
    collection = policy.evaluation_set.collection_id if side.draft is None else side.draft.working_copy_id
    if collection is None:
        return None
    done = side.find_runs(policy).filter(status=EvaluationRun.Status.DONE, unreliable_reason="", fingerprint=asked)
    return done.filter(
        corpus_version=corpus_version(collection), conditions=describe_run_conditions(get_run_kind(policy))
    ).first()


def has_document_gate(collection: Collection) -> bool:
    """Return whether a gate forbids changes of the collection's documents except by drafts (unpublished copies)."""
    return GatePolicy.objects.filter(required_for_documents=True, evaluation_set__collection=collection).exists()


def find_gate_objections(subject: SearchProfileVersion | Draft) -> Iterator[PublicationObjection]:
    """Yield why the version or draft must not be published now: one objection for each gate that it fails."""
    policies = GatePolicy.objects.select_related("evaluation_set__collection")
    if isinstance(subject, Draft):
        kind = "drafts"
        policies = policies.filter(required_for_documents=True, evaluation_set__collection=subject.collection_id)
    else:
        kind, policies = "versions", policies.filter(required_for_publishing=True)
    for policy in policies:
        checked = check_gate(policy, subject)
        if checked.is_objection:
            address = reverse("admin:evaluation_gatepolicy_check", args=[policy.pk, kind, subject.pk])
            yield PublicationObjection(describe_gate_check(checked), address)


_REASONS = {
    Verdict.IN_FORCE: _("%(set)s: %(candidate)s has the settings that are in use."),
    Verdict.PASSED: _(
        "%(set)s: %(candidate)s is not significantly worse than %(in_force)s: %(metric)s %(difference)s "
        "(%(interval)s), allowed is a loss of %(allowed)s."
    ),
    Verdict.WORSE: _(
        "%(set)s: %(candidate)s is significantly worse than %(in_force)s: %(metric)s %(difference)s "
        "(%(interval)s), allowed is a loss of %(allowed)s."
    ),
    Verdict.RUNNING: _("%(set)s: %(candidate)s is being measured."),
    Verdict.BEING_READ: _("%(set)s: documents of %(candidate)s are still being read."),
    Verdict.NOT_MEASURED: _(
        "%(set)s: %(candidate)s and %(in_force)s have not both been measured on the current documents."
    ),
    Verdict.EMPTY: _("%(set)s: no question has what “%(metric)s” needs, so nothing can be measured."),
}


def describe_gate_check(checked: GateCheck) -> str:
    facts = {
        "set": checked.policy.evaluation_set,
        "candidate": checked.candidate.name,
        "in_force": checked.in_force.name,
        "metric": checked.policy.get_metric_display(),
        "allowed": format_fixed(checked.policy.largest_loss, 3),
    }
    if checked.comparison is not None and (difference := checked.comparison.difference) is not None:
        low, high = format_fixed(difference.low, 3, signed=True), format_fixed(difference.high, 3, signed=True)
        facts |= {"difference": format_fixed(difference.mean, 3, signed=True), "interval": f"{low} … {high}"}
    return str(_REASONS[checked.verdict]) % facts


def list_instruction_gates(collection_id: int) -> list[GatePolicy]:
    """Return the tests (gates) that new instructions must pass, one for each evaluation set with answers."""
    found = []
    for evaluation_set in EvaluationSet.objects.filter(collection=collection_id).select_related("gate_policy"):
        questions = evaluation_set.questions.measurable(RunKind.ANSWERS)
        policy = getattr(evaluation_set, "gate_policy", None)
        if policy is None or get_run_kind(policy) != RunKind.ANSWERS:
            by_words = questions.filter(must__len__gt=0).exists()
            metric = GatePolicy.Metric.EXPECTATIONS if by_words else GatePolicy.Metric.AGREEMENT
            policy = GatePolicy(evaluation_set=evaluation_set, metric=metric)
        if questions.exists():
            found.append(policy)
    return found


def request_activation(version: CollectionInstructions, by: AbstractBaseUser | AnonymousUser) -> bool:
    """Activate the version of the instructions when its gates have passed, and return True.

    If there are no gates, the version is activated at once, and the result is False.
    """
    if not writers.list_language_models() or not list_instruction_gates(version.collection_id):
        version.activate(_t("It was not measured."))
        return False
    version.requested_at, version.requested_by_id, version.outcome = timezone.now(), by.pk, ""
    version.save(update_fields=["requested_at", "requested_by", "outcome"])
    decide_instruction_activations()
    return True


def decide_instruction_activations() -> None:
    """Activate or reject the versions of instructions that wait for activation and are completely measured."""
    waiting = CollectionInstructions.objects.filter(requested_at__isnull=False)
    for pk in waiting.values_list("pk", flat=True):
        with transaction.atomic():
            version = waiting.select_for_update(of=["self"], skip_locked=True).filter(pk=pk).first()
            if version is not None:
                _decide_activation(version)


def _decide_activation(version: CollectionInstructions) -> None:
    checks = [check_gate(policy, version) for policy in list_instruction_gates(version.collection_id)]
    counted = [checked for checked in checks if checked.verdict is not Verdict.EMPTY]
    told = " ".join(map(describe_gate_check, counted or checks))
    if all(checked.verdict is Verdict.PASSED for checked in counted):
        version.activate(told or _t("It was not measured."))
        return
    ended = [
        run
        for checked in counted
        for side in checked.compared_sides
        for run in side.find_runs(checked.policy).filter(created_at__gte=version.requested_at)
        if run.status not in UNFINISHED and not run.is_reliable
    ]
    if ended or any(checked.verdict is Verdict.WORSE for checked in counted):
        reasons = [told, *(run.error or run.unreliable_reason for run in ended)]
        version.requested_at, version.outcome = None, " ".join(filter(None, reasons))
        version.save(update_fields=["requested_at", "outcome"])
        return
    for checked in counted:
        request_runs(checked.policy, version, version.requested_by)
