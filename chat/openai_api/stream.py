"""An answer being written, as the server-sent events of OpenAI's protocol: lines of ``data:`` and nothing else."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from chat.api.events import give_back_connection
from chat.openai_api.completions import ChatCompletion
from chat.openai_api.errors import error
from chat.pages.plain_text import whole_text
from chat.streaming import readers, sse

DONE = b"data: [DONE]\n\n"
# The protocol cannot take a text back: this line parts what was withdrawn from what holds.
WITHDRAWN = "\n\n---\n\n"


async def chunks(
    answer_id: uuid.UUID, user: Any, completion: ChatCompletion, *, include_usage: bool
) -> AsyncIterator[bytes]:
    """Chunks of the completion, the last one with everything that is known of the answer, or an error; then the end.

    What was streamed is the answer, unless the model failed half-way or the site's process died: the whole answer then
    follows behind a ruled line, and the last chunk has it alone as ``answer``.
    """
    await give_back_connection()
    # With the option, OpenAI's chunks carry the field, empty until the end.
    beside: dict[str, Any] = {"usage": None} if include_usage else {}
    yield _data(completion.chunk({"role": "assistant", "content": ""}, **beside))
    sources: list[dict[str, Any]] = []
    streamed = ""
    async with aclosing(readers.follow(answer_id, user, may_return=False)) as events:
        async for event in events:
            match event.name:
                case "searched":
                    sources = event.payload["sources"]
                    yield _data(completion.chunk({}, **beside, **event.payload))
                case "token":
                    streamed += event.payload["text"]
                    yield _data(completion.chunk({"content": event.payload["text"]}, **beside))
                case "reset":
                    if streamed.strip():
                        yield _data(completion.chunk({"content": WITHDRAWN}, **beside))
                    streamed = ""
                case "completed":
                    if rest := _unsaid(event.payload, streamed):
                        yield _data(completion.chunk({"content": rest}, **beside))
                    yield _data({**completion.last_chunk(event.payload, sources), **beside})
                    if include_usage:
                        yield _data(completion.usage_chunk(event.payload, sources))
                case "failed":
                    yield _data(error(event.payload["message"], kind="server_error"))
                case _:
                    yield sse.comment(event.name)
    yield DONE


def _unsaid(answer: Mapping[str, Any], streamed: str) -> str:
    """What the reader of the stream has not been told of the answer."""
    text = whole_text(answer)
    if text.startswith(streamed.lstrip()):
        return text[len(streamed.lstrip()) :]
    if text == streamed.strip():
        return ""
    return WITHDRAWN + "\n\n".join(part for part in (answer["notice"], text) if part)


def _data(chunk: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
