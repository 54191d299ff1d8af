"""Gates: what is measured before a search profile, a draft of documents or instructions are published.

A gate compares a run of the candidate with one of what is in force. It says whether the candidate is significantly
worse on the questions of its set, not whether it is good. With few questions the interval is wide, and few differences
are significant; the pages show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from chat import conf as chat_conf
from chat.models import CollectionInstructions
from evaluation.figures import fixed
from evaluation.models import EvaluationRun, EvaluationSet, GatePolicy, RunKind
from evaluation.runs.queue import UNFINISHED, conditions, corpus_version, instructions_in_force, request_run
from evaluation.runs.results import KIND_OF_MEASURE, RunComparison, compare
from evaluation.sets.resolution import fingerprint, measured_questions
from evaluation.statistics import is_loss
from retrieval.dataclass_json import to_json
from retrieval.gates import Objection
from retrieval.models import Collection, Document, Draft, SearchProfileVersion
from retrieval.search.profiles import NamedProfile, active_profile, named

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Verdict(models.TextChoices):
    """What a gate says of a candidate."""

    IN_FORCE = "in_force", _("in force")
    PASSED = "passed", _("passed")
    WORSE = "worse", _("worse")
    RUNNING = "running", _("being measured")
    BEING_READ = "being_read", _("being read")
    NOT_MEASURED = "not_measured", _("not measured")
    EMPTY = "empty", _("nothing to measure")


@dataclass(frozen=True, slots=True)
class GateSubject:
    """One side of a comparison: a profile on the documents in service, or on those of a draft."""

    name: str
    profile: NamedProfile
    draft: Draft | None = None
    # Instructions for a model; None: those in force.
    instructions: CollectionInstructions | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A gate's verdict on ``candidate`` compared with what is ``in_force``, with the runs of both, if there are any.

    ``failure`` has the errors of the last runs, if they failed.
    """

    policy: GatePolicy
    candidate: GateSubject
    in_force: GateSubject
    verdict: Verdict
    run: EvaluationRun | None = None
    baseline: EvaluationRun | None = None
    comparison: RunComparison | None = None
    failure: str = ""

    @property
    def objects(self) -> bool:
        return self.verdict not in (Verdict.IN_FORCE, Verdict.PASSED)


GateCandidate = SearchProfileVersion | Draft | CollectionInstructions


def check(policy: GatePolicy, subject: GateCandidate) -> GateCheck:
    """What the gate says of publishing the version, the draft, or the instructions now.

    A version and instructions are compared with those in force, on the documents in service; a draft's documents are
    compared with those in service, with the profile in force. Only runs on the current documents and questions count.
    Raises: ImproperProfile when the version cannot be read.
    """
    now = active_profile()
    if isinstance(subject, Draft):
        candidate = GateSubject(str(subject.working_copy or subject), now, subject)
        in_force = GateSubject(str(subject.collection), now)
        if documents_being_read(subject.working_copy_id):
            return GateCheck(policy, candidate, in_force, Verdict.BEING_READ)
    elif isinstance(subject, CollectionInstructions):
        told = instructions_in_force(policy.evaluation_set, kind_of(policy))
        candidate = GateSubject(str(subject), now, instructions=subject)
        in_force = GateSubject(str(told or _t("no instructions")), now)
    else:
        candidate, in_force = GateSubject(str(subject), named(subject)), GateSubject(str(now), now)
        if to_json(candidate.profile.settings) == to_json(now.settings):
            return GateCheck(policy, candidate, in_force, Verdict.IN_FORCE)
    return _compare(policy, candidate, in_force)


