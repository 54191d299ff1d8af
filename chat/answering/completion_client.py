"""A client of chat-completions servers: limits attempts, pauses and time, reads the stream, and interprets refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2
from django.utils.http import parse_http_date_safe

from chat.answering.tool_calls import ASK_TABLES, CallPiece, read_pieces, storable
from chat.exceptions import GenerationFailed
from retrieval.infrastructure.breaker import Breaker, BreakerState, Open
from retrieval.infrastructure.chat_model import ChatEndpoint
from retrieval.infrastructure.model_server import Resolve, refusal, trusted_certificates, without_key, without_request
from retrieval.infrastructure.tracing import span
from retrieval.sources.protocol import AddressRefused, SourceUnavailable

logger = logging.getLogger(__name__)

# What a server of chat completions sends, piece by piece: as a stream of events, or as one JSON document.

# An answer is some kilobytes; whoever sends more has lost itself, and must not take the process along.
LARGEST_RESPONSE_BYTES = 8 * 2**20
_NOT_A_COMPLETION = "The model server sent something that is not a chat completion."


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a completion. If all fields are empty, the model works but has nothing to show (it reasons, say).

    ``calls`` are pieces of its function calls. ``finish_reason`` comes with the last words; ``prompt_tokens`` and
    ``completion_tokens`` if the server counts them.
    """

    text: str = ""
    calls: tuple[CallPiece, ...] = ()
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


async def deltas(response: httpx2.Response) -> AsyncGenerator[Delta, None]:
    """The pieces of the completion as they arrive. Raises: GenerationFailed if the response is not a completion, or
    breaks off.
    """
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
    """The first choice's words, from its "delta" or its "message". The model's reasoning is left out."""
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
    """The text of a message's content: a string, or a list of parts of which only those of type text are read."""
    if isinstance(content, list):
        return "".join(str(part["text"]) for part in content if part.get("type") == "text")
    if content is not None and not isinstance(content, str):
        raise TypeError("content")
    return storable(content or "")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# A server of chat completions that refuses a request: why, for how long, and what it would take instead.

LONGEST_REFUSAL_BYTES = 16 * 1024
# What servers say when prompt and answer do not fit: they name max_tokens, and know it well.
_TOO_LONG = re.compile(r"context[ _](?:length|window|size)|too (?:large|long)|reduce the length", re.IGNORECASE)
# How servers say that they, or their model, know no functions: vLLM and Ollama with 400, OpenRouter with 404, llama.cpp
# with 500.
_NAMES_TOOLS = re.compile(r"\btools?\b|\bfunction[ _-]?call", re.IGNORECASE)
_REFUSING_TOOLS = frozenset({400, 404, 422, 500, 501})


class Refused(Exception):
    """The server answered with another status than 200. ``pause_seconds`` is the pause that it asks for, if it does."""

    def __init__(
        self, response: httpx2.Response, received: bytes, endpoint: ChatEndpoint, body: dict[str, Any]
    ) -> None:
        super().__init__(f"The model server {refusal(response.status_code, received, body, endpoint.api_key.strip())}.")
        self.status = response.status_code
        self.pause_seconds = _retry_after(response.headers.get("retry-after", ""))
        self._said = received.decode("utf-8", "replace")

    def blamed(self, body: dict[str, Any]) -> str:
        """The request parameter that the server does not accept; empty if it complains about something else."""
        if _TOO_LONG.search(self._said):
            return ""
        if "tools" in body and self.status in _REFUSING_TOOLS and _NAMES_TOOLS.search(self._said):
            return "tools"
        if self.status not in (400, 422):
            return ""
        for name in ("max_completion_tokens", "stream_options", "max_tokens", "temperature"):
            if name in body and name in self._said:
                return name
        # Servers that name nothing mostly stumble over the newest of the parameters.
        return next((name for name in ("tools", "stream_options") if name in body), "")


def _retry_after(value: str) -> float | None:
    """Seconds, at least 0, from a Retry-After header (RFC 9110, 10.2.3); None without a header."""
    try:
        return max(0.0, float(value))
    except ValueError:
        at = parse_http_date_safe(value)
        return None if at is None else max(0.0, at - time.time())


RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
# A server that asks for a longer pause is not waited for: a reader is there.
LONGEST_PAUSE_SECONDS = 20.0
# A server that answers so is there: it refused this one question.
_OF_THE_QUESTION = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Request:
    """A request for one completion of at most ``answer_tokens``, until ``ends_at`` by the monotonic clock."""

    messages: list[dict[str, Any]]
    ends_at: float
    answer_tokens: int
    offers_tables: bool


