from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect, push_url, reswap, retarget

from chat.answering.writers import list_choosable_models
from chat.budgets import QuestionThrottle
from chat.conversations import rights
from chat.conversations.following import find_followed_answer_ids
from chat.conversations.rights import (
    find_readable_answer,
    get_visitor,
    is_own,
    list_own_answers,
    list_stoppable_answers,
)
from chat.exceptions import InvalidQuestion, TemporarilyUnanswerable
from chat.models import Answer, Conversation
from chat.pages.access import admit_visitors, get_own_conversation, may_correct_answers, may_debug
from chat.pages.cards import build_source_cards
from chat.pages.changes import find_changes
from chat.pages.filters import build_filter_context, read_filters
from chat.pages.page_views import build_sidebar, is_followed, render_chat_page
from chat.pages.streamed_rendering import RenderedLines, StreamedMarkdown, render_line_piece
from chat.pages.suggestions import list_follow_up_questions
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn, describe_failed_parts
from chat.payload_types import FailedEventPayload, SearchedEventPayload, TokenPayload
from chat.streaming import asking, readers, sse, streams
from chat.streaming.saving import DELETED
from chat.streaming.streams import EVENT_ID
from core.api.callers import identify_caller
from core.exceptions import DiskFull
from core.user_types import AnyUser
from retrieval.rights.chosen_filters import has_filters

RECONNECT_MILLISECONDS = 1000


