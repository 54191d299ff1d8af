"""The admin page for correcting an answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.answering import pipeline
from chat.answering.approved_answers import find_nearest_wordings, get_approval
from chat.curation.approval import save_wordings
from chat.curation.curation_admin import ApprovedAnswerForm, OfferedPassage, find_offers
from chat.models import Answer, ApprovedAnswer, ApprovedQuestion, Citation, Feedback
from chat.pages.answer_text import approved_line
from chat.pages.cards import build_cited, result_cards
from chat.pages.rendering import answer_html
from chat.streaming import payloads
from chat.types import AnswerDraft, Completed, Failed
from core import deadline
from core.admin_base import PageAdmin
from core.exceptions import RagsiteError
from core.user_types import AnyUser
from retrieval.documents.drafts.editing import lock_for_change, reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.index.active_embedder import encode_query
from retrieval.index.chunk_writer import rewrite_questions
from retrieval.models import Chunk, Collection, Document
from retrieval.search.passage_rows import load_passages
from retrieval.search.search_places import place_to_search
from retrieval.text.questions import normalize
from retrieval.types import SearchFilters, TriedQuestions

logger = logging.getLogger(__name__)

MOST_QUESTIONS = 5
MOST_ADDED = 10


class MendingAdmin(PageAdmin):
    """Adds a correction page to answers."""

    def get_urls(self) -> list[URLPattern]:
        page = path("<path:object_id>/mend/", self.admin_site.admin_view(self.mend_view), name="chat_answer_mend")
        return [page, *super().get_urls()]

    def mend_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        answer = self.get_object(request, unquote(object_id))
        if answer is None or not self.has_view_permission(request, answer):
            raise Http404
        user, doing, question = request.user, request.POST.get("action", ""), answer.standing_alone
        collection = answer.collection.slug if answer.collection is not None else ""
        tried: Trial | None = None
        wanted = request.GET.get("find", "").strip()
        offers, trouble = find_offers(user, wanted or question, _find_cited_chunks(answer), collection)
        forms = {way: self._build_form(request, answer, offers, way) for way in ("approve", "scope")}
        said = ""
        if doing == "check":
            tried = _try_approval(forms["approve"], user)
        elif doing in forms:
            if not user.has_perm("chat.add_approvedanswer"):
                raise PermissionDenied
            if forms[doing].is_valid():
                approved = forms[doing].save()
                forms[doing].keep(approved)
                self.admin_site.get_model_admin(ApprovedAnswer).log_addition(request, approved, [{"added": {}}])
                said = _("Saved. Ask again to see what readers get now.")
        elif doing in ("try", "give"):
            chunk_id = request.POST.get("passage", "")
            tried = try_giving(user, chunk_id, answer) if doing == "try" else None
            if refusal := tried.refusal if tried is not None else give(user, chunk_id, question):
                messages.error(request, refusal)
                tried = None
            elif doing == "give":
                said = _("Saved. The passage has the question now, and readers get the new answer.")
        elif doing == "wording":
            add_wording(user, request.POST.get("approved", ""), question)
            said = _("Saved. Ask again to see what readers get now.")
        if said:
            self.message_user(request, said, messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:chat_answer_mend", args=[answer.pk]))
        collections = list(Collection.objects.curated_by(user).in_service())
        asked = _find_asked(answer, collections)
        context = {
            "original": answer,
            "question": question,
            "before": _build_shown(answer, answer.citations.all()),
            "again": ask_again(user, answer) if doing == "ask" else None,
            "tried": tried,
            "offers": offers,
            "trouble": trouble,
            "find": wanted,
            "form": forms["approve"],
            "scope_form": forms["scope"],
            "may_approve": user.has_perm("chat.add_approvedanswer"),
            "may_give": user.has_perm("retrieval.change_chunk"),
            "may_upload": user.has_perm("retrieval.add_document"),
            "documents": _list_documents(user, offers),
            "collections": collections,
            "asked_collections": asked,
            "other_collections": [each for each in collections if each not in asked],
            "added": self._list_added(user, answer, asked),
            "feedback": Feedback.objects.filter(answer=answer, helpful=False).first(),
            "near_approved": _find_near_approved(user, question),
        }
        return self.render_page(request, "answer/mend", _("Mend this answer"), context)

    def _list_added(
        self, user: AnyUser, answer: Answer, asked: Sequence[Collection]
    ) -> list[tuple[str, str, SafeString]]:
        """Return address, title and status of the latest documents of the collections, read after the question."""
        if not user.has_perm("retrieval.view_document"):
            return []
        since = Q(created_at__gt=answer.created_at) | Q(ingested_at__gt=answer.created_at)
        documents = (
            Document.objects.readable_by(user).filter(since, collection__in=asked).order_by("-updated_at", "-pk")
        )
        show_state = self.admin_site.get_model_admin(Document).state  # type: ignore[attr-defined]
        return [
            (reverse("admin:retrieval_document_change", args=[each.pk]), str(each), show_state(each))
            for each in documents.order_by("-updated_at", "-pk")[:MOST_ADDED]
        ]

    def _build_form(
        self, request: HttpRequest, answer: Answer, offers: Sequence[OfferedPassage], way: str
    ) -> ApprovedAnswerForm:
        is_scope = way == "scope"
        collections = Collection.objects.curated_by(request.user).in_service()
        of_passages = [offer.passage.collection for offer in offers]
        first = answer.collection or collections.filter(slug__in=of_passages[:1]).first()
        cited = [] if answer.refused else _find_cited_chunks(answer)
        initial = {
            "question": answer.standing_alone,
            "text": "" if answer.refused else answer.text,
            "collection": first or collections.first(),
            "owner": request.user,
            "passages": [offer.value for offer in offers if (offer.marker, offer.passage.chunk_id) in cited],
        }
        if is_scope:
            initial["text"] = _("This site does not answer questions about this.")
        data = None
        if request.POST.get("action") in ((way,) if is_scope else (way, "check")):
            data = request.POST.copy()
            kind = ApprovedAnswer.Kind.OUT_OF_SCOPE if is_scope else ApprovedAnswer.Kind.ANSWER
            data.update({"kind": kind, "state": ApprovedAnswer.State.APPROVED})
            if not data.get("owner"):
                data["owner"] = str(request.user.pk)
        form = ApprovedAnswerForm(data, initial=initial, user=request.user, offers=offers, auto_id=f"{way}_%s")
        if is_scope:
            form.fields["text"].help_text = ""
        return form


def _find_asked(answer: Answer, collections: Sequence[Collection]) -> list[Collection]:
    """Return those of the collections that the question was asked of."""
    try:
        searched = answer.filters().collections
    except RagsiteError:
        searched = ()
    return [each for each in collections if each.pk in searched]


class Outcome(StrEnum):
    """What became of the passage in the new answer."""

    QUOTED = "quoted"
    SOURCE = "source"
    ABSENT = "absent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that is not saved, with the answer that it gives.

    ``action`` saves it, by the form with the id ``form`` if there is one. ``refusal`` says why it cannot be saved.
    """

    action: str = ""
    shown: Mapping[str, object] = field(default_factory=dict)
    passage: OfferedPassage | None = None
    outcome: str = ""
    other_collection: str = ""
    form: str = ""
    refusal: str = ""


