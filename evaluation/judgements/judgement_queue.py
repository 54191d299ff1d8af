"""Which answers wait for a judge.

A judgement's row is its job (see `retrieval.jobs`). :func:`request_forgotten` finds the answers that never got one,
because the web process died right after the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from chat.models import Answer
from evaluation import conf
from evaluation.models import Judgement, Score
from retrieval.jobs.job import enqueue_on_commit

FORGOTTEN_AFTER = timedelta(minutes=2)
FORGOTTEN_UP_TO = timedelta(days=1)
MOST_AT_ONCE = 500


def request(answer: Answer, *, judges: Sequence[str] | None = None, reference: str = "") -> list[Judgement]:
    """The answer's judgements, to be made by a worker; those that were there before are left as they are.

    ``judges`` are by default those that the settings ask for. With an expected answer as ``reference``, the passages
    are judged against it as well.
    """
    wanted = planned_judges(answer) if judges is None else judges
    Judgement.objects.bulk_create(
        (Judgement(answer=answer, judge=judge, reference=reference) for judge in wanted), ignore_conflicts=True
    )
    judgements = list(Judgement.objects.filter(answer=answer, judge__in=wanted).order_by("pk"))
    waiting = [made.pk for made in judgements if made.status == Judgement.QUEUED and made.enqueued_at is None]
    enqueue_on_commit(Judgement, waiting)
    return judgements


def planned_judges(answer: Answer) -> list[str]:
    """The judges that an answer gets unasked. The model judges a sample, and no answer that only repeats another."""
    judges = []
    if settings.EVALUATE_ANSWERS:
        judges.append(Judgement.Judge.OFFLINE.value)
    if settings.EVALUATE_WITH_MODEL and answer.repeats_id is None and conf.is_sampled(answer.pk):
        judges.append(Judgement.Judge.MODEL.value)
    return judges


def request_again(judgements: QuerySet[Judgement]) -> int:
    """Have these judged from the start, by the judge as it is configured now; returns how many.

    A worker busy with one of them loses its lease.
    """
    with transaction.atomic():
        ids = list(judgements.select_for_update(of=("self",)).values_list("pk", flat=True))
        Score.objects.filter(judgement__in=ids).delete()
        Judgement.objects.filter(pk__in=ids).update(
            **Judgement.restart_values(), finished_at=None, prompt_tokens=0, completion_tokens=0
        )
        enqueue_on_commit(Judgement, ids)
    return len(ids)


def request_forgotten() -> int:
    """Have judged what was answered of late and has no judgement; returns how many answers that were."""
    now = timezone.now()
    forgotten = Answer.objects.filter(
        ~Exists(Judgement.objects.filter(answer=OuterRef("pk"))),
        status=Answer.Status.COMPLETED,
        completed_at__range=(now - FORGOTTEN_UP_TO, now - FORGOTTEN_AFTER),
    ).only("pk", "repeats")
    # What no judge is planned for stays without a judgement, and must not stand before the others for ever.
    wanted = (answer for answer in forgotten.order_by("completed_at").iterator() if planned_judges(answer))
    return sum(bool(request(answer)) for answer in islice(wanted, MOST_AT_ONCE))
