from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max

from chat.models import Conversation
from chat.pages.suggestions import list_suggestions
from core.user_types import AnyUser
from retrieval.models import Collection, Document

MOST_CARDS = 6
MOST_RECENT = 4


@dataclass(frozen=True, slots=True)
class CollectionCard:
    collection: Collection
    documents: int
    changed_at: datetime | None
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrontPage:
    """The content of the front page. ``others`` is the number of collections for which there was no room.

    ``questions`` are suggestions for the document that the visitor chose, if any.
    """

    cards: tuple[CollectionCard, ...]
    others: int
    recent: tuple[Conversation, ...]
    questions: tuple[str, ...] = ()


def build_front_page(user: AnyUser, collections: Sequence[Collection], recent: Sequence[Conversation]) -> FrontPage:
    figures = {
        pk: (count, changed)
        for pk, count, changed in Document.objects.readable_by(user)
        .filter(collection__in=collections, status=Document.Status.READY)
        .order_by()
        .values_list("collection")
        .annotate(Count("pk"), Max("updated_at"))
    }
    filled = [each for each in collections if each.pk in figures]
    largest = sorted(filled, key=lambda each: (each.is_searched_by_name, -figures[each.pk][0]))[:MOST_CARDS]
    shown = sorted(largest, key=lambda each: (each.is_searched_by_name, each.name))
    most = 1 if len(shown) > 1 else 4
    cards = tuple(
        CollectionCard(each, *figures[each.pk], tuple(q for q, _ in list_suggestions(user, each.slug)[:most]))
        for each in shown
    )
    return FrontPage(cards, len(filled) - len(shown), tuple(recent[:MOST_RECENT]))
