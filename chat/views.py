"""The chat in the browser: pages, and the fragments that htmx puts into them."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from functools import wraps
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect, push_url

from chat import asking, sse, streams
from chat.debugging import explained
from chat.models import Answer, Conversation
from chat.rendering import Lines, StreamedMarkdown, streamed_html
from chat.suggestions import suggestions
from chat.throttling import QuestionThrottle
from chat.turns import Turn, failed_turn, notices, source_cards, turn_of
from retrieval.explanation import without_errors
from retrieval.models import Collection
from retrieval.reranking import with_word_matches

View = Callable[..., HttpResponseBase]

RECONNECT_MILLISECONDS = 1000
CONVERSATIONS_SHOWN = 60
STREAM_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


def for_visitors(view: View) -> View:
    """Sends visitors to the login where the site asks for one. Pages are personal, so no cache keeps them."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
            if request.htmx:  # type: ignore[attr-defined]
                return HttpResponseClientRedirect(f"{resolve_url(settings.LOGIN_URL)}?next={reverse('chat:home')}")
            # What was posted cannot be posted again after the login: that leads to the empty page.
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("chat:home"))
        return view(request, *args, **kwargs)

    return never_cache(guarded)


@require_GET
@for_visitors
def home(request: HttpRequest) -> HttpResponse:
    return _page(request, conversation=None)


@require_GET
@for_visitors
def conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return _page(request, conversation=_own_conversation(request, conversation_id))


@require_POST
@for_visitors
def ask(request: HttpRequest) -> HttpResponse:
    """Takes a question. htmx gets a turn that connects to the answer's stream; other browsers wait for the answer."""
    named = _uuid(request.POST.get("conversation", ""))
    throttle = QuestionThrottle()
    if not throttle.allow_request(request, ask):  # type: ignore[arg-type]
        wait = _("Too many questions at once. Please try again in %(seconds)d seconds.")
        return _refuse(request, wait % {"seconds": round(throttle.wait() or 1)}, named, status=429)
    try:
        answer = asking.begin(
            request.POST.get("question", ""),
            user=request.user,
            visitor=asking.visitor_of(request),
            conversation_id=named,
            collection=request.POST.get("collection", ""),
            method=request.POST.get("method", ""),
        )
    except asking.InvalidQuestion as error:
        return _refuse(request, str(error), named)
    address = reverse("chat:conversation", args=[answer.conversation_id])
    if not request.htmx:  # type: ignore[attr-defined]
        async_to_sync(streams.finish)(answer.pk)
        return redirect(f"{address}#answer-{answer.pk}")
    context = {
        "turn": turn_of(answer, debug=_may_debug(request)),
        "conversation": answer.conversation,
        "is_new": named is None,
        **_sidebar(request),
    }
    return push_url(render(request, "chat/_asked.html", context), address)


def _refuse(request: HttpRequest, message: str, conversation_id: uuid.UUID | None, status: int = 422) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        response = render(request, "chat/_question_error.html", {"error": message}, status=status)
        response["HX-Retarget"] = "#question-error"
        response["HX-Reswap"] = "outerHTML"
        return response
    try:
        found = _own_conversation(request, conversation_id) if conversation_id else None
    except Http404:
        found = None
    return _page(request, found, status=status, error=message, question=request.POST.get("question", ""))


@require_POST
@for_visitors
def delete_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    _own_conversation(request, conversation_id).delete()
    shown = request.htmx.current_url_abs_path if request.htmx else ""  # type: ignore[attr-defined]
    if request.htmx and shown != reverse("chat:conversation", args=[conversation_id]):  # type: ignore[attr-defined]
        return render(request, "chat/_conversations.html", _sidebar(request, shown=shown or ""))
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponseClientRedirect(reverse("chat:home"))
    return redirect("chat:home")


