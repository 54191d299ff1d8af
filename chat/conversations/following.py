"""Answers that readers follow: who may, and which versions of documents they rest on."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import get_language

from chat.conversations import rights, sharing
from chat.models import Answer, FollowedAnswer
from core.database import fetch
from core.user_types import AnyUser
from core.users import is_active

MOST_FOLLOWED = 200

# The hash changes with a version of a cited document, and with its deletion. Each sweep reads all rows.
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
    """Return whether the site sends mail, and the user has an address."""
    return settings.MAIL_IS_SENT and is_active(user) and bool(getattr(user, "email", ""))


def find_followed(user: AnyUser, answers: Iterable[Answer]) -> frozenset[uuid.UUID] | None:
    """Return the ids of the answers that the user follows; None if the user cannot be mailed."""
    if not user.is_authenticated or not may_be_mailed(user):
        return None
    rows = FollowedAnswer.objects.filter(user=user, answer__in=[answer.pk for answer in answers])
    return frozenset(rows.values_list("answer", flat=True))


def may_follow(user: AnyUser, answer: Answer) -> bool:
    """Return whether the user may read the answer now: in an own conversation, or by a link."""
    conversation = answer.conversation
    if not is_active(user):
        return False
    if conversation.owner_id == user.pk:
        return not rights.is_withheld(user, answer)
    if conversation.share_token is None or sharing.shared_conversation(conversation.share_token, user) is None:
        return False
    return sharing.is_shared(conversation, answer) and answer.pk not in sharing.withheld_from(user, [answer])


def follow(user: User, answer: Answer, address: str, told: Collection[str]) -> FollowedAnswer | None:
    """Follow the answer, with the changes that the reader sees already; None above the most answers of a reader."""
    if FollowedAnswer.objects.filter(user=user).count() >= MOST_FOLLOWED:
        return None
    with transaction.atomic():
        known = {"address": address, "language": get_language() or settings.LANGUAGE_CODE}
        followed, is_new = FollowedAnswer.objects.get_or_create(user=user, answer=answer, defaults=known)
        if is_new:
            # The next sweep sets ``checked``, and reports changes since now.
            followed.told = sorted(told)
            followed.save(update_fields=["told"])
    return followed


def unfollow(user: AnyUser, **which: object) -> None:
    if user.is_authenticated:
        FollowedAnswer.objects.filter(user=user, **which).delete()


def find_moved() -> list[tuple[int, str]]:
    """Return the ids of followed answers whose documents are not those of the last look, with the hash of today."""
    return [(pk, digest) for pk, digest in fetch(_DIGEST)]


def list_followed(user: User) -> list[tuple[FollowedAnswer, bool]]:
    """Return what the user follows, newest first, and whether the user may still read it.

    The question of somebody else's answer is for those who may read the answer.
    """
    rows = list(FollowedAnswer.objects.filter(user=user).select_related("answer__conversation"))
    own = [row.answer for row in rows if row.answer.conversation.owner_id == user.pk]
    readable = {answer.pk for answer in own} - rights.find_withheld(user, own)
    others = (row.answer for row in rows if row.answer.conversation.owner_id != user.pk)
    readable |= {answer.pk for answer in others if may_follow(user, answer)}
    return [(row, row.answer_id in readable) for row in rows]
