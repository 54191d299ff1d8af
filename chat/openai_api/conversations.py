"""Which of a user's conversations a list of messages carries on."""

from __future__ import annotations

import uuid
from typing import Any

from chat.models import Answer, Conversation
from chat.openai_api.messages import Asked


def carried_on(user: Any, asked: Asked, collection: str) -> uuid.UUID | None:
    """The user's conversation whose last answer is the last reply of the messages; None: they begin a new one.

    The protocol names no conversations: without this, each follow-up would become one in the user's list. Programs
    without a user have no list, and must not be put together with strangers who asked the same.
    """
    if not getattr(user, "is_authenticated", False) or not asked.history:
        return None
    told = asked.history[-1]
    conversations = Conversation.objects.of(user, "")
    conversations = (
        conversations.filter(collection__slug=collection) if collection else conversations.filter(collection=None)
    )
    answers = Answer.objects.filter(conversation__in=conversations, question=told.question, text=told.answer)
    found = answers.order_by("-created_at").first()
    if found is None or found.conversation.answers.filter(created_at__gt=found.created_at).exists():
        return None
    return found.conversation_id