def try_giving(user: AnyUser, chunk_id: str, answer: Answer) -> Trial:
    """Ask again as if the passage had the question; nothing is stored. Raises: PermissionDenied."""
    question = answer.standing_alone
    planned = _plan_giving(user, chunk_id, question)
    if not planned:
        return Trial(refusal=_choose_another())
    for changed in planned:
        if refusal := reason_not_to_change(changed.collection):
            return Trial(refusal=refusal)
    chunk = next(iter(planned))
    passage = load_passages([chunk.pk]).get(chunk.pk)
    if passage is None:
        return Trial(refusal=_choose_another())
    shown = ask_again(user, answer, {changed.pk: questions for changed, questions in planned.items()})
    searched = answer.collection if answer.document is None else answer.document.collection
    elsewhere = searched is not None and searched.pk != chunk.collection_id
    return Trial(
        action="give",
        shown=shown,
        passage=OfferedPassage(1, passage, question),
        outcome=_find_outcome(shown, chunk.pk),
        other_collection=str(searched) if elsewhere else "",
    )


def _find_outcome(shown: Mapping[str, Any], chunk_id: int) -> Outcome:
    if shown["answer"].error:
        return Outcome.FAILED
    if chunk_id in shown["quoted"]:
        return Outcome.QUOTED
    return Outcome.SOURCE if chunk_id in shown["sources"] else Outcome.ABSENT


def _try_approval(form: ApprovedAnswerForm, user: AnyUser) -> Trial | None:
    """Show the answer of a valid form as readers would get it. Raises: PermissionDenied."""
    if not user.has_perm("chat.add_approvedanswer"):
        raise PermissionDenied
    if not form.is_valid():
        return None
    answer = Answer(question=form.cleaned_data["question"], text=form.cleaned_data["text"])
    chosen = [offer for offer in form.offers if offer.value in form.cleaned_data["passages"]]
    return Trial(action="approve", shown={**_build_shown(answer), "cited": chosen}, form="approve")


def _choose_another() -> str:
    return _("Choose a passage of a collection that you may change.")


def _plan_giving(user: AnyUser, chunk_id: str, question: str) -> dict[Chunk, list[str]]:
    """Return the new questions of the passage, which comes first, and of those that had the question.

    Empty if the user may not change the passage. Raises: PermissionDenied.
    """
    if not user.has_perm("retrieval.change_chunk"):
        raise PermissionDenied
    chunks = Chunk.objects.filter(
        collection__in=Collection.objects.curated_by(user), document__in=Document.objects.readable_by(user)
    ).select_related("collection")
    chunk = chunks.filter(pk=chunk_id).first() if chunk_id.isdecimal() and len(chunk_id) < 19 else None
    if chunk is None:
        return {}
    had_it = chunks.filter(questions_edited=True, canonical_questions__contains=[question]).exclude(pk=chunk.pk)
    return {
        chunk: [question, *_remove_question(question, chunk)][:MOST_QUESTIONS],
        **{other: _remove_question(question, other) for other in had_it},
    }


