"""The chat's page: who may see it, its forms, and the questions that it suggests."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from itertools import chain, islice, zip_longest
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.cache import caches
from django.db.models import F, QuerySet
from django.db.models.functions import Abs
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render, resolve_url
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRedirect

from chat.answering.words import stems
from chat.budgets import budget_of
from chat.conf import choosable_models
from chat.conversations import rights
from chat.conversations.listing import list_newest
from chat.conversations.reach import find_readable, own_conversations
from chat.models import Answer, Conversation, Feedback
from chat.pages.turns import build_turn, build_withheld_turn
from retrieval.admin.document_forms import upload_context
from retrieval.exceptions import InvalidQuery, RetrievalError
from retrieval.models import Chunk, Collection, CollectionStatistics, Document
from retrieval.models.document import is_narrowed
from retrieval.rights import filters_for, narrowing_key
from retrieval.search.pipeline import search
from retrieval.text.questions import normalize
from retrieval.types import ANYBODY, SearchFilters

logger = logging.getLogger(__name__)

# Who may see which page.

View = Callable[..., HttpResponseBase]


def for_visitors(view: View) -> View:
    """Redirects visitors to the login if the site requires it. Pages are personal, so they are never cached."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
            if request.htmx:  # type: ignore[attr-defined]
                return HttpResponseClientRedirect(f"{resolve_url(settings.LOGIN_URL)}?next={reverse('chat:home')}")
            # What was posted cannot be posted again after the login: that leads to the empty page.
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("chat:home"))
        return view(request, *args, **kwargs)

    return never_cache(guarded)


def own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> Conversation:
    return get_object_or_404(own_conversations(request).select_related("collection"), pk=conversation_id)


def explainable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    """An answer that the caller may read now and whose trace they may see. Raises: Http404."""
    if not may_debug(request):
        raise Http404
    answer = find_readable(request, answer_id)
    if rights.is_withheld(request.user, answer):
        raise Http404
    return answer


def may_debug(request: HttpRequest) -> bool:
    return settings.CHAT_DEBUG_FOR_EVERYONE or rights.may_read_all(request.user)


# What people may say of conversations and answers, checked.

COMMENT_CHARACTERS = 2000


class TitleForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Conversation
        fields = ["title"]
        error_messages = {
            "title": {
                "required": _("Please type a title."),
                "max_length": _("Please keep the title within %(limit_value)d characters."),
            }
        }

    def clean_title(self) -> str:
        return " ".join(self.cleaned_data["title"].split())


