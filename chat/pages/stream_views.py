"""An answer while it is written, as server-sent events with HTML fragments."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from chat.api.answer_endpoints import EVENT_ID
from chat.conversations import rights
from chat.models import Answer
from chat.pages.access import may_debug, readable_answer
from chat.pages.cards import source_cards
from chat.pages.rendering import Lines, StreamedMarkdown, streamed_html
from chat.pages.turns import ShownTurn, build_turn, build_withheld_turn, failed_turn, notices
from chat.streaming import readers, sse
from retrieval.api.callers import caller_of

RECONNECT_MILLISECONDS = 1000
STREAM_HEADERS = {"Cache-Control": "private, no-store, no-transform", "X-Accel-Buffering": "no"}


@require_GET
async def stream(request: HttpRequest, answer_id: uuid.UUID) -> HttpResponseBase:
    """An answer while it is written, as server-sent events with HTML fragments; a finished one is told again."""
    turn = await sync_to_async(_turn_to_stream)(request, answer_id)
    # A thread's connection would stay taken for as long as the stream is open.
    await sync_to_async(connections.close_all)()
    after = request.headers.get("Last-Event-ID", "")
    # Whatever else a proxy or a program sends there was never told here: it gets the answer from its beginning.
    after = after if EVENT_ID.fullmatch(after) else ""
    session_key = request.session.session_key or ""
    caller = await sync_to_async(caller_of)(request)
    events = _events(turn, request.user, session_key, after, translation.get_language(), caller)
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=STREAM_HEADERS)


def _turn_to_stream(request: HttpRequest, answer_id: uuid.UUID) -> ShownTurn:
    if settings.CHAT_REQUIRES_LOGIN and not request.user.is_authenticated:
        raise Http404
    answer = readable_answer(request, answer_id)
    if rights.is_withheld(request.user, answer):
        return build_withheld_turn(answer)
    return build_turn(answer, debug=may_debug(request))


async def _events(
    turn: ShownTurn, user: Any, session_key: str, after: str, language: str | None, caller: str
) -> AsyncIterator[bytes]:
    # The first bytes leave at once, so that proxies and the reader see that the line is open.
    yield sse.comment("open") + sse.retry(RECONNECT_MILLISECONDS)
    page = _StreamedTurn(turn, language or settings.LANGUAGE_CODE, fresh=not after)
    if not after:
        yield page.show("reset", {})
    async with aclosing(readers.follow(turn.id, user, after, session_key=session_key, caller=caller)) as followed:
        async for event in followed:
            if event.name in ("completed", "failed"):
                turn = await sync_to_async(_outcome, thread_sensitive=False)(turn, event.payload)
                # In a thread: a whole answer is rendered there, for which other streams must not wait.
                yield await sync_to_async(page.end, thread_sensitive=False)(event.name, turn, event.id)
                break
            yield page.show(event.name, event.payload, event.id)
    yield sse.encode("", event="done")


def _outcome(turn: ShownTurn, payload: dict[str, Any]) -> ShownTurn:
    """The turn as saved, or as failed when it could not be saved."""
    try:
        answer = Answer.objects.get(pk=turn.id)
        if payload.get("withheld"):
            return build_withheld_turn(answer)
        saved = build_turn(answer, debug=turn.debug)
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

    def __init__(self, turn: ShownTurn, language: str, *, fresh: bool) -> None:
        self._turn = turn
        self._language = language
        self._titles = {source.marker: source.title for source in turn.sources}
        self._markdown = StreamedMarkdown(turn.id, self._titles) if fresh else None

    def show(self, name: str, payload: dict[str, Any], event_id: str = "") -> bytes:
        with translation.override(self._language):
            match name:
                case "searched":
                    return self._describe_search(payload, event_id)
                case "token":
                    return self._token(payload["text"], event_id)
                case "reset":
                    self._markdown = StreamedMarkdown(self._turn.id, self._titles)
                    return self._frame("reset", "chat/_reset.html", {}, event_id)
                case "queued":
                    return self._frame("queued", "chat/_status.html", {"place": payload["place"]}, event_id)
                case _:
                    return sse.comment(name)

    def end(self, name: str, turn: ShownTurn, event_id: str) -> bytes:
        with translation.override(self._language):
            return self._frame(name, "chat/_finished.html", {"turn": turn}, event_id)

    def _describe_search(self, payload: dict[str, Any], event_id: str) -> bytes:
        sources = source_cards(payload["sources"])
        self._titles.update((source.marker, source.title) for source in sources)
        context = {
            "sources": sources,
            "notices": notices(payload["degraded"]),
            "rewritten": payload.get("completed_question", ""),
            "is_joined": bool(payload.get("joined_question")),
        }
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