@require_POST
@for_visitors
def stop(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Ends the writing of an answer. Its stream shows the saved outcome, so htmx needs nothing from here."""
    answer = _readable_answer(request, answer_id)
    async_to_sync(streams.stop)(answer.pk)
    if request.htmx:  # type: ignore[attr-defined]
        return HttpResponse(status=204)
    return redirect("chat:conversation", answer.conversation_id)


@require_GET
@for_visitors
def debug(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponse:
    """Why the passages of an answer ranked where they did."""
    if not _may_debug(request):
        raise Http404
    answer = _readable_answer(request, answer_id)
    trace = with_word_matches(answer.trace if _is_staff(request) else without_errors(answer.trace))
    return render(request, "chat/_debug.html", {"answer": answer, "explained": explained(trace, answer.timings_ms)})


# The stream ----------------------------------------------------------------------------------------------------------


@require_GET
async def stream(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponseBase:
    """An answer while it is written, as server-sent events with HTML fragments; a finished one is told again."""
    turn = await sync_to_async(_turn_to_stream)(request, answer_id)
    # A thread's connection would stay taken for as long as the stream is open.
    await sync_to_async(connections.close_all)()
    events = _events(turn, request.headers.get("Last-Event-ID", ""), translation.get_language())
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=STREAM_HEADERS)


def _turn_to_stream(request: HttpRequest, answer_id: uuid.UUID) -> Turn:
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        raise Http404
    return turn_of(_readable_answer(request, answer_id), debug=_may_debug(request))


async def _events(turn: Turn, after: str, language: str | None) -> AsyncIterator[bytes]:
    # The first bytes leave at once, so that proxies and the reader see that the line is open.
    yield sse.comment("open") + sse.retry(RECONNECT_MILLISECONDS)
    page = _StreamedTurn(turn, language or settings.LANGUAGE_CODE, fresh=not after)
    if not after:
        yield page.show("reset", {})
    async for event in streams.follow(turn.id, after):
        if event.name in ("completed", "failed"):
            turn = await sync_to_async(_outcome, thread_sensitive=False)(turn, event.payload)
            yield page.end(event.name, turn, event.id)
            break
        yield page.show(event.name, event.payload, event.id)
    yield sse.encode("", event="done")


def _outcome(turn: Turn, payload: dict[str, Any]) -> Turn:
    """The turn as saved, or as failed when it could not be saved."""
    try:
        saved = turn_of(Answer.objects.get(pk=turn.id), debug=turn.debug)
    except Answer.DoesNotExist:
        return failed_turn(turn, {"message": _("This conversation was deleted.")})
    finally:
        connections.close_all()
    return failed_turn(saved, payload) if saved.is_open else saved


class _StreamedTurn:
    """The frames of one reader's stream.

    A reader who comes back in the middle has text before it that is not known here: then pieces are shown as text, and
    become Markdown with the completed answer.
    """

    def __init__(self, turn: Turn, language: str, *, fresh: bool) -> None:
        self._turn = turn
        self._language = language
        self._titles = {source.marker: source.title for source in turn.sources}
        self._markdown = StreamedMarkdown(turn.id, self._titles) if fresh else None

    def show(self, name: str, payload: dict[str, Any], event_id: str = "") -> bytes:
        with translation.override(self._language):
            match name:
                case "searched":
                    return self._searched(payload, event_id)
                case "token":
                    return self._token(payload["text"], event_id)
                case "reset":
                    self._markdown = StreamedMarkdown(self._turn.id, self._titles)
                    return self._frame("reset", "chat/_reset.html", {}, event_id)
                case _:
                    return sse.comment(name)

    def end(self, name: str, turn: Turn, event_id: str) -> bytes:
        with translation.override(self._language):
            return self._frame(name, "chat/_finished.html", {"turn": turn}, event_id)

    def _searched(self, payload: dict[str, Any], event_id: str) -> bytes:
        sources = source_cards(payload["sources"])
        self._titles.update((source.marker, source.title) for source in sources)
        context = {"sources": sources, "notices": notices(payload["degraded"])}
        return self._frame("sources", "chat/_searched.html", context, event_id)

    def _token(self, text: str, event_id: str) -> bytes:
        shown = (
            self._markdown.feed(text)
            if self._markdown is not None
            else streamed_html(text, self._turn.id, self._titles)
        )
        if isinstance(shown, Lines):
            return self._frame("lines", "chat/_lines.html", {"lines": shown}, event_id)
        return sse.encode(shown, event="token", event_id=event_id)

    def _frame(self, event: str, template: str, context: dict[str, Any], event_id: str) -> bytes:
        html = render_to_string(template, {"turn": self._turn, **context})
        return sse.encode(html.strip(), event=event, event_id=event_id)


# What the pages show ------------------------------------------------------------------------------------------------


def _page(
    request: HttpRequest, conversation: Conversation | None, *, status: int = 200, error: str = "", question: str = ""
) -> HttpResponse:
    debug = _may_debug(request)
    answers = (
        conversation.answers.select_related("feedback").prefetch_related("citations")
        if conversation
        else Answer.objects.none()
    )
    context = {
        "conversation": conversation,
        "turns": [turn_of(answer, debug=debug) for answer in answers],
        "suggestions": [] if conversation else suggestions(request.user),
        "error": error,
        "question": question,
        **_sidebar(request, shown=request.path),
    }
    return render(request, "chat/chat.html", context, status=status)


def _sidebar(request: HttpRequest, shown: str = "") -> dict[str, Any]:
    own = Conversation.objects.of(request.user, _known_visitor(request))[:CONVERSATIONS_SHOWN]
    return {
        "collections": list(Collection.objects.readable_by(request.user)),
        "groups": _by_age(list(own)),
        "shown": shown,
        "question_max_characters": settings.QUESTION_MAX_CHARACTERS,
        "htmx_config": json.dumps(_htmx_config()),
    }


def _by_age(conversations: list[Conversation]) -> list[tuple[str, list[Conversation]]]:
    """Conversations, newest first, under the headings that people look for them by."""
    today = timezone.localdate()
    groups: dict[str, list[Conversation]] = {}
    for found in conversations:
        days = (today - timezone.localdate(found.updated_at)).days
        heading = _("Today") if days < 1 else _("Last seven days") if days < 7 else _("Earlier")
        groups.setdefault(heading, []).append(found)
    return list(groups.items())


def _htmx_config() -> dict[str, Any]:
    return {
        **settings.DJANGO_HTMX_CONFIG,
        # Pages are read from the server again: a snapshot of half an answer would connect to its stream a second time.
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "42[29]", "swap": True},
            {"code": "[45]..", "swap": False, "error": True},
        ],
    }


def _own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> Conversation:
    own = Conversation.objects.of(request.user, _known_visitor(request)).select_related("collection")
    return get_object_or_404(own, pk=conversation_id)


def _readable_answer(request: HttpRequest, answer_id: uuid.UUID) -> Answer:
    return get_object_or_404(asking.answers_readable_by(request.user, _known_visitor(request)), pk=answer_id)


def _known_visitor(request: HttpRequest) -> str:
    """The browser's id, or nothing: only asking gives it one, so that looking around leaves no session behind."""
    return str(request.session.get(asking.VISITOR_KEY, ""))


def _is_staff(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


def _may_debug(request: HttpRequest) -> bool:
    return settings.CHAT_DEBUG_FOR_EVERYONE or _is_staff(request)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        return uuid.UUID(int=0)  # Named, but nobody's.
