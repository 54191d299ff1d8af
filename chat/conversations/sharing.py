"""Conversations that others may read: whoever has the link sees them, as far as they may read the documents."""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Iterable

from django.utils import timezone

from chat.conversations import rights
from chat.conversations.history import REMEMBERED_STATUSES, REMEMBERED_TURNS
from chat.models import Answer, Conversation
from retrieval.models import Document


def share(conversation: Conversation) -> uuid.UUID:
    """The token in the conversation's link. A conversation that is shared already keeps the one it has."""
    unshared = Conversation.objects.filter(pk=conversation.pk, share_token=None)
    unshared.update(share_token=uuid.uuid4(), shared_at=timezone.now())
    conversation.refresh_from_db(fields=["share_token", "shared_at"])
    token = conversation.share_token
    assert token is not None
    return token


def stop_sharing(conversation: Conversation) -> None:
    """The link leads nowhere from now on, and will not again: sharing anew makes another one."""
    conversation.share_token = conversation.shared_at = None
    conversation.save(update_fields=["share_token", "shared_at"])


def shared_conversation(token: uuid.UUID) -> Conversation | None:
    """The conversation that the link leads to; None when its owner has stopped sharing it, or never did."""
    return Conversation.objects.select_related("collection").filter(share_token=token).first()


def withheld_from(user: object, answers: Iterable[Answer]) -> frozenset[uuid.UUID]:
    """Ids of those answers that rest on a document which ``user`` may not read, or which is there no more.

    All the sources of an answer count, not the cited ones alone: their passages are shown beside it, and a model has
    read them. The answers before it in its conversation count too: a question that was completed from them, or put to a
    model with them, may say again what they said. ``answers`` are whole conversations, oldest first.
    """
    listed = list(answers)
    documents = {answer.pk: {source["document"]["id"] for source in answer.sources} for answer in listed}
    closed = rights.withheld_from(user, listed)
    behind = Document.objects.readable_by(user).filter(pk__in=frozenset().union(*documents.values()))
    readable = set(behind.values_list("pk", flat=True))
    withheld: set[uuid.UUID] = set()
    remembered: defaultdict[uuid.UUID, deque[Answer]] = defaultdict(lambda: deque(maxlen=REMEMBERED_TURNS))
    for answer in listed:
        before = remembered[answer.conversation_id]
        may_retell = bool(answer.completed_question) or answer.prompt_version is not None
        # Of a refusal, its question alone is told.
        retells = may_retell and any(turn.pk in withheld and not turn.refused for turn in before)
        if retells or answer.pk in closed or not documents[answer.pk] <= readable:
            withheld.add(answer.pk)
        if answer.status in REMEMBERED_STATUSES:
            before.append(answer)
    return frozenset(withheld)