def give(user: AnyUser, chunk_id: str, question: str) -> str:
    """Move the question to the passage; return an error message or "". Raises: PermissionDenied."""
    planned = _plan_giving(user, chunk_id, question)
    try:
        with lock_for_change(*{changed.collection_id for changed in planned}):
            for changed, questions in reversed(planned.items()):
                rewrite_questions(changed, questions)
    except DocumentRejected as error:
        return str(error)
    except Chunk.DoesNotExist:
        return _choose_another()
    return "" if planned else _choose_another()


def _remove_question(question: str, chunk: Chunk) -> list[str]:
    return [each for each in chunk.canonical_questions if normalize(each) != normalize(question)]


def add_wording(user: AnyUser, approved_id: str, question: str) -> None:
    """Add a wording to an approved answer. Raises: PermissionDenied, Http404."""
    if not user.has_perm("chat.change_approvedanswer"):
        raise PermissionDenied
    open_to = ApprovedAnswer.objects.filter(collection__in=Collection.objects.curated_by(user))
    approved = open_to.filter(pk=approved_id).first() if approved_id.isdecimal() else None
    if approved is None:
        raise Http404
    save_wordings(approved, [*approved.questions.values_list("text", flat=True), question])


def _build_shown(
    answer: Answer, citations: Sequence[Citation] = (), sources: AbstractSet[int] = frozenset()
) -> dict[str, object]:
    approval = get_approval(answer.approved)
    needs_passage = citations and not answer.refused and not answer.approved_id
    return {
        "answer": answer,
        "text": answer_html(answer.text, ()) if answer.text else answer.error,
        # Rows of a table are many places of one name.
        "cited": list(
            {(cited.marker, cited.document, cited.where): cited for cited in map(build_cited, citations)}.values()
        ),
        "alternatives": result_cards(answer.alternatives),
        "approved": approved_line(approval.by, approval.on) if approval else "",
        "passage": citations[0].chunk_id if needs_passage else None,
        "quoted": {citation.chunk_id for citation in citations},
        "sources": sources,
        "percent": None if answer.confidence is None else round(100 * answer.confidence),
    }


def ask_again(user: AnyUser, answer: Answer, tried: TriedQuestions | None = None) -> dict[str, object]:
    """Answer the question for the user without saving."""
    try:
        with place_to_search(), deadline.limit(settings.QUESTION_SECONDS):
            return _build_shown(*async_to_sync(_ask)(answer.standing_alone, answer.filters(user), tried))
    except (RagsiteError, DatabaseError, TimeoutError) as error:
        logger.warning("A question could not be asked again: %s", error)
        told = str(error) if isinstance(error, RagsiteError) else _("The site did not answer in time.")
        return _build_shown(Answer(error=told))


async def _ask(
    question: str, filters: SearchFilters, tried: TriedQuestions | None
) -> tuple[Answer, Sequence[Citation], frozenset[int]]:
    draft: AnswerDraft | None = None
    async for event in pipeline.answer(question, filters, tried=tried):
        match event:
            case AnswerDraft():
                draft = event
            case Completed():
                sources = draft.sources if draft is not None else ()
                found = frozenset(passage.chunk_id for source in sources for passage in source.block.passages)
                return *payloads.unsaved_answer(question, draft, event), found
            case Failed():
                return Answer(error=event.message), (), frozenset()
    return Answer(error=_("The answer broke off.")), (), frozenset()


def _find_cited_chunks(answer: Answer) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for citation in answer.citations.all():
        if citation.chunk_id is not None:
            found.setdefault(citation.marker, citation.chunk_id)
    return sorted(found.items())


def _list_documents(user: AnyUser, offers: Sequence[OfferedPassage]) -> list[tuple[str, str]]:
    if not user.has_perm("retrieval.view_document"):
        return []
    curated = set(Collection.objects.curated_by(user).values_list("slug", flat=True))
    named = {
        offer.passage.document_id: offer.passage.document_title or offer.passage.source
        for offer in offers
        if offer.passage.collection in curated
    }
    return [(reverse("admin:retrieval_document_change", args=[pk]), title) for pk, title in named.items()]


def _find_near_approved(user: AnyUser, question: str) -> list[ApprovedAnswer]:
    """Return approved answers to similar questions."""
    if not user.has_perm("chat.view_approvedanswer"):
        return []
    open_to = ApprovedQuestion.objects.filter(approved__collection__in=Collection.objects.curated_by(user))
    try:
        if not open_to.exists():
            return []
        found = find_nearest_wordings(open_to.select_related("approved"), encode_query(question))[:3]
        return list(dict.fromkeys(wording.approved for wording in found))
    except RagsiteError:
        return []
