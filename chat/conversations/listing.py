from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.conversations import rights
from chat.models import Answer, Conversation
from chat.models.conversation import ConversationQuerySet
from core.user_types import AnyUser

PAGE = 60
MOST_SHOWN = 50 * PAGE
_MOST_WORDS = 8
_LONGEST_WORD = 100


@dataclass(frozen=True, slots=True)
class ConversationListing:
    """A user's conversations in the sidebar, grouped under headings such as "Today".

    ``more`` is the number to show after a click on "Show more"; 0 if all are shown.
    """

    groups: tuple[tuple[str, tuple[Conversation, ...]], ...]
    count: int
    more: int
    wanted: str = ""


def list_newest_conversations(
    conversations: ConversationQuerySet, user: AnyUser, wanted: str = "", limit: int = PAGE
) -> ConversationListing:
    limit = min(max(limit, PAGE), MOST_SHOWN)
    newest = list(search_conversations(conversations, user, wanted)[: limit + 1])
    more = limit + PAGE if len(newest) > limit and limit < MOST_SHOWN else 0
    groups = tuple((heading, tuple(found)) for heading, found in groupby(newest[:limit], _describe_age))
    return ConversationListing(groups, len(newest[:limit]), more, wanted)


def search_conversations(conversations: ConversationQuerySet, user: AnyUser, wanted: str) -> ConversationQuerySet:
    """Return the conversations that contain every word of ``wanted`` in the title, a question or a readable answer."""
    words = wanted.replace("\0", " ").split()[:_MOST_WORDS]
    may_read = Q()
    if words and (closed := rights.build_unreadable_condition(user)) is not None:
        may_read = ~closed
    for word in (word[:_LONGEST_WORD] for word in words):
        answers = Answer.objects.filter(conversation=OuterRef("pk"))
        answers = answers.filter(Q(question__icontains=word) | Q(text__icontains=word) & may_read)
        conversations = conversations.filter(Q(title__icontains=word) | Exists(answers))
    return conversations


def _describe_age(conversation: Conversation) -> str:
    days = (timezone.localdate() - timezone.localdate(conversation.updated_at)).days
    return _("Today") if days < 1 else _("Last seven days") if days < 7 else _("Earlier")