def _compare(policy: GatePolicy, candidate: GateSubject, in_force: GateSubject) -> GateCheck:
    kind = kind_of(policy)
    questions = measured_questions(policy.evaluation_set, kind)
    if not questions:
        return GateCheck(policy, candidate, in_force, Verdict.EMPTY)
    asked = fingerprint(questions, kind)
    run, baseline = (current_run(policy, side, asked) for side in (candidate, in_force))
    if run is not None and baseline is not None:
        comparison = compare(run, baseline, policy.metric)
        if comparison.difference is None:
            # No question expects what the metric measures.
            return GateCheck(policy, candidate, in_force, Verdict.EMPTY, run, baseline, comparison)
        verdict = Verdict.WORSE if is_worse(policy, comparison) else Verdict.PASSED
        return GateCheck(policy, candidate, in_force, verdict, run, baseline, comparison)
    missing = [side for side, found in ((candidate, run), (in_force, baseline)) if found is None]
    waiting = [runs_of(policy, side).filter(status__in=UNFINISHED).exists() for side in missing]
    last = [runs_of(policy, side).first() for side in missing]
    return GateCheck(
        policy,
        candidate,
        in_force,
        Verdict.RUNNING if all(waiting) else Verdict.NOT_MEASURED,
        run,
        baseline,
        failure=" ".join(one.error or one.unreliable_reason for one in last if one is not None).strip(),
    )


def request_runs(
    policy: GatePolicy, subject: GateCandidate, by: AbstractBaseUser | AnonymousUser | None = None
) -> list[EvaluationRun]:
    """Request the runs that the gate lacks for its verdict; empty if it has them.

    Raises: ImproperProfile; EvaluationError for a draft that is not open.
    """
    checked = check(policy, subject)
    if checked.verdict is not Verdict.NOT_MEASURED:
        return []
    how: dict[str, Any] = {"kind": kind_of(policy), "by": by}
    return [
        request_run(policy.evaluation_set, side.profile, draft=side.draft, instructions=side.instructions, **how)
        for side, run in ((checked.candidate, checked.run), (checked.in_force, checked.baseline))
        if run is None
    ]


def kind_of(policy: GatePolicy) -> RunKind:
    """The kind of run that measures the gate's metric."""
    return KIND_OF_MEASURE[policy.metric]


def is_worse(policy: GatePolicy, comparison: RunComparison) -> bool:
    """Whether the loss is larger than allowed, beyond chance."""
    changed = [pair.difference for pair in (*comparison.better, *comparison.worse)]
    return comparison.difference is not None and is_loss(comparison.difference, changed, policy.largest_loss)


def documents_being_read(collection_id: int | None) -> bool:
    """Whether documents of the collection are waiting to be read, or being read."""
    unread = (Document.Status.PENDING, Document.Status.PROCESSING)
    return Document.objects.filter(collection=collection_id, status__in=unread).exists()


def runs_of(policy: GatePolicy, side: GateSubject) -> QuerySet[EvaluationRun]:
    """Runs of the gate's kind on the side's documents with its settings, newest first."""
    return EvaluationRun.objects.filter(
        evaluation_set=policy.evaluation_set_id,
        draft=side.draft,
        kind=kind_of(policy),
        instructions=side.instructions or instructions_in_force(policy.evaluation_set, kind_of(policy)),
        settings=to_json(side.profile.settings),
    )


def current_run(policy: GatePolicy, side: GateSubject, asked: str) -> EvaluationRun | None:
    """The newest reliable run of these questions on the side's current documents."""
    collection = policy.evaluation_set.collection_id if side.draft is None else side.draft.working_copy_id
    if collection is None:
        return None
    return (
        runs_of(policy, side)
        .filter(
            status=EvaluationRun.Status.DONE,
            unreliable_reason="",
            fingerprint=asked,
            corpus_version=corpus_version(collection),
            conditions=conditions(kind_of(policy)),
        )
        .first()
    )


_POLICIES = GatePolicy.objects.select_related("evaluation_set__collection")


def guards(collection: Collection) -> bool:
    """Whether a gate requires that the collection's documents change only in drafts."""
    return GatePolicy.objects.filter(required_for_documents=True, evaluation_set__collection=collection).exists()


def objections_to(subject: SearchProfileVersion | Draft) -> Iterator[Objection]:
    """The objections of the gates that are required for a version, or that guard the draft's collection."""
    if isinstance(subject, Draft):
        page = "admin:evaluation_gatepolicy_check_draft"
        policies = _POLICIES.filter(required_for_documents=True, evaluation_set__collection=subject.collection_id)
    else:
        page, policies = "admin:evaluation_gatepolicy_check", _POLICIES.filter(required_for_publishing=True)
    for policy in policies:
        checked = check(policy, subject)
        if checked.objects:
            yield Objection(reason_of(checked), reverse(page, args=[policy.pk, subject.pk]))


