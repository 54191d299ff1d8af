from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from core.exceptions import ModelFailed

# A usual response has some kilobytes.
LARGEST_RESPONSE_BYTES = 8 * 2**20
_NOT_A_COMPLETION = "The model server sent something that is not a chat completion."
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Reasons why a completion ended. Any other reason, such as `abort`, is a failure.
STOP, CALLS, LENGTH, FILTERED = "stop", "tool_calls", "length", "content_filter"
_SYNONYMS = {
    STOP: "stop end_turn stop_sequence stop_token eos eos_token eos_found end complete completed finished",
    CALLS: "tool_calls tool_call function_call tool_use",
    LENGTH: "length max_tokens max_output_tokens max_length model_length context_length context_length_exceeded "
    "model_context_window_exceeded error_limit",
    FILTERED: "content_filter content_filtered safety recitation blocklist prohibited_content spii refusal error_toxic "
    "guardrail_intervened image_safety sensitive",
}
# Some servers write these words in each chunk before the last one.
_NO_REASONS = frozenset({"null", "none"})
_TEXT_PARTS = frozenset({"text", "output_text"})
_EVENT_LINE = re.compile(rb"(?:data|event|id|retry|error)?:")
_ENDINGS = {name: ending for ending, names in _SYNONYMS.items() for name in names.split()}


@dataclass(frozen=True, slots=True)
class FunctionCallPiece:
    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class CompletionDelta:
    """A piece of a language model's reply. An empty piece shows that the model is working.

    The last piece has the ``finish_reason`` (STOP, CALLS, LENGTH or FILTERED), if the server sends one. Token counts
    are None in pieces without them.
    """

    text: str = ""
    calls: tuple[FunctionCallPiece, ...] = ()
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


async def read_deltas(response: httpx2.Response, *, is_streamed: bool = True) -> AsyncGenerator[CompletionDelta, None]:
    """Yield the pieces of the model's reply; one piece if the response is not streamed.

    Raises: ModelFailed if the response is not a completion, reports an error, or breaks off.
    """
    lines = _split_lines(response)
    begin = b""
    while not begin.strip() and (line := await anext(lines, None)) is not None:
        begin = line
    # Gateways stream what was not asked for, or send a whole document in its place, with any content type.
    if begin.lstrip().startswith(b"{") or (not is_streamed and not _EVENT_LINE.match(begin)):
        yield _read_delta(_parse(b"\n".join([begin, *[line async for line in lines]])), is_whole=True)
        return
    has_ended = is_error = has_text = False
    async for line in _chain(begin, lines):
        if not line:
            is_error = False
        elif line.startswith(b"event:"):
            is_error = line[len(b"event:") :].strip() == b"error"
        elif line.startswith(b"error:"):
            raise _build_server_failure(line[len(b"error:") :].strip().decode("utf-8", "replace"))
        # Servers that fail in mid-stream write the error as a plain line of JSON.
        payload = line.removeprefix(b"data:").strip() if line.startswith((b"data:", b"{")) else b""
        if payload == b"[DONE]":
            return
        if is_error and payload:
            raise _build_server_failure(payload.decode("utf-8", "replace"))
        if payload:
            delta = _read_delta(_parse(payload), has_text=has_text)
            has_text = has_text or bool(delta.text)
            has_ended = has_ended or bool(delta.finish_reason)
            yield delta
    if not has_ended:
        raise ModelFailed("The model's answer broke off.")


async def _chain(first: bytes, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    yield first
    async for line in lines:
        yield line


async def _split_lines(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    held = b""
    received = 0
    async for piece in response.aiter_bytes():
        received += len(piece)
        if received > LARGEST_RESPONSE_BYTES:
            raise ModelFailed("The model server sent more than an answer can be.")
        held = (held + piece).removeprefix(_BYTE_ORDER_MARK) if received == len(piece) else held + piece
        # A CR at the end may be the first half of CRLF, so its line waits for more bytes.
        end = 1 + max(held.rfind(b"\n"), held.rfind(b"\r", 0, len(held) - 1))
        whole, held = held[:end], held[end:]
        for line in whole.splitlines():
            yield line
    for line in held.splitlines():
        yield line


def _parse(payload: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ModelFailed(_NOT_A_COMPLETION) from error
    if not isinstance(chunk, dict):
        raise ModelFailed(_NOT_A_COMPLETION)
    return chunk


def _build_server_failure(message: object) -> ModelFailed:
    return ModelFailed(f"The model server broke off: {str(message)[:200]}")


def _read_delta(chunk: dict[str, Any], *, is_whole: bool = False, has_text: bool = False) -> CompletionDelta:
    """Return a chunk of a stream, or with ``is_whole`` a completion, as a delta. Raises: ModelFailed.

    A chunk with a whole message in place of a delta repeats the text before it, if ``has_text``.
    """
    is_error = "error" in (chunk.get("object"), chunk.get("type"))
    said_instead = chunk.get("message") or chunk.get("detail")
    if chunk.get("error") or is_error or ("choices" not in chunk and isinstance(said_instead, str)):
        raise _build_server_failure(chunk.get("error") or said_instead or "an error without a message")
    try:
        choices = chunk.get("choices") or []
        if is_whole and not choices:
            raise TypeError("choices")
        choice = (choices[0] if choices else None) or {}
        counted = chunk.get("usage") or {}
        said = choice.get("delta") or (None if has_text else choice.get("message")) or {}
        reason = str(choice.get("finish_reason") or "")
        reason = "" if reason.lower() in _NO_REASONS else reason
        ending = _ENDINGS.get(reason.lower(), "")
        if reason and not ending:
            raise _build_server_failure(f'it ended the answer with "{reason}"')
        return CompletionDelta(
            text=_read_text(said.get("content")),
            calls=read_function_call_pieces(said.get("tool_calls")),
            finish_reason=ending,
            # A server that counts nothing sends zeros.
            prompt_tokens=_read_count(counted.get("prompt_tokens")) or None,
            completion_tokens=_read_count(counted.get("completion_tokens")),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ModelFailed(_NOT_A_COMPLETION) from error


def _read_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if part.get("type", "text") in _TEXT_PARTS)
    if content is not None and not isinstance(content, str):
        raise TypeError("content")
    return remove_unstorable_characters(content or "")


def _read_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def read_function_call_pieces(sent: Any) -> tuple[FunctionCallPiece, ...]:
    """Return the function calls in a "delta" or "message" object. Raises: TypeError or AttributeError if malformed."""
    return tuple(_read_function_call_piece(at, each) for at, each in enumerate(sent or []))


def _read_function_call_piece(at: int, sent: Mapping[str, Any]) -> FunctionCallPiece:
    index = sent.get("index")
    function = sent.get("function") or {}
    arguments = function.get("arguments") or ""
    return FunctionCallPiece(
        index=index if isinstance(index, int) else at,
        id=remove_unstorable_characters(str(sent.get("id") or "")),
        name=remove_unstorable_characters(str(function.get("name") or "")),
        # Some servers send an object instead of JSON text.
        arguments=remove_unstorable_characters(arguments if isinstance(arguments, str) else json.dumps(arguments)),
    )


def remove_unstorable_characters(text: str) -> str:
    return text.replace("\x00", "").encode(errors="ignore").decode()
