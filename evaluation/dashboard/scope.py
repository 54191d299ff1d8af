"""Limit the dashboard to some days, to a collection, and to what its viewer may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db import connection
from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils import timezone

from chat.conversations import rights
from chat.models import Answer
from evaluation.models import Judgement, Score
from retrieval.models import Collection, Document

PERIODS = (7, 30, 90)
DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class DashboardScope:
    """The days and the collection (None: all) of a dashboard. It covers only answers that ``viewer`` may read.

    ``since`` is the start of the first day in the site's time zone, ``until`` is now.
    """

    viewer: Any
    days: int
    since: datetime
    until: datetime
    collection: Collection | None = None

    @property
    def dates(self) -> tuple[date, ...]:
        first = timezone.localtime(self.since).date()
        return tuple(first + timedelta(days=number) for number in range(self.days))

    def address(self, page: str = "changelist") -> str:
        parameters = {"days": self.days, **({"collection": self.collection.slug} if self.collection else {})}
        return f"{reverse(f'admin:evaluation_dashboard_{page}')}?{urlencode(parameters)}"

    def answers(self) -> QuerySet[Answer]:
        found = Answer.objects.filter(completed_at__gte=self.since, completed_at__lte=self.until)
        if self.collection is not None:
            found = found.filter(collection=self.collection)
        return rights.filter_readable_answers(self.viewer, found).defer("trace", "statements", "history")

    def build_readable_sql(self) -> str:
        """Return an SQL condition "AND …" for answers that the viewer may read; "" if the viewer may read all."""
        if rights.build_unreadable_condition(self.viewer) is None:
            return ""
        is_open = rights.filter_readable_answers(self.viewer, Answer.objects.order_by()).values("pk").query
        sql = connection.ops.compose_sql(*is_open.sql_with_params())  # type: ignore[attr-defined]  # PostgreSQL's
        return f"AND answer.id IN ({sql})".replace("%", "%%")

    def documents(self) -> QuerySet[Document]:
        return Document.objects.readable_by(self.viewer).filter(collection__draft=None)

    def build_answer_list_address(self, day: date | None = None, **lookups: object) -> str:
        query = {"completed_at__gte": (self.since if day is None else find_day_start(day)).isoformat(), **lookups}
        if day is not None:
            query["completed_at__lt"] = find_day_start(day + timedelta(days=1)).isoformat()
        if self.collection is not None:
            query["collection__id__exact"] = self.collection.pk
        return f"{reverse('admin:chat_answer_changelist')}?{urlencode(query)}"

    def build_low_score_address(self, metric: str, judge: str) -> str:
        query: dict[str, object] = {"low": metric, "judge__exact": judge, "created_at__gte": self.since.isoformat()}
        if self.collection is not None:
            query["answer__collection__id__exact"] = self.collection.pk
        return f"{reverse('admin:evaluation_judgement_changelist')}?{urlencode(query)}"


def parse_scope(asked: Mapping[str, str], viewer: Any) -> DashboardScope:
    """Return the scope that query parameters name. An unknown value or unreadable collection gives the default."""
    days = int(asked.get("days", "")) if asked.get("days", "") in map(str, PERIODS) else DEFAULT_DAYS
    slug = asked.get("collection", "").replace("\x00", "")
    readable = Collection.objects.readable_by(viewer).in_service()
    return build_scope(viewer, days, readable.filter(slug=slug).first() if slug else None)


def build_scope(viewer: Any, days: int = DEFAULT_DAYS, collection: Collection | None = None) -> DashboardScope:
    now = timezone.now()
    since = find_day_start(timezone.localtime(now).date() - timedelta(days=days - 1))
    return DashboardScope(viewer, days, since, now, collection)


def find_day_start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def find_low_groundedness_scores(scope: DashboardScope) -> QuerySet[Score]:
    """Return the low scores for groundedness that the rule-based judge gave, the lowest first, then the latest."""
    scores = Score.objects.filter(
        judgement__answer__computed__isnull=True,
        metric=Score.Metric.GROUNDEDNESS,
        judgement__judge=Judgement.Judge.OFFLINE,
        score__lt=F("threshold"),
        created_at__gte=scope.since,
        created_at__lte=scope.until,
    )
    if scope.collection is not None:
        scores = scores.filter(judgement__answer__collection=scope.collection)
    if (closed := rights.build_unreadable_condition(scope.viewer, "judgement__answer__")) is not None:
        scores = scores.exclude(closed)
    return (
        scores.select_related("judgement__answer__feedback")
        .defer("details", *(f"judgement__answer__{large}" for large in ("trace", "statements", "history")))
        .order_by("score", "-created_at", "pk")
    )
