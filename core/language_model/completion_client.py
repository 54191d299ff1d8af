from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import httpx2
from django.utils.http import parse_http_date_safe

from core.breaker import Breaker, BreakerOpen, BreakerState
from core.exceptions import ModelFailed, RagsiteError
from core.http_client import build_async_client
from core.language_model.chat_endpoint import ChatEndpoint
from core.language_model.completion_stream import LENGTH, CompletionDelta, read_deltas
from core.model_server import RETRIED_STATUSES, describe_refusal, hide_key, hide_texts_of_request
from core.tracing import span

logger = logging.getLogger(__name__)

LONGEST_REFUSAL_BYTES = 16 * 1024
# A message in these words means that prompt and answer together are too long, even if it mentions max_tokens.
_TOO_LONG = re.compile(r"context[ _](?:length|window|size)|too (?:large|long)|reduce the length", re.IGNORECASE)
# Servers that support no tools answer with 400 (vLLM, Ollama), 404 (OpenRouter) or 500 (llama.cpp).
_NAMES_TOOLS = re.compile(r"\btools?\b|\bfunction[ _-]?call", re.IGNORECASE)
_REFUSING_TOOLS = frozenset({400, 404, 422, 500, 501})
# Error messages of chat templates without a system role, such as Gemma's, contain these words.
SYSTEM = "system role"
_NAMES_SYSTEM = re.compile(r"system[\s_'\"-]*(?:role|message|prompt|instruction)|roles? must alternate", re.IGNORECASE)
_NAMED = ("max_completion_tokens", "stream_options", "max_tokens", "temperature", "response_format")
_NAMES_FORMAT = re.compile(r"response_format|json_schema|structured output|guided", re.IGNORECASE)
# Some models give only streams, others only whole replies (OpenAI: to organisations that are not verified).
STREAMED, WHOLE = "stream=true", "stream=false"
# An error message that repeats the request's `"stream": true` does not name it.
_NAMES_STREAM = re.compile(r"\bstream(?:ed|ing)?\b(?![\"']?\s{0,2}[:=]\s{0,2}(?:true|false))", re.IGNORECASE)
_SUSPECTS = ("tools", "stream_options", "response_format", "temperature", SYSTEM)


class StreamOptions(TypedDict):
    include_usage: bool


class CompletionRequestBody(TypedDict):
    """The body of a request to a language model, without the fields that the model refuses."""

    model: str
    messages: list[Mapping[str, object]]
    stream: bool
    temperature: NotRequired[float]
    # Newer OpenAI models accept only max_completion_tokens.
    max_tokens: NotRequired[int]
    max_completion_tokens: NotRequired[int]
    stream_options: NotRequired[StreamOptions]
    tools: NotRequired[list[Mapping[str, object]]]
    response_format: NotRequired[Mapping[str, object]]


class ModelRequestRefused(Exception):
    """An error: the server refused the request, and asks for a pause of ``pause_seconds`` (None: no pause)."""

    def __init__(
        self, response: httpx2.Response, received: bytes, endpoint: ChatEndpoint, body: CompletionRequestBody
    ) -> None:
        super().__init__(
            f"The model server {describe_refusal(response.status_code, received, body, endpoint.api_key.strip())}."
        )
        self.status = response.status_code
        self.pause_seconds = _read_retry_after(response.headers.get("retry-after", ""))
        self._said = received.decode("utf-8", "replace")

    def find_refused_part(self, body: CompletionRequestBody) -> str:
        """Return the name of the part of ``body`` that the server does not support.

        If the server's error message names no part, the likeliest part is returned. The result is empty if the error
        has another cause.
        """
        if _TOO_LONG.search(self._said):
            return ""
        if "tools" in body and self.status in _REFUSING_TOOLS and _NAMES_TOOLS.search(self._said):
            return "tools"
        if self.status not in (400, 422, 500):
            return ""
        sent = _list_parts(body)
        if SYSTEM in sent and _NAMES_SYSTEM.search(self._said):
            return SYSTEM
        if self.status == 500:
            return ""
        if "response_format" in sent and _NAMES_FORMAT.search(self._said):
            return "response_format"
        for name in _NAMED:
            if name in sent and name in self._said:
                return name
        if _NAMES_STREAM.search(self._said):
            return STREAMED if body["stream"] else WHOLE
        return next((name for name in _SUSPECTS if name in sent), "")


