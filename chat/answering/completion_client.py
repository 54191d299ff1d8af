"""Asking a server of chat completions for one completion: attempts, pauses, time, and what the server does not take."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx2

from chat.answering.completion_stream import Delta
from chat.answering.completion_stream import deltas as read_deltas
from chat.answering.refused import Refused, read_beginning
from chat.answering.tool_calls import ASK_TABLES
from chat.exceptions import GenerationFailed
from retrieval.infrastructure.bounded_http import trusted_certificates
from retrieval.infrastructure.breaker import Breaker, BreakerState, Open
from retrieval.infrastructure.endpoint import ChatEndpoint
from retrieval.infrastructure.quoting import without_request
from retrieval.infrastructure.tracing import span

logger = logging.getLogger(__name__)

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
# A server that asks for a longer pause is not waited for: a reader is there.
LONGEST_PAUSE_SECONDS = 20.0
# A server that answers so is there: it refused this one question.
_OF_THE_QUESTION = frozenset({400, 413, 422})


@dataclass(frozen=True, slots=True)
class Request:
    """One completion that is asked for: of at most ``answer_tokens``, until ``ends_at`` by the monotonic clock."""

    messages: list[dict[str, Any]]
    ends_at: float
    answer_tokens: int
    offers_tables: bool


class CompletionClient:
    """``silence_seconds`` bounds the wait for each next sign. ``refused`` are parameters that the server did not take:
    it is not asked with them again."""

    def __init__(self, endpoint: ChatEndpoint, model: str, silence_seconds: float) -> None:
        self._endpoint = endpoint
        self._model = model
        self._silence_seconds = silence_seconds
        self.refused: frozenset[str] = frozenset()
        self._takes_tools = False
        self._breaker = Breaker("model")

    async def deltas(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The completion, unless the server failed repeatedly and is left alone. Raises: GenerationFailed."""
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
        """The completion. A failure before the first word is retried; after it, it is the end.

        Time that runs out after the first word is the end as well, and reported as a length that was reached.
        """
        seconds = request.ends_at - time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            has_begun = False
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                async with aclosing(self._ask(request)) as received:
                    async for delta in received:
                        has_begun = has_begun or bool(delta.text or delta.calls)
                        yield delta
                return
            except Refused as error:
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
            if time.monotonic() + pause_seconds > request.ends_at:
                raise GenerationFailed(f"The model was not there within {seconds:.3g} s.")
            await asyncio.sleep(pause_seconds)

    async def _ask(self, request: Request) -> AsyncGenerator[Delta, None]:
        """One attempt, repeated at once without what the server turns out not to know."""
        refused = self.refused
        while True:
            body = self._body(request, refused)
            try:
                async with aclosing(self._post(body)) as received:
                    while True:
                        delta = await self._next(received, request.ends_at)
                        if delta is None:
                            return
                        self._remember(refused, body)
                        yield delta
            except Refused as error:
                blamed = error.blamed(body)
                if not blamed:
                    raise
                logger.warning("%s does not take %s, and is asked without: %s", self._model, blamed, error)
                refused |= {blamed}

    def _remember(self, refused: frozenset[str], body: dict[str, Any]) -> None:
        """A server that took functions before refused this one use of them: it is offered them again."""
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
            async with client.stream("POST", self._endpoint.url, json=body, headers=self._endpoint.headers) as response:
                if response.status_code != httpx2.codes.OK:
                    raise Refused(response, await read_beginning(response), self._endpoint, body)
                try:
                    async with aclosing(read_deltas(response)) as received:
                        async for delta in received:
                            yield delta
                except GenerationFailed as error:
                    raise GenerationFailed(without_request(self._endpoint.without_key(str(error)), body)) from None

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
