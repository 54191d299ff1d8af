"""An answer's stream for API clients: the chat's events, with the answer under the name it has without streaming."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections

from chat import sse, streams


async def answer_events(answer_id: uuid.UUID) -> AsyncIterator[bytes]:
    """Server-sent events, the last one `completed` or `failed`. Tokens before a `reset` count no more."""
    # Saving the session may have opened the request's connection again; a stream must not hold one while it waits.
    await sync_to_async(connections.close_all)()
    async for event in streams.follow(answer_id):
        yield encode(event)


def encode(event: streams.StreamEvent) -> bytes:
    if event.name == "ping":
        return sse.comment("ping")
    payload = with_answer(event.payload) if event.name == "completed" else event.payload
    return sse.encode(json.dumps(payload), event=event.name, event_id=event.id)


def with_answer(completed: dict[str, Any]) -> dict[str, Any]:
    """The form of chat.payloads.completed as the API promises it: the text is called `answer`."""
    return {"answer": completed["text"], **{name: value for name, value in completed.items() if name != "text"}}
