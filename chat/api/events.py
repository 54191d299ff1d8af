"""Answers and their streams for API clients: the chat's payloads, with the text under the name `answer`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.request import Request

from chat.api.base import session_behind
from chat.conversations import rights
from chat.models import Answer, StreamedEvent
from chat.streaming import payloads, readers, sse
from retrieval.api.callers import caller_of

FEEDBACK_FIELDS = ("helpful", "reason", "comment", "created_at", "updated_at")


def event_stream(answer: Answer, request: Request, after: str = "") -> StreamingHttpResponse:
    """The answer's events behind the one named ``after``, as they come, for as long as the caller may read them."""
    return sse.respond(answer_events(answer, request.user, after, session_behind(request), caller_of(request)))


async def answer_events(
    answer: Answer, user: Any, after: str = "", session_key: str = "", caller: str = ""
) -> AsyncIterator[bytes]:
    """Server-sent events, the last one `completed` or `failed`. Tokens before a `reset` count no more."""
    # The first bytes leave at once, so that proxies and the reader see that the line is open.
    yield sse.comment("open")
    await give_back_connection()
    following = readers.follow(answer.pk, user, after, session_key=session_key, caller=caller)
    async with aclosing(following) as events:
        async for event in events:
            yield encode(event)


async def give_back_connection() -> None:
    """Saving the session may have opened the request's connection again; a stream must not hold one while it waits."""
    await sync_to_async(connections.close_all)()


def encode(event: StreamedEvent) -> bytes:
    if event.name == "ping":
        return sse.comment("ping")
    payload = with_answer(event.payload) if event.name == "completed" else event.payload
    return sse.encode(json.dumps(payload), event=event.name, event_id=event.event_id)


def answer_as_json(answer: Answer) -> dict[str, Any]:
    return with_answer(payloads.completed(answer, list(answer.citations.all())))


def saved_answer_as_json(answer: Answer, user: Any) -> dict[str, Any]:
    """The answer with its question, its state, and what its asker thought of it, as ``user`` may read it now."""
    return saved_answers_as_json([answer], user)[0]


def saved_answers_as_json(answers: Iterable[Answer], user: Any) -> list[dict[str, Any]]:
    """As :func:`saved_answer_as_json`; of an answer that ``user`` may not read any more, the question and its state."""
    listed = list(answers)
    withheld = rights.withheld_from(user, listed)
    return [
        {
            **(_withheld_as_json(answer) if answer.pk in withheld else answer_as_json(answer)),
            **_state(answer),
            "withheld": answer.pk in withheld,
        }
        for answer in listed
    ]


def _withheld_as_json(answer: Answer) -> dict[str, Any]:
    shell = Answer(pk=answer.pk, conversation_id=answer.conversation_id, search_method=answer.search_method)
    shell.notice = rights.withheld_message()
    return with_answer(payloads.completed(shell, []))


def _state(answer: Answer) -> dict[str, Any]:
    feedback = getattr(answer, "feedback", None)
    return {
        "question": answer.question,
        "status": answer.status,
        "error": answer.error,
        "created_at": answer.created_at,
        "feedback": feedback and {name: getattr(feedback, name) for name in FEEDBACK_FIELDS},
    }


def with_answer(completed: Mapping[str, Any]) -> dict[str, Any]:
    """The form of chat.streaming.payloads.completed as the API promises it: the text is called `answer`, and that it
    repeats another answer is told without that one's id, which would let the caller read what a stranger asked.
    """
    rest = {name: value for name, value in completed.items() if name != "text"}
    return {"answer": completed["text"], **rest, "repeats": completed["repeats"] is not None}
