from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from chat.answering.approved_answers import find_nearest_wordings
from chat.curation.approval import save_wordings
from chat.curation.asking_again import ask_again, build_answer_context
from chat.curation.curation_admin import ApprovedAnswerForm, OfferedPassage, find_citable_passages
from chat.curation.trials import (
    CurationTrial,
    assign_question_to_passage,
    preview_approval,
    preview_question_assignment,
)
from chat.models import Answer, ApprovedAnswer, ApprovedQuestion, Feedback
from core.admin_base import PageAdmin
from core.exceptions import RagsiteError
from core.user_types import AnyUser
from retrieval.index.active_embedder import encode_query
from retrieval.models import Collection, Document

MOST_ADDED = 10


class AnswerMendingAdmin(PageAdmin):
    def get_urls(self) -> list[URLPattern]:
        page = path(
            "<path:object_id>/mend/", self.admin_site.admin_view(self.mend_answer_view), name="chat_answer_mend"
        )
        return [page, *super().get_urls()]

    def mend_answer_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        answer = self.get_object(request, unquote(object_id))
        if answer is None or not self.has_view_permission(request, answer):
            raise Http404
        user, doing, question = request.user, request.POST.get("action", ""), answer.standalone_question
        collection = answer.collection.slug if answer.collection is not None else ""
        tried: CurationTrial | None = None
        wanted = request.GET.get("find", "").strip()
        offers, trouble = find_citable_passages(user, wanted or question, _find_cited_chunks(answer), collection)
        forms = {way: self._build_form(request, answer, offers, way) for way in ("approve", "scope")}
        said = ""
        if doing == "check":
            tried = preview_approval(forms["approve"], user)
        elif doing in forms:
            if not user.has_perm("chat.add_approvedanswer"):
                raise PermissionDenied
            if forms[doing].is_valid():
                approved = forms[doing].save()
                forms[doing].save_approved(approved)
                self.admin_site.get_model_admin(ApprovedAnswer).log_addition(request, approved, [{"added": {}}])
                said = _("Saved. Ask again to see what readers get now.")
        elif doing in ("try", "give"):
            chunk_id = request.POST.get("passage", "")
            tried = preview_question_assignment(user, chunk_id, answer) if doing == "try" else None
            if refusal := tried.refusal if tried is not None else assign_question_to_passage(user, chunk_id, question):
                messages.error(request, refusal)
                tried = None
            elif doing == "give":
                said = _("Saved. The passage has the question now, and readers get the new answer.")
        elif doing == "wording":
            add_wording(user, request.POST.get("approved", ""), question)
            said = _("Saved. Ask again to see what readers get now.")
        if said:
            self.tell_done(request, said)
            return HttpResponseRedirect(reverse("admin:chat_answer_mend", args=[answer.pk]))
        collections = list(Collection.objects.curated_by(user).in_service())
        asked = _filter_searched_collections(answer, collections)
        context = {
            "original": answer,
            "question": question,
            "before": build_answer_context(answer, answer.citations.all()),
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
            "documents": _list_offered_documents(user, offers),
            "collections": collections,
            "asked_collections": asked,
            "other_collections": [each for each in collections if each not in asked],
            "added": self._list_added_documents(user, answer, asked),
            "feedback": Feedback.objects.filter(answer=answer, helpful=False).first(),
            "near_approved": _find_similar_approved_answers(user, question),
        }
        return self.render_page(request, "answer/mend", _("Mend this answer"), context)

    def _list_added_documents(
        self, user: AnyUser, answer: Answer, asked: Sequence[Collection]
    ) -> list[tuple[str, str, SafeString]]:
        if not user.has_perm("retrieval.view_document"):
            return []
        since = Q(created_at__gt=answer.created_at) | Q(ingested_at__gt=answer.created_at)
        documents = Document.objects.readable_by(user).filter(since, collection__in=asked)
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
            "question": answer.standalone_question,
            "text": "" if answer.refused else answer.text,
            "collection": first or collections.first(),
            "owner": request.user,
            "passages": [offer.choice_value for offer in offers if (offer.marker, offer.passage.chunk_id) in cited],
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


def _filter_searched_collections(answer: Answer, collections: Sequence[Collection]) -> list[Collection]:
    try:
        searched = answer.build_search_filters().collections
    except RagsiteError:
        searched = ()
    return [each for each in collections if each.pk in searched]


def add_wording(user: AnyUser, approved_id: str, question: str) -> None:
    """Store the question as another wording of an approved answer's question. Raises: PermissionDenied, Http404."""
    if not user.has_perm("chat.change_approvedanswer"):
        raise PermissionDenied
    open_to = ApprovedAnswer.objects.filter(collection__in=Collection.objects.curated_by(user))
    approved = open_to.filter(pk=approved_id).first() if approved_id.isdecimal() else None
    if approved is None:
        raise Http404
    save_wordings(approved, [*approved.questions.values_list("text", flat=True), question])


def _find_cited_chunks(answer: Answer) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for citation in answer.citations.all():
        if citation.chunk_id is not None:
            found.setdefault(citation.marker, citation.chunk_id)
    return sorted(found.items())


def _list_offered_documents(user: AnyUser, offers: Sequence[OfferedPassage]) -> list[tuple[str, str]]:
    if not user.has_perm("retrieval.view_document"):
        return []
    curated = set(Collection.objects.curated_by(user).values_list("slug", flat=True))
    named = {
        offer.passage.document_id: offer.passage.document_title or offer.passage.source
        for offer in offers
        if offer.passage.collection in curated
    }
    return [(reverse("admin:retrieval_document_change", args=[pk]), title) for pk, title in named.items()]


def _find_similar_approved_answers(user: AnyUser, question: str) -> list[ApprovedAnswer]:
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
