"""Answers that ask for a look, and documents that no answer cited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from chat.conversations import rights
from chat.models import Answer, Citation
from evaluation.dashboard.scope import DashboardScope
from evaluation.models import Judgement, Score
from retrieval.models import Document

UNHELPFUL = "unhelpful"
UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class AnswerSelection:
    """What is wrong with the answers wanted: UNHELPFUL, UNANSWERED, or a metric of one judge.

    Scores lie in [low, high), those of 1 included when ``high`` is 1; without bounds they lie below their threshold.
    """

    kind: str = UNHELPFUL
    judge: str = Judgement.Judge.OFFLINE
    low: float | None = None
    high: float | None = None

    @property
    def is_metric(self) -> bool:
        return self.kind not in (UNHELPFUL, UNANSWERED)


def selection_of(asked: Mapping[str, str]) -> AnswerSelection:
    """What an address asks for; not helpful answers when there is no such thing."""
    kind, judge = asked.get("kind", ""), asked.get("judge", "")
    if kind not in (UNHELPFUL, UNANSWERED, *Score.Metric.values):
        return AnswerSelection()
    low, high = _share(asked.get("low", "")), _share(asked.get("high", ""))
    if low is None or high is None:
        low = high = None
    return AnswerSelection(kind, judge if judge in Judgement.Judge.values else Judgement.Judge.OFFLINE, low, high)


def rated_answers(scope: DashboardScope, kind: str) -> QuerySet[Answer]:
    """Answers that did not help, or those that say that the documents do not answer; the latest first."""
    selection = Q(feedback__helpful=False) if kind == UNHELPFUL else Q(refused=True)
    return scope.answers().filter(selection).select_related("feedback").order_by("-completed_at", "pk")


def low_scores(scope: DashboardScope, selection: AnswerSelection) -> QuerySet[Score]:
    """The scores wanted of those given in the period, with their answers; the lowest first, ties the latest first."""
    scores = Score.objects.filter(
        metric=selection.kind,
        judgement__judge=selection.judge,
        score__isnull=False,
        created_at__gte=scope.since,
        created_at__lte=scope.until,
    )
    if selection.low is None or selection.high is None:
        scores = scores.filter(score__lt=F("threshold"))
    else:
        below = Q(score__lt=selection.high) | (Q(score=1.0) if selection.high == 1.0 else Q(pk=None))
        scores = scores.filter(below, score__gte=selection.low)
    if scope.collection is not None:
        scores = scores.filter(judgement__answer__conversation__collection=scope.collection)
    if scope.viewer is not None and (closed := rights.is_closed_to(scope.viewer, "judgement__answer__")) is not None:
        scores = scores.exclude(closed)
    return (
        scores.select_related("judgement__answer__feedback")
        .defer("details", *(f"judgement__answer__{large}" for large in ("trace", "statements", "history")))
        .order_by("score", "-created_at", "pk")
    )


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0.0 <= share <= 1.0 else None


def documents_never_cited(scope: DashboardScope) -> QuerySet[Document]:
    """The documents in service that can be searched and that no answer cites that is still kept, of any time: those
    that had the longest time to be cited first."""
    documents = (
        scope.documents().filter(chunk_count__gt=0).exclude(Exists(Citation.objects.filter(document=OuterRef("pk"))))
    )
    if scope.collection is not None:
        documents = documents.filter(collection=scope.collection)
    return documents.select_related("collection").order_by("created_at", "pk")
