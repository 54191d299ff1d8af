"""Which runs wait for a worker. A run's row is its job: what the broker loses, :func:`sweep` sends again."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from evaluation.models import EvaluationRun, EvaluationSet
from evaluation.tasks import measure_evaluation_run
from retrieval.models import CollectionStatistics, Embedder
from retrieval.profiles import NamedProfile
from retrieval.ranking.profile import to_json

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)

HEARTBEAT_LOST_AFTER = timedelta(seconds=30)
# How long a worker that was told may take to begin, before another one is told.
BEGUN_WITHIN = timedelta(minutes=5)
# A row younger than this is just being sent by the process that made it.
SENT_WITHIN = timedelta(seconds=10)
MOST_ATTEMPTS = 3
UNFINISHED = (EvaluationRun.Status.QUEUED, EvaluationRun.Status.RUNNING)


def request_run(
    evaluation_set: EvaluationSet,
    profile: NamedProfile,
    *,
    trigger: str = EvaluationRun.Trigger.MANUAL,
    by: AbstractBaseUser | AnonymousUser | None = None,
) -> EvaluationRun:
    """A run of the set with this profile, for a worker to measure; the one that waits already, when there is one."""
    stored = to_json(profile.settings)
    waiting = EvaluationRun.objects.filter(evaluation_set=evaluation_set, settings=stored, status__in=UNFINISHED)
    if (run := waiting.first()) is not None:
        return run
    run = EvaluationRun.objects.create(
        evaluation_set=evaluation_set,
        profile_version_id=profile.version_id,
        profile_name=profile.name,
        settings=stored,
        trigger=trigger,
        total=evaluation_set.questions.measurable().count(),
        created_by_id=by.pk if by else None,
    )
    transaction.on_commit(lambda: _enqueue([run.pk]))
    return run


def cancel(runs: QuerySet[EvaluationRun]) -> int:
    """End what is not finished, at the next question of a run that is under way; returns how many that were."""
    return runs.filter(status__in=UNFINISHED).update(
        status=EvaluationRun.Status.CANCELLED, claim=None, next_attempt_at=None, finished_at=timezone.now()
    )


def sweep() -> int:
    """Tell workers of every run that waits without one: interrupted, due again, or never picked up.

    Returns how many they were told of.
    """
    now = timezone.now()
    lost = EvaluationRun.objects.filter(
        status=EvaluationRun.Status.RUNNING, heartbeat_at__lt=now - HEARTBEAT_LOST_AFTER
    )
    # What ends the worker itself (by memory, say) would do so for ever.
    lost.filter(attempts__gte=MOST_ATTEMPTS).update(
        status=EvaluationRun.Status.FAILED,
        claim=None,
        error=f"It was interrupted {MOST_ATTEMPTS} times: the worker may run out of memory.",
        finished_at=now,
    )
    lost.update(status=EvaluationRun.Status.QUEUED, claim=None, next_attempt_at=None, enqueued_at=None)
    waiting = EvaluationRun.objects.filter(
        Q(enqueued_at=None, created_at__lt=now - SENT_WITHIN) | Q(enqueued_at__lt=now - BEGUN_WITHIN),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        status=EvaluationRun.Status.QUEUED,
    )
    return _enqueue(waiting.order_by("pk").values_list("pk", flat=True))


def corpus_version(collection_id: int) -> int:
    """The state of the collection's passages; 0 before anything was put into it."""
    return CollectionStatistics.objects.filter(pk=collection_id).values_list("version", flat=True).first() or 0


def conditions() -> dict[str, Any]:
    """What a search depends on beside its profile and the documents."""
    embedder = Embedder.objects.filter(is_active=True).values_list("name", flat=True).first()
    return {"embedder": embedder or "", "hybrid": settings.RETRIEVAL_HYBRID_ENABLED}


def _enqueue(ids: Iterable[int]) -> int:
    """Tell a worker of each; when the broker does not answer, the next sweep will. Returns how many were told."""
    sent = []
    for pk in ids:
        try:
            measure_evaluation_run.delay(pk)
        except OperationalError as error:
            logger.warning("The broker did not take evaluation run %s (%s); the schedule will.", pk, error)
            break
        sent.append(pk)
    EvaluationRun.objects.filter(pk__in=sent, status=EvaluationRun.Status.QUEUED).update(enqueued_at=timezone.now())
    return len(sent)
