from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from chat.answering.checking.citations import MARKER, CitationMarker, find_markers
from chat.api.completion_responses import ChatCompletion, _choose_finish_reason, renumber_citations, renumber_text
from chat.api.event_streams import release_connection
from chat.api.openai_errors import describe_error
from chat.api.openai_types import DeltaBody
from chat.payload_types import SourcePayload
from chat.streaming import readers, sse
from core.user_types import AnyUser

DONE = b"data: [DONE]\n\n"


# OpenAI's protocol cannot withdraw text, so this line separates withdrawn text from its replacement.
WITHDRAWN = "\n\n---\n\n"


async def stream_chunks(
    answer_id: uuid.UUID, user: AnyUser, completion: ChatCompletion, *, include_usage: bool
) -> AsyncIterator[bytes]:
    """Yield a completion in chunks. The last chunk has all fields of the answer, or an error.

    If the site withdraws the text that it has sent, a ruled line and a new answer follow. ``answer`` in the last chunk
    is the whole new answer.
    """
    await release_connection()
    # OpenAI sends ``"usage": null`` in each chunk before the last.
    beside: dict[str, object] = {"usage": None} if include_usage else {}
    yield _encode_chunk(completion.build_chunk({"role": "assistant", "content": ""}, beside))
    sources: list[SourcePayload] = []
    numbers: dict[int, int] = {}
    streamed = written = ""
    async with aclosing(readers.follow_as_reader(answer_id, user, may_return=False)) as events:
        async for event in events:
            match event.name:
                case "searched":
                    sources = event.payload["sources"]
                    found: dict[str, object] = {**event.payload}
                    del found["sources"]
                    found["passages"] = [{**source, "marker": None} for source in sources]
                    yield _encode_chunk(completion.build_chunk({}, {**beside, **found}))
                case "token":
                    before, written = len(written), written + event.payload["text"]
                    placed = [CitationMarker(*each.values()) for each in event.payload.get("markers") or ()]
                    if "markers" not in event.payload:
                        placed = [each.shift_by(-before) for each in find_markers(written) if each.start >= before]
                    text, _ = renumber_text(event.payload["text"], placed, numbers)
                    streamed += text
                    yield _encode_chunk(completion.build_chunk({"content": text}, beside))
                case "reset":
                    if streamed.strip():
                        yield _encode_chunk(completion.build_chunk({"content": WITHDRAWN}, beside))
                    streamed = written = ""
                    numbers.clear()
                case "completed":
                    if not event.payload["answer"].startswith(written.strip()):
                        numbers.clear()
                    answer, sources = renumber_citations(event.payload, sources, numbers)
                    if rest := _find_missing_text(completion.build_content(answer), streamed):
                        yield _encode_chunk(completion.build_chunk({"content": rest}, beside))
                    answered = {**completion.build_extra_fields(answer, sources), **beside}
                    cited = completion.build_citations(answer)
                    delta: DeltaBody = {"annotations": cited["annotations"], "citations": cited["citations"]}
                    yield _encode_chunk(completion.build_chunk(delta, answered, _choose_finish_reason(answer)))
                    if include_usage:
                        yield _encode_chunk(
                            {
                                **completion.build_chunk({}),
                                "choices": [],
                                "usage": completion.build_usage(answer, sources),
                            }
                        )
                case "failed":
                    yield _encode_chunk(describe_error(event.payload["message"], kind="server_error"))
                case _:
                    yield sse.encode_comment(event.name)
    yield DONE


def _find_missing_text(text: str, streamed: str) -> str:
    if text.startswith(streamed.lstrip()):
        return text[len(streamed.lstrip()) :]
    return text[len(streamed.strip()) :] if text.startswith(streamed.strip()) else WITHDRAWN + text


def _remove_all_markers(text: str) -> str:
    return " ".join(MARKER.sub("", text).split())


def _encode_chunk(chunk: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
