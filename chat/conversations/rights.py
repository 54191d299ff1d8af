"""Decide who may read conversations and answers, by the rights that the reader has now."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from chat.models import Answer, Conversation
from chat.models.conversation import ConversationQuerySet
from chat.payload_types import DocumentPlacePayload
from core.audit_signal import record_event
from core.user_types import AnyUser
from core.users import is_staff_with
from retrieval.models import Collection, Document
from retrieval.models.narrowing import build_readable_condition
from retrieval.rights.reasons import AccessReason, explain_document_access
from retrieval.rights.search_filters import find_limiting_rights, hash_restrictions
from retrieval.types import ReaderRights

# The collection id of a deleted document, which no user may read.
UNKNOWN_COLLECTION = 0


def get_withheld_message() -> str:
    return _("This answer came from documents that you may no longer read.")


def may_read_all_answers(user: AnyUser) -> bool:
    return is_staff_with(user, "chat.view_answer")


def may_change_all_answers(user: AnyUser) -> bool:
    return is_staff_with(user, "chat.change_answer")


def list_readable_collections(user: AnyUser) -> frozenset[int]:
    return frozenset(Collection.objects.readable_by(user).order_by().values_list("pk", flat=True))


@dataclass(frozen=True, slots=True)
class Rights:
    """The collections and documents that a user may read now.

    If ``reads_all`` is true, the user may also read other users' answers. If ``reads_deleted`` is true, the user may
    also read answers from deleted collections.
    """

    collections: frozenset[int]
    readers: tuple[ReaderRights, ...]
    reads_all: bool
    reads_deleted: bool

    def may_read_collections(self, collections: Iterable[int]) -> bool:
        return self.reads_deleted or self.collections.issuperset(collections)

    def find_hidden_documents(self, documents: Iterable[int]) -> frozenset[int]:
        """Return the ids among ``documents`` that the user may not read. Deleted documents are left out."""
        wanted = set(documents)
        if not wanted:
            return frozenset()
        behind = Document.objects.filter(pk__in=wanted).order_by()
        hidden = behind.exclude(collection__in=self.collections)
        if self.readers:
            hidden = hidden | behind.exclude(build_readable_condition(self.readers))
        return frozenset(hidden.values_list("pk", flat=True))


def find_rights(user: AnyUser) -> Rights:
    readable = list_readable_collections(user)
    reads_all = may_read_all_answers(user)
    reads_deleted = reads_all and not Collection.objects.exclude(pk__in=readable).exists()
    return Rights(readable, find_limiting_rights(readable, user), reads_all, reads_deleted)


def find_collections(documents: Iterable[int]) -> frozenset[int]:
    wanted = set(documents)
    found = dict(Document.objects.filter(pk__in=wanted).order_by().values_list("pk", "collection")) if wanted else {}
    return frozenset(found.get(document, UNKNOWN_COLLECTION) for document in wanted)


def find_withheld_answers(user: AnyUser, answers: Iterable[Answer]) -> frozenset[uuid.UUID]:
    """Return the ids of the ``answers`` that contain text from a collection or document the user may not read."""
    listed = list(answers)
    if not listed:
        return frozenset()
    rights = find_rights(user)
    documents = {answer.pk: find_used_document_ids(answer) for answer in listed}
    hidden = rights.find_hidden_documents(frozenset().union(*documents.values()))
    return frozenset(
        answer.pk
        for answer in listed
        if not rights.may_read_collections(answer.source_collections)
        or not hidden.isdisjoint(documents[answer.pk])
        or (answer.choices and answer.narrowing_key != hash_reader_rights(answer.source_collections, user))
    )


def is_withheld(user: AnyUser, answer: Answer) -> bool:
    return bool(find_withheld_answers(user, [answer]))


def hash_reader_rights(collections: Iterable[int], user: AnyUser) -> str:
    """Return a hash of ``user``'s rights to read documents of the collections.

    Suggested questions may contain words of restricted documents. So an answer with such questions is shown only to
    users with the same hash as the user who asked.
    """
    behind = frozenset(collections)
    return hash_restrictions(behind, find_limiting_rights(behind, user))


def list_document_ids(places: Iterable[DocumentPlacePayload]) -> frozenset[int]:
    return frozenset(place["document"]["id"] for place in places)


def find_used_document_ids(answer: Answer) -> frozenset[int]:
    return frozenset(answer.source_documents) | list_document_ids(answer.shown_passages)


def explain_answer_access(user: AnyUser, answer: Answer) -> AccessReason:
    """Return whether ``user`` may read the answer in its conversation, with the rule that decides this."""
    owner = answer.conversation.owner
    if (owner is None or owner != user) and not may_read_all_answers(user):
        whose = owner or _("a visitor")
        rule = _("The conversation belongs to %s, and the account may not view the answers of others.") % whose
        return AccessReason(
            False, rule, _("A link that shares it is another way.") if answer.conversation.share_token else ""
        )
    is_seen = not is_withheld(user, answer)
    for document in Document.objects.filter(pk__in=find_used_document_ids(answer)).select_related("collection"):
        found = explain_document_access(user, document)
        if not found.is_seen:
            return AccessReason(
                is_seen, _("It rests on “%(document)s”. %(rule)s") % {"document": document, "rule": found.rule}
            )
    if not is_seen:
        return AccessReason(False, _("It uses a document or a collection that was deleted."))
    if owner == user:
        return AccessReason(True, _("The account asked it, and may read all documents that it uses."))
    return AccessReason(
        True, _("The account may view the answers of others, and read all documents that this one uses.")
    )


def build_unreadable_condition(user: AnyUser, path: str = "") -> Q | None:
    """Return a condition for the answers that ``user`` may not read; None if the user may read all.

    ``path`` is the lookup from the queried model to the answer, such as ``answer__``.
    """
    rights = find_rights(user)
    if rights.reads_deleted and not rights.readers:
        return None
    hidden = Document.objects.exclude(collection__in=rights.collections)
    if rights.readers:
        hidden = hidden | Document.objects.exclude(build_readable_condition(rights.readers))
    condition = Q(Exists(hidden.filter(_ArrayMembership(F("pk"), OuterRef(f"{path}source_documents")))))
    if not rights.reads_deleted:
        open_collections = sorted(rights.collections)
        condition |= ~Q(**{f"{path}source_collections__contained_by": open_collections})
        condition |= ~Q(**{f"{path}collection": None}) & ~Q(**{f"{path}collection__in": open_collections})
    if rights.readers:
        condition |= ~Q(**{f"{path}choices": []})
    return condition


def filter_readable_answers(user: AnyUser, answers: QuerySet[Answer]) -> QuerySet[Answer]:
    closed = build_unreadable_condition(user)
    return answers if closed is None else answers.exclude(closed)


def filter_open_conversations(user: AnyUser, conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    closed = build_unreadable_condition(user)
    if closed is None:
        return conversations
    return conversations.exclude(Exists(Answer.objects.filter(closed, conversation=OuterRef("pk"))))


class _ArrayMembership(Func):
    arg_joiner = " = ANY ("
    template = "(%(expressions)s))"
    output_field = BooleanField()


VISITOR_KEY = "visitor"


def get_visitor(request: HttpRequest) -> str:
    session = request.session
    if VISITOR_KEY not in session:
        session[VISITOR_KEY] = uuid.uuid4().hex
    return str(session[VISITOR_KEY])


def list_own_conversations(request: HttpRequest) -> ConversationQuerySet:
    return Conversation.objects.owned_by(request.user, str(request.session.get(VISITOR_KEY, "")))


def list_unowned_conversations() -> ConversationQuerySet:
    """Return the conversations of API callers without an account or cookies."""
    return Conversation.objects.filter(owner=None, visitor="")


def is_own(request: HttpRequest, conversation: Conversation) -> bool:
    return list_own_conversations(request).filter(pk=conversation.pk).exists()


def list_own_answers(request: HttpRequest) -> QuerySet[Answer]:
    return Answer.objects.filter(conversation__in=list_own_conversations(request))


def list_unowned_answers() -> QuerySet[Answer]:
    return Answer.objects.filter(conversation__owner=None, conversation__visitor="")


def list_stoppable_answers(request: HttpRequest) -> QuerySet[Answer]:
    return Answer.objects.all() if may_change_all_answers(request.user) else list_own_answers(request)


def list_readable_answers(request: HttpRequest) -> QuerySet[Answer]:
    """Return the caller's answers, and the answers of other users that the caller may read."""
    if not may_read_all_answers(request.user):
        return list_own_answers(request)
    closed = build_unreadable_condition(request.user)
    return (
        Answer.objects.all() if closed is None else Answer.objects.filter(Q(conversation__owner=request.user) | ~closed)
    )


def find_readable_answer(request: HttpRequest, answer_id: uuid.UUID, *, of_nobody: bool = False) -> Answer:
    """Return an answer that the caller may read, and record access to another user's answer. Raises: Http404.

    If ``of_nobody``, answers without an owner are included.
    """
    answers = list_readable_answers(request)
    if of_nobody:
        answers = answers | list_unowned_answers()
    answer = get_object_or_404(answers.select_related("feedback", "repeats", "conversation"), pk=answer_id)
    if answer.conversation.experiment_subject and not is_own(request, answer.conversation):
        record_event("conversation.viewed", answer.conversation)
    return answer