class _CheckedBackend(httpcore2.AnyIOBackend):
    """Connects only to the addresses that ``resolve`` returns."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve

    async def connect_tcp(self, host: str, port: int, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        failure: Exception | None = None
        try:
            addresses = await asyncio.to_thread(self._resolve, host, port)
        except SourceUnavailable as error:
            raise httpcore2.ConnectError(str(error)) from error
        for address in addresses:
            try:
                return await super().connect_tcp(address, port, *args, **options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address.")


class CompletionClient:
    """A client of one server.

    ``silence_seconds`` limits the wait for each next piece. ``refused`` are the parameters that the server did not
    accept: later requests leave them out.
    """

    def __init__(self, endpoint: ChatEndpoint, silence_seconds: float) -> None:
        self._endpoint = endpoint
        self._model = endpoint.model
        self._silence_seconds = silence_seconds
        self.refused: frozenset[str] = frozenset()
        self._takes_tools = False
        self._breaker = Breaker("model")

    async def deltas(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The pieces of the completion. Raises: GenerationFailed, at once if the server has failed repeatedly and is
        being left alone.
        """
        breaker = self._breaker
        try:
            breaker.enter()
        except Open as error:
            raise GenerationFailed(str(error)) from None
        has_begun = False
        try:
            with span("model", is_current=False, model=self._model):
                async with aclosing(self._attempt(request)) as received:
                    async for delta in received:
                        if not has_begun and breaker.state is not BreakerState.CLOSED:
                            # Its first sign lets the others in; a trial may be as long as an answer.
                            breaker.succeeded()
                        has_begun = True
                        yield delta
        except GenerationFailed as error:
            if isinstance(error.__cause__, Refused) and error.__cause__.status in _OF_THE_QUESTION:
                breaker.left()
            else:
                breaker.failed()
            raise
        except BaseException:
            breaker.left()
            raise
        breaker.succeeded()

    async def _attempt(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The pieces of the completion. A failure before the first word is retried, at once without a parameter that
        the server turns out not to accept. A failure after the first word is final.

        If time runs out after the first word, the completion ends too; it is reported as having reached its length.
        """
        seconds = request.ends_at - time.monotonic()
        refused = self.refused
        attempt = 1
        while True:
            body = self._body(request, refused)
            has_begun = False
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                async with aclosing(self._post(body)) as received:
                    while (delta := await self._next(received, request.ends_at)) is not None:
                        self._remember(refused, body)
                        has_begun = has_begun or bool(delta.text or delta.calls)
                        yield delta
                return
            except Refused as error:
                if blamed := error.blamed(body):
                    logger.warning("%s does not take %s, and is asked without: %s", self._model, blamed, error)
                    refused |= {blamed}
                    continue
                if error.status not in RETRIED_STATUSES or attempt == ATTEMPTS:
                    raise GenerationFailed(str(error)) from error
                if error.pause_seconds is not None:
                    pause_seconds = max(pause_seconds, error.pause_seconds)
                if pause_seconds > LONGEST_PAUSE_SECONDS:
                    raise GenerationFailed(f"{error} It asks for a pause of {pause_seconds:.0f} s.") from error
            except _OutOfTime as error:
                if not has_begun:
                    raise GenerationFailed(str(error)) from error
                yield Delta(finish_reason="length")
                return
            except AddressRefused as error:
                raise GenerationFailed(str(error)) from error
            except httpx2.HTTPError as error:
                if has_begun or attempt == ATTEMPTS:
                    raise GenerationFailed(f"The line to the model broke: {type(error).__name__}.") from error
            if time.monotonic() + pause_seconds > request.ends_at:
                raise GenerationFailed(f"The model was not there within {seconds:.3g} s.")
            await asyncio.sleep(pause_seconds)
            attempt += 1

    def _remember(self, refused: frozenset[str], body: dict[str, Any]) -> None:
        """Remember a refused parameter. A server that accepted functions before refused only this use of them, so it is
        offered them again.
        """
        self._takes_tools = self._takes_tools or "tools" in body
        self.refused |= refused - {"tools"} if self._takes_tools else refused

    async def _next(self, received: AsyncGenerator[Delta, None], ends_at: float) -> Delta | None:
        """The next piece, None at the end. Raises: GenerationFailed after silence, _OutOfTime at the deadline."""
        left = ends_at - time.monotonic()
        silence = self._silence_seconds
        try:
            async with asyncio.timeout(max(0.0, min(left, silence))):
                return await anext(received, None)
        except TimeoutError as error:
            if left <= silence:
                raise _OutOfTime("The model was not done within its time.") from error
            raise GenerationFailed(f"The model did not answer in time: {silence:g} s without a word.") from error

    async def _post(self, body: dict[str, Any]) -> AsyncGenerator[Delta, None]:
        timeout = httpx2.Timeout(None, connect=min(10.0, self._silence_seconds))
        async with httpx2.AsyncClient(timeout=timeout, verify=trusted_certificates()) as client:
            if self._endpoint.resolve is not None:
                # Of the direct way only: where the environment names a proxy, that one connects.
                client._transport._pool._network_backend = _CheckedBackend(self._endpoint.resolve)  # type: ignore[attr-defined]
            async with client.stream("POST", self._endpoint.url, json=body, headers=self._endpoint.headers) as response:
                if response.status_code != httpx2.codes.OK:
                    beginning = b""
                    async for piece in response.aiter_bytes():
                        beginning += piece
                        if len(beginning) > LONGEST_REFUSAL_BYTES:
                            break
                    raise Refused(response, beginning, self._endpoint, body)
                try:
                    async with aclosing(deltas(response)) as received:
                        async for delta in received:
                            yield delta
                except GenerationFailed as error:
                    raise GenerationFailed(
                        without_request(without_key(str(error), self._endpoint.api_key.strip()), body)
                    ) from None

    def _body(self, request: Request, refused: frozenset[str]) -> dict[str, Any]:
        optional: dict[str, Any] = {
            "temperature": 0,
            "stream_options": {"include_usage": True},
            # Newer models of OpenAI know the second name only, most other servers the first.
            "max_tokens": request.answer_tokens,
        }
        if "max_tokens" in refused:
            optional["max_completion_tokens"] = request.answer_tokens
        if request.offers_tables:
            optional["tools"] = [ASK_TABLES]
        kept = {name: value for name, value in optional.items() if name not in refused}
        return {"model": self._model, "messages": request.messages, "stream": True, **kept}


class _OutOfTime(Exception):
    """The time for the whole answer is over."""
