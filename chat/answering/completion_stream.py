"""What a server of chat completions sends, piece by piece: as a stream of events, or as one JSON document."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import httpx2

from chat.answering.tool_calls import CallPiece, read_pieces, storable
from chat.exceptions import GenerationFailed

# An answer is some kilobytes; whoever sends more has lost itself, and must not take the process along.
LARGEST_RESPONSE_BYTES = 8 * 2**20
_NOT_A_COMPLETION = "The model server sent something that is not a chat completion."


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a completion. All empty: the model works, but says nothing to be shown (it reasons, say).

    ``calls`` are pieces of the functions that it calls. ``finish_reason`` comes with the last words; ``prompt_tokens``
    and ``completion_tokens`` where the server counts.
    """

    text: str = ""
    calls: tuple[CallPiece, ...] = ()
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


async def deltas(response: httpx2.Response) -> AsyncGenerator[Delta, None]:
    """The completion as it comes. Raises: GenerationFailed for anything else, and for one that breaks off."""
    lines = _lines(response)
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
        yield _delta(_parse(b"\n".join([line async for line in lines])), "message")
        return
    ended = False
    async for line in lines:
        if not line.startswith(b"data:"):
            continue
        payload = line[len(b"data:") :].strip()
        if payload == b"[DONE]":
            return
        delta = _delta(_parse(payload), "delta")
        ended = ended or bool(delta.finish_reason)
        yield delta
    if not ended:
        raise GenerationFailed("The model's answer broke off.")


async def _lines(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    held = bytearray()
    received = 0
    async for piece in response.aiter_bytes():
        received += len(piece)
        if received > LARGEST_RESPONSE_BYTES:
            raise GenerationFailed("The model server sent more than an answer can be.")
        held += piece
        if b"\n" not in piece:
            continue
        *whole, held = held.split(b"\n")
        for line in whole:
            yield bytes(line).rstrip(b"\r")
    if held:
        yield bytes(held)


def _parse(payload: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise GenerationFailed(_NOT_A_COMPLETION) from error
    if not isinstance(chunk, dict):
        raise GenerationFailed(_NOT_A_COMPLETION)
    return chunk


def _delta(chunk: dict[str, Any], part: str) -> Delta:
    """The first choice's words, from its "delta" or its "message". What the model thinks beforehand is left out."""
    if chunk.get("error"):
        raise GenerationFailed(f"The model server broke off: {str(chunk['error'])[:200]}")
    try:
        choices = chunk.get("choices") or []
        choice = choices[0] if choices else {}
        counted = chunk.get("usage") or {}
        said = choice.get(part) or {}
        return Delta(
            text=_text(said.get("content")),
            calls=read_pieces(said.get("tool_calls")),
            finish_reason=str(choice.get("finish_reason") or ""),
            prompt_tokens=_count(counted.get("prompt_tokens")),
            completion_tokens=_count(counted.get("completion_tokens")),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise GenerationFailed(_NOT_A_COMPLETION) from error


def _text(content: Any) -> str:
    """Content is text, or a list of parts of which those of type text are."""
    if isinstance(content, list):
        return "".join(str(part["text"]) for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError("content")
    return storable(content or "")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