@require_GET
async def stream(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponseBase:
    """Stream an answer as HTML fragments. A finished answer is streamed from the database."""
    turn = await sync_to_async(_load_turn)(request, answer_id)
    # A stream stays open for long, so it must not occupy a database connection.
    await sync_to_async(connections.close_all)()
    after = request.headers.get("Last-Event-ID", "")
    # This site never sends ids of another form, so the stream starts from its beginning.
    after = after if EVENT_ID.fullmatch(after) else ""
    session_key = request.session.session_key or ""
    caller = await sync_to_async(identify_caller)(request)
    events = _encode_frames(turn, request.user, session_key, after, translation.get_language(), caller)
    return sse.build_event_response(events)


def _load_turn(request: HttpRequest, answer_id: uuid.UUID) -> ShownTurn:
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        raise Http404
    answer = find_readable_answer(request, answer_id)
    if rights.is_withheld(request.user, answer):
        return build_withheld_turn(answer)
    followed = find_followed_answer_ids(request.user, [answer]) if is_own(request, answer.conversation) else None
    models = list_choosable_models(request.user)
    turn = build_turn(answer, debug=may_debug(request), may_correct_answers=may_correct_answers(request), models=models)
    # The answer has no citations yet, so the "Follow" button is shown only when the stream ends.
    return replace(turn, followed=is_followed(answer, followed))


async def _encode_frames(
    turn: ShownTurn, user: AnyUser, session_key: str, after: str, language: str | None, caller: str
) -> AsyncIterator[bytes]:
    yield sse.encode_comment("open") + sse.encode_retry(RECONNECT_MILLISECONDS)
    page = _StreamedTurn(turn, language or settings.LANGUAGE_CODE, fresh=not after)
    if not after:
        yield page.render_event("reset", {})
    following = readers.follow_as_reader(turn.id, user, after, session_key=session_key, caller=caller)
    async with aclosing(following) as followed:
        async for event in followed:
            if event.name in ("completed", "failed"):
                failure = event.payload if event.name == "failed" else None
                turn = await sync_to_async(_reload_ended_turn, thread_sensitive=False)(turn, failure)
                # Rendering in this thread would block all other streams.
                yield await sync_to_async(page.end, thread_sensitive=False)(event.name, turn, event.event_id)
                break
            yield page.render_event(event.name, event.payload, event.event_id)
    yield sse.encode_event("", event="done")


def _reload_ended_turn(turn: ShownTurn, failure: FailedEventPayload | None) -> ShownTurn:
    try:
        answer = Answer.objects.select_related("feedback", "repeats").filter(pk=turn.id).first()
        if answer is None or not answer.is_finished:
            answer = answer or turn.answer
            answer.status, answer.error = Answer.Status.FAILED, failure["message"] if failure else str(DELETED)
        if failure and failure.get("withheld"):
            return build_withheld_turn(answer)
        final = build_turn(
            answer,
            debug=turn.debug,
            may_correct_answers=turn.may_correct_answers,
            models=turn.models,
            changes=find_changes(answer.citations.all()),
            followed=turn.followed,
        )
        return replace(final, follow_ups=list_follow_up_questions(answer))
    finally:
        connections.close_all()


class _StreamedTurn:
    """Renders the events of one stream as HTML.

    If the reader reconnects in the middle of an answer, the rest is shown as plain text.
    """

    def __init__(self, turn: ShownTurn, language: str, *, fresh: bool) -> None:
        self._turn = turn
        self._language = language
        self._titles = {source.marker: source.document for source in turn.sources}
        self._markdown = StreamedMarkdown(turn.id, self._titles) if fresh else None

    def render_event(self, name: str, payload: Any, event_id: str = "") -> bytes:
        with translation.override(self._language):
            match name:
                case "searched":
                    return self._describe_search(payload, event_id)
                case "token":
                    return self._render_token(payload, event_id)
                case "reset":
                    self._markdown = StreamedMarkdown(self._turn.id, self._titles)
                    return self._render_frame("reset", "chat/_reset.html", {}, event_id)
                case "queued":
                    return self._render_frame("queued", "chat/_status.html", {"place": payload["place"]}, event_id)
                case _:
                    return sse.encode_comment(name)

    def end(self, name: str, turn: ShownTurn, event_id: str) -> bytes:
        with translation.override(self._language):
            return self._render_frame(name, "chat/_finished.html", {"turn": turn}, event_id)

    def _describe_search(self, payload: SearchedEventPayload, event_id: str) -> bytes:
        sources = build_source_cards(payload["sources"])
        self._titles.update((source.marker, source.document) for source in sources)
        context = {
            "sources": sources,
            "failures": describe_failed_parts(payload["degraded"]),
            "rewritten": payload.get("completed_question", ""),
            "is_joined": bool(payload.get("joined_question")),
        }
        return self._render_frame("sources", "chat/_searched.html", context, event_id)

    def _render_token(self, payload: TokenPayload, event_id: str) -> bytes:
        text, markers = payload["text"], payload.get("markers")
        at = None if markers is None else {marker["start"] for marker in markers}
        shown = (
            self._markdown.feed(text, at)
            if self._markdown is not None
            else render_line_piece(text, self._turn.id, self._titles, at=at)
        )
        if isinstance(shown, RenderedLines):
            return self._render_frame("lines", "chat/_lines.html", {"lines": shown}, event_id)
        return sse.encode_event(shown, event="token", event_id=event_id)

    def _render_frame(self, event: str, template: str, context: Mapping[str, object], event_id: str) -> bytes:
        html = render_to_string(template, {"turn": self._turn, **context})
        return sse.encode_event(html.strip(), event=event, event_id=event_id)


@require_POST
@admit_visitors
def ask_question(request: HttpRequest) -> HttpResponse:
    """Save a question and return a page part that connects to the answer's stream.

    Clients other than htmx wait for the answer and get its page.
    """
    named = _parse_uuid(request.POST.get("conversation", ""))
    edited = _parse_uuid(request.POST.get("edits", ""))
    edits = get_object_or_404(list_own_answers(request), pk=edited) if edited else None
    collection, document = request.POST.get("collection"), request.POST.get("document", "")
    if edits is not None:
        collection, document = edits.collection.slug if edits.collection else "", str(edits.document_id or "")
    filters, problem = _read_filters(request, named, collection)
    if problem:
        return _refuse(request, problem, named)
    throttle = QuestionThrottle()
    if not throttle.allow_request(request, ask_question):
        wait = _("Too many questions at once. Please try again in %(seconds)d seconds.")
        return _refuse(request, wait % {"seconds": round(throttle.wait() or 1)}, named, status=429)
    try:
        answer = asking.create_answer(
            request.POST.get("question", ""),
            user=request.user,
            visitor=get_visitor(request),
            caller=identify_caller(request),
            conversation_id=named,
            collection=None if collection is None else collection.replace("\0", "\ufffd"),
            document=int(document[:18]) if document.isdecimal() else None,
            filters=filters if edits is None else edits.asked_filters,
            edits=edits,
            method=request.POST.get("method", ""),
            model=request.POST.get("model", ""),
            anew=bool(request.POST.get("anew")),
        )
    except InvalidQuestion as error:
        return _refuse(request, str(error), named)
    except TemporarilyUnanswerable as error:
        response = _refuse(request, str(error), named, status=error.status)
        response["Retry-After"] = str(error.retry_after_seconds)
        return response
    except DiskFull as error:
        return _refuse(request, str(error), named, status=507)
    address = reverse("chat:conversation", args=[answer.conversation_id])
    if not request.htmx:  # type: ignore[attr-defined]
        async_to_sync(streams.complete_answer)(answer.pk, caller=identify_caller(request))
        return redirect(f"{address}#answer-{answer.pk}")
    if edits is not None:
        return HttpResponseClientRedirect(address)
    context = {
        "turn": build_turn(answer, debug=may_debug(request), models=list_choosable_models(request.user)),
        "conversation": answer.conversation,
        "is_new": named is None,
        "wanted_collection": answer.collection.slug if answer.collection else "",
        "wanted_document": answer.document,
        **build_filter_context(request.user, answer.collection.slug if answer.collection else "", answer.conversation),
        **build_sidebar(request),
    }
    return push_url(render(request, "chat/_asked.html", context), address)


def _read_filters(
    request: HttpRequest, named: uuid.UUID | None, collection: str | None
) -> tuple[dict[str, Any] | None, str]:
    """Return the filters that the user chose in the form, and an error message.

    If the filters are None, the conversation's last filters apply.
    """
    if not has_filters(request.POST):
        return None, ""
    if collection is None:
        conversation = _find_own_conversation(request, named)
        collection = conversation.collection.slug if conversation and conversation.collection else ""
    return read_filters(request.POST, request.user, collection)


def _refuse(request: HttpRequest, message: str, conversation_id: uuid.UUID | None, status: int = 422) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        response = render(request, "chat/_question_error.html", {"error": message}, status=status)
        return reswap(retarget(response, "#question-error"), "outerHTML")
    found = _find_own_conversation(request, conversation_id)
    return render_chat_page(request, found, status=status, error=message, question=request.POST.get("question", ""))


def _find_own_conversation(request: HttpRequest, conversation_id: uuid.UUID | None) -> Conversation | None:
    try:
        return get_own_conversation(request, conversation_id) if conversation_id else None
    except Http404:
        return None


@require_POST
@admit_visitors
def show_filters(request: HttpRequest) -> HttpResponse:
    """Show the filters that are chosen in the form, without submitting the question."""
    named = _parse_uuid(request.POST.get("conversation", ""))
    conversation = _find_own_conversation(request, named)
    if not request.htmx:  # type: ignore[attr-defined]
        return render_chat_page(request, conversation, question=request.POST.get("question", ""))
    collection = request.POST.get("collection", "").replace("\0", "")
    context = build_filter_context(request.user, collection, conversation, request.POST)
    is_other = request.headers.get("HX-Trigger-Name") == "collection"
    context |= {"renews_all": is_other, "renews_fields": "remove" in request.POST}
    return render(request, "chat/_filters_changed.html", context)


@require_POST
@admit_visitors
def stop_answering(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    answer = get_object_or_404(list_stoppable_answers(request), pk=answer_id)
    async_to_sync(streams.stop_answer)(answer.pk)
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=204)
    return redirect("chat:conversation", answer.conversation_id)


def _parse_uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        return uuid.UUID(int=0)