def _list_parts(body: CompletionRequestBody) -> set[str]:
    has_system = any(message["role"] == "system" for message in body["messages"])
    return {*body, STREAMED if body["stream"] else WHOLE, *([SYSTEM] if has_system else [])}


def _read_retry_after(value: str) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3), at least 0; None if it is invalid."""
    try:
        return max(0.0, float(value))
    except ValueError:
        at = parse_http_date_safe(value)
        return None if at is None else max(0.0, at - time.time())


ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 20.0
# These statuses mean that the request is wrong, so the server has not failed.
_OF_THE_QUESTION = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Request:
    messages: Sequence[Mapping[str, object]]
    ends_at: float
    answer_tokens: int
    tools: Sequence[Mapping[str, object]] = ()
    response_format: Mapping[str, object] | None = None
    is_streamed: bool = True


@dataclass(slots=True)
class ModelCapabilities:
    """The client's knowledge of a language model, from its responses.

    ``refused`` are request fields that the server does not support. ``opens_with_thought``: replies begin with the text
    that the model thinks before its answer, without an opening marker.
    """

    refused: frozenset[str] = frozenset()
    takes_tools: bool = False
    opens_with_thought: bool = False


_KNOWN: dict[tuple[str, str], ModelCapabilities] = {}


@dataclass(slots=True)
class CompletionClient:
    """A client of one model on one server, safe for threads and forks.

    ``silence_seconds`` limits the wait for each part of the streamed reply.
    """

    endpoint: ChatEndpoint
    silence_seconds: float
    breaker: Breaker | None = None
    attempts: int = ATTEMPTS
    known: ModelCapabilities = field(init=False)

    def __post_init__(self) -> None:
        self.known = _KNOWN.setdefault((str(self.endpoint.url), self.endpoint.model), ModelCapabilities())

    async def stream_deltas(self, request: Request) -> AsyncGenerator[CompletionDelta, None]:
        """Yield the pieces of the model's answer as they arrive.

        Raises: ModelFailed; at once if the breaker is open.
        """
        breaker = self.breaker
        if breaker is None:
            async with aclosing(self._stream_with_retries(request)) as received:
                async for delta in received:
                    yield delta
            return
        try:
            breaker.enter()
        except BreakerOpen as error:
            raise ModelFailed(str(error)) from None
        has_begun = False
        try:
            with span("model", is_current=False, model=self.endpoint.model):
                async with aclosing(self._stream_with_retries(request)) as received:
                    async for delta in received:
                        if not has_begun and breaker.state is not BreakerState.CLOSED:
                            # The first piece shows that the server works. The breaker would otherwise refuse all other
                            # calls until this answer, its trial call, has ended.
                            breaker.record_success()
                        has_begun = True
                        yield delta
        except ModelFailed as error:
            if isinstance(error.__cause__, ModelRequestRefused) and error.__cause__.status in _OF_THE_QUESTION:
                breaker.end_call_without_result()
            else:
                breaker.record_failure()
            raise
        except BaseException:
            breaker.end_call_without_result()
            raise
        breaker.record_success()

    async def _stream_with_retries(self, request: Request) -> AsyncGenerator[CompletionDelta, None]:
        """Yield the pieces of the model's answer, and repeat a request that fails before the first word.

        If time runs out after the first word, the finish reason is LENGTH.
        """
        seconds = request.ends_at - time.monotonic()
        refused, first_refusal = self.known.refused, None
        attempt = 1
        while True:
            body = self._build_body(request, refused)
            has_begun = False
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                async with aclosing(self._post(body)) as received:
                    while (delta := await self._await_next_delta(received, request.ends_at)) is not None:
                        if not has_begun:
                            self._remember_refused_parts(refused, body, first_refusal)
                            first_refusal = None
                        has_begun = has_begun or bool(delta.text or delta.calls)
                        yield delta
                return
            except ModelRequestRefused as error:
                first_refusal = first_refusal or error
                if (blamed := error.find_refused_part(body)) and blamed not in refused:
                    refused |= {blamed}
                    continue
                if error.status not in RETRIED_STATUSES or attempt >= self.attempts:
                    raise ModelFailed(str(first_refusal)) from error
                if error.pause_seconds is not None:
                    pause_seconds = max(pause_seconds, error.pause_seconds)
                if pause_seconds > LONGEST_PAUSE_SECONDS:
                    raise ModelFailed(f"{error} It asks for a pause of {pause_seconds:.0f} s.") from error
            except _OutOfTime as error:
                if not has_begun:
                    raise ModelFailed(str(error)) from error
                yield CompletionDelta(finish_reason=LENGTH)
                return
            except httpx2.HTTPError as error:
                if has_begun or attempt >= self.attempts:
                    raise ModelFailed(f"The line to the model broke: {type(error).__name__}.") from error
            if time.monotonic() + pause_seconds > request.ends_at:
                raise ModelFailed(f"The model was not there within {seconds:.3g} s.")
            await asyncio.sleep(pause_seconds)
            attempt += 1

    def _remember_refused_parts(
        self, refused: frozenset[str], body: CompletionRequestBody, refusal: ModelRequestRefused | None
    ) -> None:
        """Remember the refused fields. The field ``tools`` is not remembered if the server has ever accepted it."""
        known = self.known
        if refusal is not None:
            without = ", ".join(sorted(refused - known.refused))
            logger.warning("%s is asked without %s from now on: %s", self.endpoint.model, without, refusal)
        known.takes_tools = known.takes_tools or "tools" in body
        known.refused |= refused - {"tools"} if known.takes_tools else refused

    async def _await_next_delta(
        self, received: AsyncGenerator[CompletionDelta, None], ends_at: float
    ) -> CompletionDelta | None:
        left = ends_at - time.monotonic()
        silence = self.silence_seconds
        try:
            async with asyncio.timeout(max(0.0, min(left, silence))):
                return await anext(received, None)
        except TimeoutError as error:
            if left <= silence:
                raise _OutOfTime("The model was not done within its time.") from error
            raise ModelFailed(f"The model did not answer in time: {silence:g} s without a word.") from error

    async def _post(self, body: CompletionRequestBody) -> AsyncGenerator[CompletionDelta, None]:
        endpoint = self.endpoint
        timeout = httpx2.Timeout(None, connect=min(10.0, self.silence_seconds))
        async with build_async_client(endpoint.resolve, timeout=timeout) as client:
            try:
                async with client.stream("POST", endpoint.url, json=body, headers=endpoint.headers) as response:
                    if response.status_code != httpx2.codes.OK:
                        beginning = b""
                        async for piece in response.aiter_bytes():
                            beginning += piece
                            if len(beginning) > LONGEST_REFUSAL_BYTES:
                                break
                        raise ModelRequestRefused(response, beginning, endpoint, body)
                    async with aclosing(read_deltas(response, is_streamed=body["stream"])) as received:
                        async for delta in received:
                            yield delta
            except RagsiteError as error:
                said = hide_texts_of_request(hide_key(str(error), endpoint.api_key.strip()), body)
                raise ModelFailed(said) from None

    def _build_body(self, request: Request, refused: frozenset[str]) -> CompletionRequestBody:
        body: CompletionRequestBody = {
            "model": self.endpoint.model,
            "messages": _merge_system_messages(request.messages) if SYSTEM in refused else list(request.messages),
            "stream": WHOLE in refused or (request.is_streamed and STREAMED not in refused),
        }
        if "temperature" not in refused:
            body["temperature"] = 0
        if "max_tokens" not in refused:
            body["max_tokens"] = request.answer_tokens
        elif "max_completion_tokens" not in refused:
            body["max_completion_tokens"] = request.answer_tokens
        if body["stream"] and "stream_options" not in refused:
            body["stream_options"] = {"include_usage": True}
        if request.tools and "tools" not in refused:
            body["tools"] = list(request.tools)
        if request.response_format is not None and "response_format" not in refused:
            body["response_format"] = request.response_format
        return body


def _merge_system_messages(messages: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    rules = ""
    merged: list[Mapping[str, object]] = []
    for message in messages:
        if message["role"] == "system":
            rules += f"{message['content']}\n\n"
        elif message["role"] == "user" and rules:
            merged.append({**message, "content": f"{rules}{message['content']}"})
            rules = ""
        else:
            merged.append(message)
    return merged


class _OutOfTime(Exception):
    """An error: the time for the whole answer is over."""
