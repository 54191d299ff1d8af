from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import StreamingHttpResponse
from rest_framework.authentication import SessionAuthentication
from rest_framework.request import Request

from chat.models import Answer, StreamedEvent
from chat.streaming import readers, sse
from core.api.callers import identify_caller


def event_stream(answer: Answer, request: Request, after: str = "") -> StreamingHttpResponse:
    """Stream the events of an answer after the event id ``after``, as long as the caller may read the answer.

    The first event contains the ids of the answer and its conversation.
    """
    named = {} if after else {"answer_id": str(answer.pk), "conversation": str(answer.conversation_id)}
    is_by_session = isinstance(request.successful_authenticator, SessionAuthentication)
    session_key = request._request.session.session_key or "" if is_by_session else ""
    caller = identify_caller(request)

    async def encode_events() -> AsyncIterator[bytes]:
        # These first bytes show to proxies and clients that the connection is open.
        yield sse.encode_comment("open")
        await release_connection()
        following = readers.follow_as_reader(answer.pk, request.user, after, session_key=session_key, caller=caller)
        async with aclosing(following) as events:
            async for event in events:
                yield encode_event(event, named)
                if event.name != "ping":
                    named.clear()

    return sse.build_event_response(encode_events())


async def release_connection() -> None:
    await sync_to_async(connections.close_all)()


def encode_event(event: StreamedEvent, named: Mapping[str, str]) -> bytes:
    if event.name == "ping":
        return sse.encode_comment("ping")
    return sse.encode_event(json.dumps({**named, **event.payload}), event=event.name, event_id=event.event_id)
