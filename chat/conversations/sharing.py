from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.utils import timezone

from chat.conversations import rights
from chat.models import Answer, Conversation
from core.user_types import AnyUser
from core.users import is_active
from retrieval.models import Document

SHARE_FIELDS = ("share_token", "shared_at", "share_scope", "share_audience", "shared_answer")


def share_conversation(
    conversation: Conversation,
    scope: str = Conversation.ShareScope.NOW,
    audience: str = Conversation.ShareAudience.LINK,
    answer: Answer | None = None,
) -> uuid.UUID:
    """Share a conversation, or a part of it, and return the secret of its link. An existing link stays valid."""
    Conversation.objects.filter(pk=conversation.pk, share_token=None).update(share_token=uuid.uuid4())
    Conversation.objects.filter(pk=conversation.pk).update(
        shared_at=timezone.now(),
        share_scope=scope,
        share_audience=audience,
        shared_answer=answer if scope == Conversation.ShareScope.ANSWER else None,
    )
    conversation.refresh_from_db(fields=SHARE_FIELDS)
    token = conversation.share_token
    assert token is not None
    return token


def stop_sharing(conversation: Conversation) -> None:
    conversation.share_token = conversation.shared_at = conversation.shared_answer = None
    conversation.save(update_fields=["share_token", "shared_at", "shared_answer"])


def find_shared_conversation(token: uuid.UUID, user: AnyUser) -> Conversation | None:
    """Return the conversation of a shared link; None if the link is invalid or ``user`` may not open it."""
    conversation = Conversation.objects.select_related("collection").filter(share_token=token).first()
    if conversation is None:
        return None
    is_for_accounts = conversation.share_audience == Conversation.ShareAudience.SIGNED_IN
    if is_for_accounts and not is_active(user):
        return None
    is_gone = conversation.share_scope == Conversation.ShareScope.ANSWER and conversation.shared_answer_id is None
    return None if is_gone else conversation


def is_shared(conversation: Conversation, answer: Answer) -> bool:
    match conversation.share_scope:
        case Conversation.ShareScope.FOLLOWING:
            return True
        case Conversation.ShareScope.ANSWER:
            return answer.pk == conversation.shared_answer_id
    return conversation.shared_at is not None and answer.created_at <= conversation.shared_at


def find_withheld_shared_answers(user: AnyUser, answers: Iterable[Answer]) -> frozenset[uuid.UUID]:
    """Return the ids of answers that use a document which is deleted or which the user may not read.

    Sources that the answer does not cite are checked too.
    """
    listed = list(answers)
    behind = {answer.pk: rights.find_used_document_ids(answer) for answer in listed}
    found = Document.objects.readable_by(user).filter(pk__in=frozenset().union(*behind.values()))
    readable = set(found.values_list("pk", flat=True))
    closed = rights.find_withheld_answers(user, listed)
    return closed | {pk for pk, documents in behind.items() if not documents <= readable}
