"""What a gate says of a version or of a draft: a run of it, held against a run of what readers meet."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import QuerySet

from evaluation.models import EvaluationRun, GatePolicy, RunKind
from evaluation.runs.measures import KIND_OF_MEASURE
from evaluation.runs.queue import UNFINISHED, conditions, corpus_version, request_run
from evaluation.runs.results import RunComparison, compare
from evaluation.sets.resolution import fingerprint, measured_questions
from evaluation.statistics.intervals import is_loss
from retrieval.models import Document, Draft, SearchProfileVersion
from retrieval.ranking.profile_json import to_json
from retrieval.search.profiles import NamedProfile, active_profile, named

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


class Verdict(StrEnum):
    """What a gate says of a version or of a draft."""

    IN_FORCE = "in force"
    PASSED = "passed"
    WORSE = "worse"
    RUNNING = "running"
    BEING_READ = "being read"
    NOT_MEASURED = "not measured"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class GateSubject:
    """What a run of one side asks, and with what: the documents in service, or those of a draft."""

    name: str
    profile: NamedProfile
    draft: Draft | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class GateCheck:
    """A gate's verdict on ``candidate``, and the runs that it rests on, as far as there are any.

    ``in_force`` is what readers meet now. ``failure`` is what the last run of either said, when it did not succeed.
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


def check(policy: GatePolicy, subject: SearchProfileVersion | Draft) -> GateCheck:
    """What the gate says of publishing the version, or the draft, now.

    A version is held against what is in force, on the documents in service; a draft's documents are held against
    those, with what is in force. It compares runs on the documents and the questions as they are: what was measured
    before either changed does not count. Raises: ImproperProfile when the version cannot be read.
    """
    now = active_profile()
    if isinstance(subject, Draft):
        candidate = GateSubject(str(subject.working_copy or subject), now, subject)
        in_force = GateSubject(str(subject.collection), now)
        if documents_being_read(subject.working_copy_id):
            return GateCheck(policy, candidate, in_force, Verdict.BEING_READ)
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
            # Both were asked, but no question expects what the metric tells of.
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
    policy: GatePolicy, subject: SearchProfileVersion | Draft, by: AbstractBaseUser | AnonymousUser | None = None
) -> list[EvaluationRun]:
    """The runs that the gate lacks for its verdict, for a worker to measure; none when it has them.

    Raises: ImproperProfile, EvaluationError for a draft that no run can be asked for.
    """
    checked = check(policy, subject)
    if checked.verdict is not Verdict.NOT_MEASURED:
        return []
    missing = [
        *([checked.candidate] if checked.run is None else []),
        *([checked.in_force] if checked.baseline is None else []),
    ]
    kind, trigger = kind_of(policy), EvaluationRun.Trigger.GATE
    return [
        request_run(policy.evaluation_set, side.profile, kind=kind, draft=side.draft, trigger=trigger, by=by)
        for side in missing
    ]


def kind_of(policy: GatePolicy) -> RunKind:
    """The kind of run that measures what the gate asks for."""
    return KIND_OF_MEASURE[policy.metric]


def is_worse(policy: GatePolicy, comparison: RunComparison) -> bool:
    """Whether the questions became worse by more than the largest allowed loss, beyond chance."""
    changed = [pair.difference for pair in (*comparison.better, *comparison.worse)]
    return comparison.difference is not None and is_loss(comparison.difference, changed, policy.largest_loss)


def documents_being_read(collection_id: int | None) -> bool:
    """Whether documents of the collection wait to be read, or are."""
    unread = (Document.Status.PENDING, Document.Status.PROCESSING)
    return Document.objects.filter(collection=collection_id, status__in=unread).exists()


def runs_of(policy: GatePolicy, side: GateSubject) -> QuerySet[EvaluationRun]:
    """Runs of the kind that the gate asks for, of the same documents with the same settings, whatever these were
    called, newest first."""
    return EvaluationRun.objects.filter(
        evaluation_set=policy.evaluation_set_id,
        draft=side.draft,
        kind=kind_of(policy),
        settings=to_json(side.profile.settings),
    )


def current_run(policy: GatePolicy, side: GateSubject, asked: str) -> EvaluationRun | None:
    """The newest reliable run of these questions on the side's documents as they are now."""
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
