from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.utils.translation import gettext as _

from chat.conversations.rights import is_withheld
from chat.conversations.sharing import is_shared
from chat.models import Answer, Conversation
from retrieval.rights.audience import MODEL_BACKEND

MOST_CHECKED = 50


@dataclass(frozen=True, slots=True)
class AnswerReaders:
    """The people who may read an answer and all its sources.

    - ``owner``: the account that asked the question, or None.
    - ``is_own``: a visitor without an account asked the question, and may read the answer.
    - ``staff``: other accounts that may view all answers.
    - ``unchecked``: the number of further such accounts, not checked for access to the sources.
    - ``link``: a text that says who may open the shared link; empty if there is no such link.
    """

    owner: User | None
    is_own: bool
    staff: Sequence[User]
    unchecked: int
    link: str


def find_answer_readers(answer: Answer) -> AnswerReaders:
    conversation = answer.conversation
    owner = conversation.owner
    viewing = User.objects.with_perm("chat.view_answer", backend=MODEL_BACKEND).filter(is_staff=True)
    if owner is not None:
        viewing = viewing.exclude(pk=owner.pk)
    viewing = viewing.order_by("username")
    checked = list(viewing[:MOST_CHECKED])
    link = ""
    if conversation.share_token is not None and is_shared(conversation, answer):
        is_for_accounts = conversation.share_audience == Conversation.ShareAudience.SIGNED_IN
        link = _("Everybody who has signed in and has the link") if is_for_accounts else _("Everybody with the link")
    return AnswerReaders(
        owner=owner if owner is not None and owner.is_active and not is_withheld(owner, answer) else None,
        is_own=owner is None and not is_withheld(AnonymousUser(), answer),
        staff=[user for user in checked if not is_withheld(user, answer)],
        unchecked=viewing.count() - len(checked),
        link=link,
    )