def reason_of(checked: GateCheck) -> str:
    """The verdict in a sentence."""
    names = {
        "set": checked.policy.evaluation_set,
        "candidate": checked.candidate,
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
                "%(set)s: %(candidate)s is significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
            if checked.verdict is Verdict.WORSE
            else _t(
                "%(set)s: %(candidate)s is not significantly worse than %(in_force)s: %(metric)s %(difference)s "
                "(%(interval)s), allowed is a loss of %(allowed)s."
            )
        )
        return told % (names | numbers)
    return {
        Verdict.IN_FORCE: _t("%(set)s: %(candidate)s has the settings that are in force."),
        Verdict.EMPTY: _t("%(set)s: no question has an expected passage, so nothing can be measured.")
        if kind_of(checked.policy) == RunKind.SEARCH
        else _t("%(set)s: no question has what “%(metric)s” needs, so nothing can be measured."),
        Verdict.RUNNING: _t("%(set)s: %(candidate)s is being measured."),
        Verdict.BEING_READ: _t("%(set)s: documents of %(candidate)s are still being read."),
    }.get(
        checked.verdict,
        _t("%(set)s: %(candidate)s and %(in_force)s have not both been measured on the current documents."),
    ) % names


# Instructions to a language model are put in force if the answers are not worse.


def instruction_gates(collection_id: int) -> list[GatePolicy]:
    """A gate for each set of the collection that an answers run can ask: the set's own if it measures answers, or one
    that allows no loss."""
    found = []
    for evaluation_set in EvaluationSet.objects.filter(collection=collection_id).select_related("gate_policy"):
        questions = evaluation_set.questions.measurable(RunKind.ANSWERS)
        policy = getattr(evaluation_set, "gate_policy", None)
        if policy is None or kind_of(policy) != RunKind.ANSWERS:
            by_words = questions.filter(must__len__gt=0).exists()
            metric = GatePolicy.Metric.EXPECTATIONS if by_words else GatePolicy.Metric.AGREEMENT
            policy = GatePolicy(evaluation_set=evaluation_set, metric=metric)
        if questions.exists():
            found.append(policy)
    return found


def request_instructions(version: CollectionInstructions, by: AbstractBaseUser | AnonymousUser) -> bool:
    """Put the version in force when its gates pass; at once without a gate or a language model.

    Returns whether it is measured first.
    """
    if not chat_conf.language_models() or not instruction_gates(version.collection_id):
        version.activate(_t("It was not measured."))
        return False
    version.requested_at, version.requested_by_id, version.outcome = timezone.now(), by.pk, ""
    version.save(update_fields=["requested_at", "requested_by", "outcome"])
    settle_instructions()
    return True


def settle_instructions() -> None:
    """Put in force, or turn down, the waiting versions whose gates have a verdict. If the worker dies, the next call
    does it."""
    waiting = CollectionInstructions.objects.filter(requested_at__isnull=False)
    for pk in waiting.values_list("pk", flat=True):
        with transaction.atomic():
            version = waiting.select_for_update(of=["self"], skip_locked=True).filter(pk=pk).first()
            if version is not None:
                _settle(version)


def _settle(version: CollectionInstructions) -> None:
    checks = [check(policy, version) for policy in instruction_gates(version.collection_id)]
    counted = [checked for checked in checks if checked.verdict is not Verdict.EMPTY]
    told = " ".join(map(reason_of, counted or checks))
    if all(checked.verdict is Verdict.PASSED for checked in counted):
        version.activate(told or _t("It was not measured."))
        return
    ended = [
        run
        for checked in counted
        for side in (checked.candidate, checked.in_force)
        for run in runs_of(checked.policy, side).filter(created_at__gte=version.requested_at)
        if run.status not in UNFINISHED and not run.is_reliable
    ]
    if ended or any(checked.verdict is Verdict.WORSE for checked in counted):
        reasons = [told, *(run.error or run.unreliable_reason for run in ended)]
        version.requested_at, version.outcome = None, " ".join(filter(None, reasons))
        version.save(update_fields=["requested_at", "outcome"])
        return
    for checked in counted:
        request_runs(checked.policy, version, version.requested_by)
