from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _t

from chat.answering import writers
from chat.answering.prompts import PROMPT_VERSION
from chat.models import CollectionInstructions
from core.dataclass_json import to_json
from core.job_queue import enqueue_on_commit
from evaluation.exceptions import EvaluationError
from evaluation.models import EvaluationRun, EvaluationSet, RunKind
from retrieval.models import CollectionStatistics, Draft, Embedder
from retrieval.search.profiles.profiles import NamedProfile

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

UNFINISHED = (EvaluationRun.Status.QUEUED, EvaluationRun.Status.RUNNING)


def request_evaluation_run(
    evaluation_set: EvaluationSet,
    profile: NamedProfile,
    *,
    kind: str = RunKind.SEARCH,
    draft: Draft | None = None,
    instructions: CollectionInstructions | None = None,
    by: AbstractBaseUser | AnonymousUser | None = None,
    to_worker: bool = True,
) -> EvaluationRun:
    """Return a new run (measurement) of the set with this search profile, or an equal one that is unfinished.

    ``draft`` is an unpublished copy of the documents. If ``instructions`` is None, the active instructions are used. If
    ``to_worker`` is false, the caller measures the run. Raises: EvaluationError if the draft is not open.
    """
    if draft is not None and draft.status != Draft.Status.OPEN:
        names = {"draft": draft, "status": draft.get_status_display()}
        raise EvaluationError(_t("The documents of %(draft)s cannot be asked: it is %(status)s.") % names)
    stored = to_json(profile.settings)
    told = instructions or find_active_instructions(evaluation_set, kind)
    what: dict[str, object] = {"evaluation_set": evaluation_set, "draft": draft, "kind": kind, "instructions": told}
    waiting = EvaluationRun.objects.filter(**what, settings=stored, status__in=UNFINISHED)
    if (run := waiting.first()) is not None:
        return run
    run = EvaluationRun.objects.create(
        **what,
        profile_version_id=profile.version_id,
        profile_name=profile.name,
        settings=stored,
        total=evaluation_set.questions.measurable(kind).count(),
        created_by_id=by.pk if by else None,
    )
    if to_worker:
        enqueue_on_commit(EvaluationRun, [run.pk])
    return run


def find_active_instructions(evaluation_set: EvaluationSet, kind: str) -> CollectionInstructions | None:
    if kind != RunKind.ANSWERS:
        return None
    return CollectionInstructions.objects.filter(collection=evaluation_set.collection_id, is_active=True).first()


def cancel_runs(runs: QuerySet[EvaluationRun]) -> int:
    """Cancel the unfinished runs and return their number. A run that is being measured stops at its next question."""
    return runs.filter(status__in=UNFINISHED).update(
        status=EvaluationRun.Status.CANCELLED, lease=None, retry_at=None, finished_at=timezone.now()
    )


def corpus_version(collection_id: int) -> int:
    return CollectionStatistics.objects.filter(pk=collection_id).values_list("version", flat=True).first() or 0


def describe_run_conditions(kind: str = RunKind.SEARCH) -> dict[str, object]:
    embedder = Embedder.objects.filter(is_active=True).values_list("name", flat=True).first()
    of_search = {"embedder": embedder or "", "hybrid": settings.RETRIEVAL_HYBRID_ENABLED}
    if kind == RunKind.SEARCH:
        return of_search
    prompt = PROMPT_VERSION if writers.find_generator() is not None else None
    return {**of_search, "generator": writers.get_default_writer_name(), "prompt_version": prompt}
