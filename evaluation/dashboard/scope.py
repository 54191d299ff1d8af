"""The answers that the dashboard shows: finished in the last days, of one collection or of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from chat.models import Answer
from retrieval.models import Collection

PERIODS = (7, 30, 90)
DEFAULT_DAYS = 30


@dataclass(frozen=True, slots=True)
class Scope:
    """Whole days in the site's time zone, the last of them today: ``since`` is its first moment, ``until`` is now."""

    days: int
    since: datetime
    until: datetime
    collection: Collection | None = None

    @property
    def dates(self) -> tuple[date, ...]:
        first = timezone.localtime(self.since).date()
        return tuple(first + timedelta(days=number) for number in range(self.days))

    @property
    def parameters(self) -> dict[str, str]:
        """As the dashboard's address has them."""
        return {"days": str(self.days), **({"collection": self.collection.slug} if self.collection else {})}

    def address(self, page: str = "changelist", **parameters: object) -> str:
        """A page of the dashboard with the same scope."""
        query = urlencode({**self.parameters, **{name: value for name, value in parameters.items() if value != ""}})
        return f"{reverse(f'admin:evaluation_dashboard_{page}')}?{query}"

    def answers(self) -> QuerySet[Answer]:
        """Finished answers, without what makes their rows large."""
        found = Answer.objects.filter(completed_at__gte=self.since, completed_at__lte=self.until)
        if self.collection is not None:
            found = found.filter(conversation__collection=self.collection)
        return found.defer("trace", "statements", "history")

    def answer_list(self, day: date | None = None, **lookups: object) -> str:
        """The admin's list of these answers, of one day where one is given."""
        since, until = (self.since, None) if day is None else (start_of(day), start_of(day + timedelta(days=1)))
        if self.collection is not None:
            lookups["conversation__collection__id__exact"] = self.collection.pk
        query = {"completed_at__gte": since.isoformat(), **lookups}
        if until is not None:
            query["completed_at__lt"] = until.isoformat()
        return f"{reverse('admin:chat_answer_changelist')}?{urlencode(query)}"


def scope_of(asked: Mapping[str, str]) -> Scope:
    """The scope of an address; 30 days and all collections where its parameters are missing or unknown."""
    days = int(asked.get("days", "")) if asked.get("days", "") in map(str, PERIODS) else DEFAULT_DAYS
    slug = asked.get("collection", "").replace("\x00", "")
    return scope(days, Collection.objects.in_service().filter(slug=slug).first() if slug else None)


def scope(days: int = DEFAULT_DAYS, collection: Collection | None = None) -> Scope:
    now = timezone.now()
    return Scope(days, start_of(timezone.localtime(now).date() - timedelta(days=days - 1)), now, collection)


def start_of(day: date) -> datetime:
    """The day's first moment in the site's time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))
