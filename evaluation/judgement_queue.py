"""Which answers wait for a judge.

A judgement's row is its job, so that no broker can lose or double it: what the broker forgets, :func:`sweep` sends
again, and what never got a row, because the web process died right after the answer, :func:`request_forgotten` finds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from chat.models import Answer
from evaluation import conf
from evaluation.models import Judgement, Score
from evaluation.tasks import judge_answer

logger = logging.getLogger(__name__)

HEARTBEAT_LOST_AFTER = timedelta(seconds=30)
# How long a worker that was told may take to begin, before another one is told.
BEGUN_WITHIN = timedelta(minutes=5)
# A row younger than this is just being sent by the process that made it.
SENT_WITHIN = timedelta(seconds=10)
FORGOTTEN_AFTER = timedelta(minutes=2)
FORGOTTEN_UP_TO = timedelta(days=1)
MOST_AT_ONCE = 500


def request(answer: Answer, *, judges: Sequence[str] | None = None, reference: str = "") -> list[Judgement]:
    """The answer's judgements, to be made by a worker; those that were there before are left as they are.

    ``judges`` are by default those that the settings ask for. With an expected answer as ``reference``, the passages
    are judged against it as well.
    """
    wanted = planned(answer) if judges is None else judges
    Judgement.objects.bulk_create(
        (Judgement(answer=answer, judge=judge, reference=reference) for judge in wanted), ignore_conflicts=True
    )
    judgements = list(Judgement.objects.filter(answer=answer, judge__in=wanted).order_by("pk"))
    waiting = [one.pk for one in judgements if one.status == Judgement.Status.QUEUED and one.enqueued_at is None]
    transaction.on_commit(lambda: _enqueue(waiting))
    return judgements


def planned(answer: Answer) -> list[str]:
    """The judges that an answer gets unasked. The model judges a sample, and no answer that only repeats another."""
    judges = []
    if settings.EVALUATE_ANSWERS:
        judges.append(Judgement.Judge.OFFLINE.value)
    if settings.EVALUATE_WITH_MODEL and answer.repeats_id is None and conf.is_sampled(answer.pk):
        judges.append(Judgement.Judge.MODEL.value)
    return judges


def request_again(judgements: QuerySet[Judgement]) -> int:
    """Have these judged from the start, by the judge as it is configured now; returns how many.

    A worker busy with one of them loses its claim.
    """
    with transaction.atomic():
        ids = list(judgements.select_for_update(of=("self",)).values_list("pk", flat=True))
        Score.objects.filter(judgement__in=ids).delete()
        Judgement.objects.filter(pk__in=ids).update(
            status=Judgement.Status.QUEUED,
            error="",
            attempts=0,
            claim=None,
            next_attempt_at=None,
            enqueued_at=None,
            finished_at=None,
            prompt_tokens=0,
            completion_tokens=0,
        )
        transaction.on_commit(lambda: _enqueue(ids))
    return len(ids)


def request_forgotten() -> int:
    """Have judged what was answered of late and has no judgement; returns how many answers that were."""
    now = timezone.now()
    forgotten = Answer.objects.filter(
        ~Exists(Judgement.objects.filter(answer=OuterRef("pk"))),
        status=Answer.Status.COMPLETED,
        completed_at__range=(now - FORGOTTEN_UP_TO, now - FORGOTTEN_AFTER),
    ).only("pk", "repeats")
    return sum(bool(request(answer)) for answer in forgotten[:MOST_AT_ONCE])


def sweep() -> int:
    """Tell workers of every judgement that waits without one: interrupted, due again, or never picked up.

    Returns how many they were told of.
    """
    now = timezone.now()
    lost = Judgement.objects.filter(status=Judgement.Status.RUNNING, heartbeat_at__lt=now - HEARTBEAT_LOST_AFTER)
    # What ends the worker itself (by memory, say) would do so for ever.
    lost.filter(attempts__gte=settings.JUDGE_ATTEMPTS).update(
        status=Judgement.Status.FAILED,
        claim=None,
        error=f"Judging it was interrupted {settings.JUDGE_ATTEMPTS} times: the worker may run out of memory.",
        finished_at=now,
    )
    lost.update(status=Judgement.Status.QUEUED, claim=None, next_attempt_at=None, enqueued_at=None)
    waiting = Judgement.objects.filter(
        Q(enqueued_at=None, created_at__lt=now - SENT_WITHIN) | Q(enqueued_at__lt=now - BEGUN_WITHIN),
        Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
        status=Judgement.Status.QUEUED,
    )
    return _enqueue(waiting.order_by("pk").values_list("pk", flat=True)[:MOST_AT_ONCE])


def _enqueue(ids: Iterable[int]) -> int:
    """Tell a worker of each; when the broker does not answer, the next sweep will. Returns how many were told."""
    sent = []
    for pk in ids:
        try:
            judge_answer.delay(pk)
        except OperationalError as error:
            logger.warning("The broker did not take judgement %s (%s); the schedule will.", pk, error)
            break
        sent.append(pk)
    Judgement.objects.filter(pk__in=sent, status=Judgement.Status.QUEUED).update(enqueued_at=timezone.now())
    return len(sent)