class ShareForm(forms.Form):
    """What of a conversation is shared, and with whom."""

    scope = forms.ChoiceField(choices=Conversation.ShareScope.choices)
    audience = forms.ChoiceField(choices=Conversation.ShareAudience.choices)
    answer = forms.ModelChoiceField(Answer.objects.none(), required=False)

    def __init__(self, conversation: Conversation, *args: Any) -> None:
        super().__init__(*args)
        field = self.fields["answer"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = conversation.answers.all()

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if given.get("scope") == Conversation.ShareScope.ANSWER and not given.get("answer"):
            raise forms.ValidationError(_("Choose the answer that is shared."))
        return given


class _Comment(forms.CharField):
    """A text whose line ends count as one character, as in a browser: forms send two."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class FeedbackForm(forms.ModelForm):  # type: ignore[type-arg]
    """A verdict, with a reason if it is bad. ``has_details`` is true if the form asked for the reason."""

    VERDICTS = {"yes": True, "no": False, "none": None}

    verdict = forms.ChoiceField(choices=[(name, name) for name in VERDICTS])
    has_details = forms.BooleanField(required=False)
    comment = _Comment(
        max_length=COMMENT_CHARACTERS,
        required=False,
        error_messages={"max_length": _("Please keep the comment within %(limit_value)d characters.")},
    )

    class Meta:
        model = Feedback
        fields = ["reason", "comment"]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        helpful = given["helpful"] = self.VERDICTS.get(given.get("verdict", ""))
        if helpful is not False:
            given["reason"] = given["comment"] = ""
        return given


# Questions to begin with, which the documents answer: those of the curators, else those written for a passage, and
# headings that ask, as far as a search is sure of them.

MOST_SUGGESTIONS, MOST_OF_A_COLLECTION = 9, 3
# How far the passage of a suggested question must be ahead of the next: it is right in 18 of 21 cases then.
SURE_LEAD = 0.5
_KEPT_SECONDS = 3600
_DOCUMENTS_PER_COLLECTION = 8
_SHORTEST, _LONGEST = 18, 90
_NUMBER = re.compile(r"^\d[\d.]*\s+")


def suggestions(user: object, chosen: str = "") -> list[tuple[str, Collection]]:
    """Return at most MOST_SUGGESTIONS questions with their collections, taken in turn from the ``chosen`` collection or
    from all that the user searches. Questions that the site found itself are cached.
    """
    try:
        searched = filters_for(user, chosen).collections
    except InvalidQuery:
        return []
    collections = Collection.objects.filter(pk__in=searched).order_by("name", "pk")[:MOST_SUGGESTIONS]
    found = [
        [(question, collection) for question in (_curated(collection) or _cached_suggestions(collection))]
        for collection in collections
    ]
    return list(filter(None, chain.from_iterable(zip_longest(*found))))[:MOST_SUGGESTIONS]


def questions_of(document: Document) -> list[tuple[str, Collection]]:
    """The most specific questions that passages of one document answer."""
    asking = (
        Chunk.objects.filter(document=document).exclude(canonical_questions=[], heading_path=[]).order_by("ordinal")
    )
    rows = asking.values_list("heading_path", "canonical_questions")[:_PASSAGES_LOOKED_AT]
    found = {question for path, written in rows for question in _standalone_questions(path, written)[:1]}
    best = sorted(found, key=_specificity, reverse=True)[:MOST_OF_A_COLLECTION]
    return [(question, document.collection) for question in best]


def _curated(collection: Collection) -> list[str]:
    lines = (" ".join(line.split()) for line in collection.suggested_questions.splitlines())
    return list(filter(None, lines))[:MOST_OF_A_COLLECTION]


def _cached_suggestions(collection: Collection) -> list[str]:
    # Another key as soon as a document is narrowed.
    version = CollectionStatistics.objects.filter(pk=collection.pk).values_list("version", flat=True).first()
    key = f"suggestions:{collection.pk}:{version}:{narrowing_key([collection.pk], [ANYBODY])}"
    return caches["process"].get_or_set(key, lambda: _suggestions_of(collection), _KEPT_SECONDS) or []


def _suggestions_of(collection: Collection) -> list[str]:
    """The most specific question of each of a few documents, if a search is sure of its passage."""
    # They are kept for all readers of the collection.
    ready = Document.objects.filter(collection=collection, status=Document.Status.READY)
    documents = ready.exclude(is_narrowed()).order_by("?")
    chunks = Chunk.objects.filter(document__in=list(documents.values_list("pk", flat=True)[:_DOCUMENTS_PER_COLLECTION]))
    best: dict[int, tuple[str, int]] = {}
    asking = chunks.exclude(canonical_questions=[], heading_path=[])
    for pk, document_id, written, path in asking.values_list("pk", "document", "canonical_questions", "heading_path"):
        for question in _standalone_questions(path, written):
            if _specificity(question) > _specificity(best.get(document_id, ("", 0))[0]):
                best[document_id] = question, pk
    ordered = sorted(best.values(), key=lambda found: _specificity(found[0]), reverse=True)
    filters = SearchFilters(collections=(collection.pk,), readers=(ANYBODY,))
    return list(islice((question for question, pk in ordered if _is_sure(question, pk, filters)), MOST_OF_A_COLLECTION))


def _is_sure(question: str, chunk_id: int, filters: SearchFilters) -> bool:
    """Whether a search for the question finds its passage first, well ahead of the next."""
    try:
        hits = search(question, filters, top_k=2).hits
    except RetrievalError as error:
        logger.warning("A question is not suggested, because it could not be searched: %s", error)
        return False
    if not hits or hits[0].passage.chunk_id != chunk_id:
        return False
    return len(hits) < 2 or hits[0].score - hits[1].score >= SURE_LEAD


def _standalone_questions(path: list[str], written: list[str]) -> list[str]:
    """The questions that a passage answers and that can be understood alone: its heading, without its number, if it is
    a question, then the questions written for it.
    """
    headings = [_NUMBER.sub("", heading) for heading in path[-1:] if heading.endswith("?") and not heading.isupper()]
    # "What is the policy?" does not say which policy.
    return [
        question
        for question in (*headings, *written)
        if _SHORTEST <= len(question) <= _LONGEST and len(set(stems(question))) > 1
    ]


def _specificity(question: str) -> tuple[int, int]:
    """A score of how specific a question is: longer ones name more of their subject, up to two lines."""
    return (min(len(question), 70), -len(question))


# Questions to go on with, below an answer.

MOST_FOLLOW_UPS = 3
_PASSAGES_LOOKED_AT = 24


def follow_ups(answer: Answer) -> tuple[str, ...]:
    """Questions to ask next: those written for passages of the first cited document, and its headings that are
    questions, the closest first. Questions already asked in the conversation, and those of passages that the answer
    cites, are left out.

    Whoever may read the answer may read that document.
    """
    citations = [cited for cited in answer.citations.all() if cited.document_id is not None]
    if answer.refused or not citations:
        return ()
    first = citations[0]
    near = (
        Chunk.objects.filter(document=first.document_id)
        .exclude(pk__in=[cited.chunk_id for cited in citations if cited.chunk_id])
        .exclude(start__lt=first.end, end__gt=first.start)
        .order_by(Abs(F("start") - first.start), "pk")
    )
    asked = {normalize(question) for question in answer.conversation.answers.values_list("question", flat=True)}
    cited_headings = {cited.section.rpartition(" › ")[2] for cited in citations}
    found: dict[str, str] = {}
    for path, written in near.values_list("heading_path", "canonical_questions")[:_PASSAGES_LOOKED_AT]:
        for question in _standalone_questions(
            [heading for heading in path[-1:] if heading not in cited_headings], written
        )[:1]:
            found.setdefault(normalize(question), question)
    return tuple(question for key, question in found.items() if key not in asked)[:MOST_FOLLOW_UPS]


@require_GET
@for_visitors
def home(request: HttpRequest) -> HttpResponse:
    """The empty page; with ``?document=`` only that document is searched, with ``?collection=`` that collection."""
    return page(request, conversation=None)


@require_GET
@for_visitors
def conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return page(request, conversation=own_conversation(request, conversation_id))


def page(
    request: HttpRequest,
    conversation: Conversation | None,
    *,
    status: int = 200,
    error: str = "",
    question: str = "",
) -> HttpResponse:
    debug = may_debug(request)
    models = choosable_models(request.user)
    answers = list(saved_answers(conversation)) if conversation else []
    before = answers_before_branch(conversation) if conversation else []
    withheld = rights.withheld_from(request.user, [*before, *answers])
    turns = [
        build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer, debug=debug, models=models)
        for answer in answers
    ]
    if turns and not turns[-1].is_withheld:
        turns[-1] = replace(turns[-1], follow_ups=follow_ups(answers[-1]))
    scope = _scope(request, conversation)
    context = {
        "conversation": conversation,
        "turns": turns,
        "models": models,
        "chosen_model": request.POST.get("model") or (conversation.model if conversation else ""),
        "turns_before": [
            build_withheld_turn(answer) if answer.pk in withheld else build_turn(answer) for answer in before
        ],
        "suggestions": [] if conversation else _suggestions_within(request.user, scope),
        "error": error,
        "question": question,
        **sidebar(request, shown=request.path),
        **scope,
        **({} if conversation else upload_context(request.user)),
    }
    return render(request, "chat/chat.html", context, status=status)


def _suggestions_within(user: object, scope: Mapping[str, Any]) -> list[tuple[str, Collection]]:
    document = scope["wanted_document"]
    return questions_of(document) if document is not None else suggestions(user, scope["wanted_collection"])


def _scope(request: HttpRequest, conversation: Conversation | None) -> dict[str, Any]:
    """The scope of the next question: that of the form or the address, or else that of the last question."""
    asked = request.POST or request.GET
    document, collection = asked.get("document", ""), asked.get("collection", "")
    if conversation and "collection" not in asked:
        document = str(conversation.document_id or "")
        collection = conversation.collection.slug if conversation.collection else ""
    readable = Document.objects.readable_by(request.user).select_related("collection")
    found = readable.filter(pk=int(document[:18])).first() if document.isdecimal() else None
    return {"wanted_collection": collection, "wanted_document": found}


def saved_answers(conversation: Conversation) -> QuerySet[Answer]:
    """The conversation's answers with all that a page shows of them."""
    return conversation.answers.select_related("feedback", "repeats").prefetch_related("citations")


def answers_before_branch(conversation: Conversation) -> list[Answer]:
    """The answers before the edited question of a branch, with all that a page shows of them."""
    edited = conversation.branched_from
    if edited is None:
        return []
    earlier = saved_answers(edited.conversation).filter(created_at__lt=edited.created_at)
    return [*answers_before_branch(edited.conversation), *earlier]


def sidebar(request: HttpRequest, shown: str = "") -> dict[str, Any]:
    asked_for = request.GET.get("show", "")
    return {
        "collections": list(Collection.objects.readable_by(request.user)),
        "listing": list_newest(
            own_conversations(request),
            request.user,
            (request.GET.get("q") or request.POST.get("q") or "").strip(),
            int(asked_for[:6]) if asked_for.isdecimal() else 0,
        ),
        "shown": shown,
        "budget": budget_of(request.user),
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
    }
