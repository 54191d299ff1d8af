"""Store which answers a reader follows, and find changes of their cited documents."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import get_language

from chat.conversations import rights, sharing
from chat.models import Answer, FollowedAnswer
from core.database import fetch_rows
from core.user_types import AnyUser
from core.users import is_active

MOST_FOLLOWED = 200

# The hash of an answer's cited documents changes if one gets a new version or is deleted.
_DIGEST = """
    SELECT followed.id, md5(string_agg(
        coalesce(documenttext.content_hash || ':' || documenttext.recipe, citation.document_id::text, '-'), ' '
        ORDER BY citation.id
    ))
    FROM chat_followedanswer AS followed
    JOIN chat_citation AS citation ON citation.answer_id = followed.answer_id
    LEFT JOIN retrieval_documenttext AS documenttext ON documenttext.document_id = citation.document_id
    GROUP BY followed.id
    HAVING md5(string_agg(
        coalesce(documenttext.content_hash || ':' || documenttext.recipe, citation.document_id::text, '-'), ' '
        ORDER BY citation.id
    )) <> followed.checked
"""


def may_be_mailed(user: AnyUser) -> bool:
    return settings.MAIL_IS_SENT and is_active(user) and bool(getattr(user, "email", ""))


def find_followed_answer_ids(user: AnyUser, answers: Iterable[Answer]) -> frozenset[uuid.UUID] | None:
    """Return the ids of the ``answers`` that the user follows; None if the site cannot send mail to the user."""
    if not user.is_authenticated or not may_be_mailed(user):
        return None
    rows = FollowedAnswer.objects.filter(user=user, answer__in=[answer.pk for answer in answers])
    return frozenset(rows.values_list("answer", flat=True))


def may_follow_answer(user: AnyUser, answer: Answer) -> bool:
    """Return whether the user may read the answer now, in a conversation of the user or by a shared link."""
    conversation = answer.conversation
    if not is_active(user):
        return False
    if conversation.owner_id == user.pk:
        return not rights.is_withheld(user, answer)
    if conversation.share_token is None or sharing.find_shared_conversation(conversation.share_token, user) is None:
        return False
    return sharing.is_shared(conversation, answer) and answer.pk not in sharing.find_withheld_shared_answers(
        user, [answer]
    )


def follow_answer(user: User, answer: Answer, address: str, seen_changes: Collection[str]) -> FollowedAnswer | None:
    """Let the user follow the answer. Return None if the user already follows as many answers as allowed.

    ``seen_changes`` are the keys of the changes that the page already shows; no mail reports them. ``address`` is the
    page's address.
    """
    if FollowedAnswer.objects.filter(user=user).count() >= MOST_FOLLOWED:
        return None
    with transaction.atomic():
        known = {"address": address, "language": get_language() or settings.LANGUAGE_CODE}
        followed, is_new = FollowedAnswer.objects.get_or_create(user=user, answer=answer, defaults=known)
        if is_new:
            # ``checked`` stays empty, so the next check reports all changes except the seen ones.
            followed.told = sorted(seen_changes)
            followed.save(update_fields=["told"])
    return followed


def unfollow_answers(user: AnyUser, **which: object) -> None:
    if user.is_authenticated:
        FollowedAnswer.objects.filter(user=user, **which).delete()


def find_changed_answers() -> list[tuple[int, str]]:
    return [(pk, digest) for pk, digest in fetch_rows(_DIGEST)]


def list_followed_answers(user: User) -> list[tuple[FollowedAnswer, bool]]:
    """Return the answers that the user follows, newest first, and whether the user may still read each.

    If the user may not read an answer, the page must hide the question as well.
    """
    rows = list(FollowedAnswer.objects.filter(user=user).select_related("answer__conversation"))
    own = [row.answer for row in rows if row.answer.conversation.owner_id == user.pk]
    readable = {answer.pk for answer in own} - rights.find_withheld_answers(user, own)
    others = (row.answer for row in rows if row.answer.conversation.owner_id != user.pk)
    readable |= {answer.pk for answer in others if may_follow_answer(user, answer)}
    return [(row, row.answer_id in readable) for row in rows]
