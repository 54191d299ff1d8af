"""Answers written by a language model behind OpenAI's chat-completions protocol (OpenAI, Ollama, vLLM, LM Studio,
...)."""

from __future__ import annotations

import asyncio
import functools
import math
import random
import re
import ssl
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx2
from django.utils import timezone
from django.utils.http import parse_http_date_safe

from chat.exceptions import GenerationFailed, NoAnswer
from chat.generators.completion_stream import Delta, deltas
from chat.generators.prompts import BYTES_PER_TOKEN, NO_ANSWER, PROMPT_VERSION, compose
from chat.generators.thinking import ThoughtFilter
from chat.output.stream import OutputStream
from chat.protocols import PartialAnswer
from chat.types import Source, Usage
from retrieval.language_models.endpoint import ChatEndpoint
from retrieval.resilience import deadline
from retrieval.resilience.breaker import Breaker, BreakerState, Open
from retrieval.resilience.quoting import without_request
from retrieval.tracing import span
from retrieval.types import Turn

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
# A server that asks for a longer pause is not waited for: a reader is there.
LONGEST_PAUSE_SECONDS = 20.0
LONGEST_REFUSAL_BYTES = 16 * 1024
# Of what a question has left, for checking the answer, or for quoting one where the model wrote none.
KEPT_SHARE, MOST_KEPT_SECONDS = 0.25, 5.0
# A server that answers so is there: it refused this one question.
_OF_THE_QUESTION = frozenset({400, 413, 422})
# No tokenizer makes more characters of a token than these, runs of blanks aside. An answer that is longer than its
# tokens allow is cut off, as is one that is longer than anybody reads.
CHARACTERS_PER_TOKEN = 16
LARGEST_ANSWER_CHARACTERS = 100_000
# What servers say when prompt and answer do not fit: they name max_tokens, and know it well.
_TOO_LONG = re.compile(r"context[ _](?:length|window|size)|too (?:large|long)|reduce the length", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """``silence_seconds`` bounds the wait for each next sign of the model, ``total_seconds`` the whole answer with all
    attempts. ``context_tokens`` is what prompt and answer may hold together."""

    silence_seconds: float = 60.0
    total_seconds: float = 300.0
    answer_tokens: int = 1000
    context_tokens: int = 16000


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a million tokens, in any one currency."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return round((self.prompt * prompt_tokens + self.completion * completion_tokens) / 1_000_000, 6)


class OpenAICompatibleGenerator:
    """A ModelGenerator. Raises: ImproperModel for an endpoint that no request can be made to."""

    def __init__(
        self, base_url: str, api_key: str, model: str, limits: AnswerLimits | None = None, prices: Prices | None = None
    ) -> None:
        self.name = model
        self._endpoint = ChatEndpoint(base_url, api_key, model)
        self._limits = limits or AnswerLimits()
        self._prices = prices
        # Parameters that this server has refused: it is not asked with them again.
        self._refused: frozenset[str] = frozenset()
        self._breaker = Breaker("model")

    def stream(self, question: str, sources: Sequence[Source]) -> AsyncGenerator[str, None]:
        """The model's text as it may be shown (OutputStream). Raises: NoAnswer, GenerationFailed, AnswerWithheld."""
        return self.compose(question, sources, (), PartialAnswer())

    async def compose(
        self,
        question: str,
        sources: Sequence[Source],
        history: Sequence[Turn],
        partial: PartialAnswer,
        computed: str = "",
    ) -> AsyncGenerator[str, None]:
        limits = self._limits
        prompt = compose(
            question,
            sources,
            today=timezone.localdate(),
            budget_tokens=max(1, limits.context_tokens - limits.answer_tokens),
            history=history,
            computed=computed,
        )
        partial.generator, partial.prompt_version, partial.left_out = self.name, PROMPT_VERSION, prompt.left_out
        partial.usage = self._usage(prompt.tokens, 0, estimated=True)
        output = OutputStream(prompt, question, sources, history)
        head = ""
        declined = True
        async with aclosing(self._texts(list(prompt.messages), partial)) as pieces:
            async for piece in pieces:
                if declined:
                    # Until it is clear that the model does not decline, nothing is shown.
                    head += piece
                    if NO_ANSWER.startswith(head.strip()[: len(NO_ANSWER)]):
                        continue
                    declined = False
                    piece = head.lstrip()
                if shown := output.feed(piece):
                    yield shown
        if declined:
            if not head.strip():
                raise GenerationFailed("The model ended without a word.")
            if head.strip().startswith(NO_ANSWER):
                raise NoAnswer
            yield output.feed(head)
        if rest := output.close():
            yield rest

    async def _texts(self, messages: list[dict[str, str]], partial: PartialAnswer) -> AsyncGenerator[str, None]:
        """What the model says, without what it thinks aloud; ``partial`` learns what it took and how it ended."""
        assert partial.usage is not None
        prompt_tokens, counted = partial.usage.prompt_tokens, False
        said_bytes = 0
        characters_left = min(LARGEST_ANSWER_CHARACTERS, CHARACTERS_PER_TOKEN * self._limits.answer_tokens)
        thoughts = ThoughtFilter()
        async with aclosing(self._deltas(messages)) as received:
            async for delta in received:
                if delta.finish_reason == "content_filter":
                    partial.filtered = True
                    raise GenerationFailed("The model server's content filter stopped the answer.")
                partial.cut_off = partial.cut_off or delta.finish_reason == "length"
                if delta.prompt_tokens is not None and delta.completion_tokens is not None:
                    partial.usage, counted = self._usage(delta.prompt_tokens, delta.completion_tokens), True
                elif delta.text and not counted:
                    said_bytes += len(delta.text.encode())
                    partial.usage = self._usage(prompt_tokens, math.ceil(said_bytes / BYTES_PER_TOKEN), estimated=True)
                shown = thoughts.feed(delta.text)
                if len(shown) > characters_left:
                    # A server that heeds no max_tokens: the rest is not read.
                    partial.cut_off = True
                    yield shown[:characters_left]
                    return
                characters_left -= len(shown)
                if shown:
                    yield shown
        if rest := thoughts.close():
            yield rest

    async def _deltas(self, messages: list[dict[str, str]]) -> AsyncGenerator[Delta, None]:
        """The completion, unless the server failed repeatedly and is left alone. Raises: GenerationFailed."""
        breaker = self._breaker
        try:
            breaker.enter()
        except Open as error:
            raise GenerationFailed(str(error)) from None
        has_begun = False
        try:
            with span("model", is_current=False, model=self.name):
                async with aclosing(self._attempted(messages)) as received:
                    async for delta in received:
                        if not has_begun and breaker.state is not BreakerState.CLOSED:
                            # Its first sign lets the others in; a trial may be as long as an answer.
                            breaker.succeeded()
                        has_begun = True
                        yield delta
        except GenerationFailed as error:
            if isinstance(error.__cause__, _Refused) and error.__cause__.status in _OF_THE_QUESTION:
                breaker.left()
            else:
                breaker.failed()
            raise
        except BaseException:
            breaker.left()
            raise
        breaker.succeeded()

    async def _attempted(self, messages: list[dict[str, str]]) -> AsyncGenerator[Delta, None]:
        """The completion. A failure before the first word is retried; after it, it is the end.

        Time that runs out after the first word is the end as well, and reported as a length that was reached.
        """
        left = deadline.seconds_left(math.inf)
        seconds = min(self._limits.total_seconds, left - min(KEPT_SHARE * left, MOST_KEPT_SECONDS))
        ends_at = time.monotonic() + seconds
        for attempt in range(1, ATTEMPTS + 1):
            has_begun = False
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                async with aclosing(self._asked(messages, ends_at)) as received:
                    async for delta in received:
                        has_begun = has_begun or bool(delta.text)
                        yield delta
                return
            except _Refused as error:
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
            except httpx2.HTTPError as error:
                if has_begun or attempt == ATTEMPTS:
                    raise GenerationFailed(f"The line to the model broke: {type(error).__name__}.") from error
            if time.monotonic() + pause_seconds > ends_at:
                raise GenerationFailed(f"The model was not there within {seconds:.3g} s.")
            await asyncio.sleep(pause_seconds)

    async def _asked(self, messages: list[dict[str, str]], ends_at: float) -> AsyncGenerator[Delta, None]:
        """One attempt, repeated at once without what the server turns out not to know."""
        refused = self._refused
        while True:
            body = self._body(messages, refused)
            try:
                async with aclosing(self._posted(body)) as received:
                    while True:
                        delta = await self._next(received, ends_at)
                        if delta is None:
                            return
                        self._refused = refused
                        yield delta
            except _Refused as error:
                blamed = error.blamed(body)
                if not blamed:
                    raise
                refused |= {blamed}

    async def _next(self, received: AsyncGenerator[Delta, None], ends_at: float) -> Delta | None:
        """The next piece, None at the end. Raises: GenerationFailed after silence, _OutOfTime at the deadline."""
        left = ends_at - time.monotonic()
        silence = self._limits.silence_seconds
        try:
            async with asyncio.timeout(max(0.0, min(left, silence))):
                return await anext(received, None)
        except TimeoutError as error:
            if left <= silence:
                raise _OutOfTime("The model was not done within its time.") from error
            raise GenerationFailed(f"The model did not answer in time: {silence:g} s without a word.") from error

    async def _posted(self, body: dict[str, Any]) -> AsyncGenerator[Delta, None]:
        timeout = httpx2.Timeout(None, connect=min(10.0, self._limits.silence_seconds))
        async with httpx2.AsyncClient(timeout=timeout, verify=_certificates()) as client:
            async with client.stream("POST", self._endpoint.url, json=body, headers=self._endpoint.headers) as response:
                if response.status_code != httpx2.codes.OK:
                    raise _Refused(response, await _beginning(response), self._endpoint, body)
                try:
                    async with aclosing(deltas(response)) as received:
                        async for delta in received:
                            yield delta
                except GenerationFailed as error:
                    raise GenerationFailed(without_request(self._endpoint.without_key(str(error)), body)) from None

    def _body(self, messages: list[dict[str, str]], refused: frozenset[str]) -> dict[str, Any]:
        optional: dict[str, Any] = {
            "temperature": 0,
            "stream_options": {"include_usage": True},
            # Newer models of OpenAI know the second name only, most other servers the first.
            "max_tokens": self._limits.answer_tokens,
        }
        if "max_tokens" in refused:
            optional["max_completion_tokens"] = self._limits.answer_tokens
        kept = {name: value for name, value in optional.items() if name not in refused}
        return {"model": self.name, "messages": messages, "stream": True, **kept}

    def _usage(self, prompt_tokens: int, completion_tokens: int, *, estimated: bool = False) -> Usage:
        cost = self._prices.of(prompt_tokens, completion_tokens) if self._prices else None
        return Usage(prompt_tokens, completion_tokens, cost, estimated)


class _OutOfTime(Exception):
    """The time for the whole answer is over."""


class _Refused(Exception):
    """The server answered with another status than 200. ``pause_seconds`` is what it asks for, if it does."""

    def __init__(
        self, response: httpx2.Response, received: bytes, endpoint: ChatEndpoint, body: dict[str, Any]
    ) -> None:
        super().__init__(endpoint.refusal(response.status_code, received, body))
        self.status = response.status_code
        self.pause_seconds = _retry_after(response.headers.get("retry-after", ""))
        self._said = received.decode("utf-8", "replace")

    def blamed(self, body: dict[str, Any]) -> str:
        """The parameter of the request that the server does not take; empty when it complains of something else."""
        if self.status not in (400, 422) or _TOO_LONG.search(self._said):
            return ""
        for name in ("max_completion_tokens", "stream_options", "max_tokens", "temperature"):
            if name in body and name in self._said:
                return name
        # Servers that name nothing mostly stumble over the newest of the parameters.
        return "stream_options" if "stream_options" in body else ""


async def _beginning(response: httpx2.Response) -> bytes:
    received = b""
    async for piece in response.aiter_bytes():
        received += piece
        if len(received) > LONGEST_REFUSAL_BYTES:
            break
    return received


def _retry_after(value: str) -> float | None:
    """Seconds, at least 0, from a Retry-After header (RFC 9110, 10.2.3); None for none."""
    try:
        return max(0.0, float(value))
    except ValueError:
        at = parse_http_date_safe(value)
        return None if at is None else max(0.0, at - time.time())


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Reading them takes tens of milliseconds, in which no stream of the process goes on."""
    return httpx2.create_ssl_context()
