"""Answers written by a language model behind OpenAI's chat-completions protocol (OpenAI, Ollama, vLLM, LM Studio,
...)."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import random
import ssl
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx2
from django.utils import timezone

from chat.exceptions import GenerationFailed, NoAnswer
from chat.generators.completion_stream import Delta, deltas
from chat.generators.prompts import BYTES_PER_TOKEN, NO_ANSWER, PROMPT_VERSION, compose, estimated_tokens
from chat.generators.refused import Refused, beginning
from chat.generators.table_dialogue import FUNCTION_TOKENS, MOST_ROUNDS, TableDialogue, room_for_results
from chat.generators.thinking import ThoughtFilter
from chat.generators.tool_calls import ASK_TABLES, CallsOfRound
from chat.output.stream import OutputStream
from chat.protocols import AskableTables, PartialAnswer
from chat.types import Source, Usage
from retrieval.language_models.endpoint import ChatEndpoint
from retrieval.resilience import deadline
from retrieval.resilience.breaker import Breaker, BreakerState, Open
from retrieval.types import Turn

logger = logging.getLogger(__name__)

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
# A server that asks for a longer pause is not waited for: a reader is there.
LONGEST_PAUSE_SECONDS = 20.0
# Of what a question has left, for checking the answer, or for quoting one where the model wrote none.
KEPT_SHARE, MOST_KEPT_SECONDS = 0.25, 5.0
# A server that answers so is there: it refused this one question.
_OF_THE_QUESTION = frozenset({400, 413, 422})
# No tokenizer makes more characters of a token than these, runs of blanks aside. An answer that is longer than its
# tokens allow is cut off, as is one that is longer than anybody reads.
CHARACTERS_PER_TOKEN = 16
LARGEST_ANSWER_CHARACTERS = 100_000


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


_NOTHING = Usage(0, 0)


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
        self._takes_tools = False
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
        tables: AskableTables | None = None,
    ) -> AsyncGenerator[str, None]:
        limits = self._limits
        if "tools" in self._refused:
            tables = None
        room_tokens = room_for_results(limits.context_tokens)
        taken_tokens = room_tokens + FUNCTION_TOKENS if tables else 0
        prompt = compose(
            question,
            sources,
            today=timezone.localdate(),
            budget_tokens=max(1, limits.context_tokens - limits.answer_tokens - taken_tokens),
            history=history,
            computed=computed,
            tables=tables.names if tables else (),
        )
        partial.generator, partial.prompt_version, partial.left_out = self.name, PROMPT_VERSION, prompt.left_out
        partial.usage = self._usage(prompt.tokens, 0, estimated=True)
        output = OutputStream(prompt, question, sources, history)
        if tables is None:
            texts = self._texts(list(prompt.messages), partial, self._end())
        else:
            dialogue = TableDialogue(tables, prompt, output, partial, room_tokens=room_tokens, ends_at=self._end())
            texts = self._texts_of_rounds(dialogue, partial)
        has_said = False
        async with aclosing(texts) as pieces:
            async for piece in pieces:
                has_said = True
                if shown := output.feed(piece):
                    yield shown
        if not has_said:
            raise GenerationFailed("The model ended without a word.")
        if rest := output.close():
            yield rest

    async def _texts_of_rounds(self, dialogue: TableDialogue, partial: PartialAnswer) -> AsyncGenerator[str, None]:
        """What the model says in all rounds. A round that ends in calls is followed by another, which is told what the
        tables say; behind the last of them no function is offered. Time and tokens are those of one answer."""
        spent = _NOTHING
        offers = True
        has_said = False
        for number in range(MOST_ROUNDS + 1):
            calls = CallsOfRound() if offers and number < MOST_ROUNDS and "tools" not in self._refused else None
            said = ""
            try:
                async with aclosing(self._texts(dialogue.messages, partial, dialogue.ends_at, spent, calls)) as pieces:
                    async for piece in pieces:
                        # What a model says before a call is a paragraph of its own.
                        yield f"\n\n{piece}" if has_said and not said else piece
                        said += piece
            except GenerationFailed as error:
                if not dialogue.has_calls or has_said or said or not isinstance(error.__cause__, Refused):
                    raise
                logger.warning("%s does not take what its model called, and is asked without: %s", self.name, error)
                dialogue.forget_calls()
                offers = False
                continue
            has_said = has_said or bool(said)
            if calls and not partial.cut_off:
                await dialogue.tell(said, calls)
            elif calls is not None and not said and not partial.cut_off:
                # Older versions of Ollama lose the calls that they stream (ollama/ollama#9632).
                logger.warning("%s said nothing, and is asked without functions.", self.name)
                offers = False
            else:
                return
            assert partial.usage is not None
            spent = partial.usage

    def _end(self) -> float:
        """When the writing has to be over, by the monotonic clock: time is left for checking."""
        left = deadline.seconds_left(math.inf)
        return time.monotonic() + min(self._limits.total_seconds, left - min(KEPT_SHARE * left, MOST_KEPT_SECONDS))

    async def _texts(
        self,
        messages: list[dict[str, Any]],
        partial: PartialAnswer,
        ends_at: float,
        spent: Usage = _NOTHING,
        calls: CallsOfRound | None = None,
    ) -> AsyncGenerator[str, None]:
        """What the model says, as it may be shown. Nothing is until it is clear that it does not decline. Raises:
        NoAnswer, at the end, when it does. The parameters are those of :meth:`_spoken`."""
        head = ""
        is_clear = False
        async with aclosing(self._spoken(messages, partial, ends_at, spent, calls)) as pieces:
            async for piece in pieces:
                if is_clear:
                    yield piece
                    continue
                head += piece
                if not NO_ANSWER.startswith(head.strip()[: len(NO_ANSWER)]):
                    is_clear = True
                    yield head.lstrip()
        if not is_clear and head.strip():
            if head.strip().startswith(NO_ANSWER):
                raise NoAnswer
            yield head

    async def _spoken(
        self,
        messages: list[dict[str, Any]],
        partial: PartialAnswer,
        ends_at: float,
        spent: Usage,
        calls: CallsOfRound | None,
    ) -> AsyncGenerator[str, None]:
        """What the model says, without what it thinks aloud; ``partial`` learns what it took, with what was ``spent``
        before, and how it ended. Functions are offered when ``calls`` are to be gathered."""
        answer_tokens = self._limits.answer_tokens - spent.completion_tokens
        if answer_tokens <= 0:
            partial.cut_off = True
            return
        prompt_tokens, counted = sum(estimated_tokens(str(message["content"])) for message in messages), False
        prompt_tokens += 0 if calls is None else FUNCTION_TOKENS
        said_bytes = 0
        characters_left = min(LARGEST_ANSWER_CHARACTERS, CHARACTERS_PER_TOKEN * answer_tokens)
        thoughts = ThoughtFilter()
        request = _Request(messages, ends_at, answer_tokens, offers_tables=calls is not None)
        async with aclosing(self._deltas(request)) as received:
            async for delta in received:
                if delta.finish_reason == "content_filter":
                    partial.filtered = True
                    raise GenerationFailed("The model server's content filter stopped the answer.")
                partial.cut_off = partial.cut_off or delta.finish_reason == "length"
                if calls is not None:
                    calls.add(delta.calls)
                if delta.prompt_tokens is not None and delta.completion_tokens is not None:
                    partial.usage = self._usage(delta.prompt_tokens, delta.completion_tokens, spent)
                    counted = True
                elif not counted:
                    said_bytes += len(delta.text.encode()) + sum(len(each.arguments) for each in delta.calls)
                    reckoned = math.ceil(said_bytes / BYTES_PER_TOKEN)
                    partial.usage = self._usage(prompt_tokens, reckoned, spent, estimated=True)
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

    async def _deltas(self, request: _Request) -> AsyncGenerator[Delta, None]:
        """The completion, unless the server failed repeatedly and is left alone. Raises: GenerationFailed."""
        breaker = self._breaker
        try:
            breaker.enter()
        except Open as error:
            raise GenerationFailed(str(error)) from None
        has_begun = False
        try:
            async with aclosing(self._attempted(request)) as received:
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

    async def _attempted(self, request: _Request) -> AsyncGenerator[Delta, None]:
        """The completion. A failure before the first word is retried; after it, it is the end.

        Time that runs out after the first word is the end as well, and reported as a length that was reached.
        """
        seconds = request.ends_at - time.monotonic()
        for attempt in range(1, ATTEMPTS + 1):
            has_begun = False
            pause_seconds = FIRST_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                async with aclosing(self._asked(request)) as received:
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

    async def _asked(self, request: _Request) -> AsyncGenerator[Delta, None]:
        """One attempt, repeated at once without what the server turns out not to know."""
        refused = self._refused
        while True:
            body = self._body(request, refused)
            try:
                async with aclosing(self._posted(body)) as received:
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
                logger.warning("%s does not take %s, and is asked without: %s", self.name, blamed, error)
                refused |= {blamed}

    def _remember(self, refused: frozenset[str], body: dict[str, Any]) -> None:
        """A server that took functions before refused this one use of them: it is offered them again."""
        self._takes_tools = self._takes_tools or "tools" in body
        self._refused = refused - {"tools"} if self._takes_tools else refused

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
                    raise Refused(response, await beginning(response), self._endpoint)
                try:
                    async with aclosing(deltas(response)) as received:
                        async for delta in received:
                            yield delta
                except GenerationFailed as error:
                    raise GenerationFailed(self._endpoint.without_key(str(error))) from None

    def _body(self, request: _Request, refused: frozenset[str]) -> dict[str, Any]:
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
        return {"model": self.name, "messages": request.messages, "stream": True, **kept}

    def _usage(
        self, prompt_tokens: int, completion_tokens: int, spent: Usage = _NOTHING, *, estimated: bool = False
    ) -> Usage:
        prompt_tokens, completion_tokens = (
            prompt_tokens + spent.prompt_tokens,
            completion_tokens + spent.completion_tokens,
        )
        estimated = estimated or spent.estimated
        cost = self._prices.of(prompt_tokens, completion_tokens) if self._prices else None
        return Usage(prompt_tokens, completion_tokens, cost, estimated)


@dataclass(frozen=True, slots=True)
class _Request:
    """One completion that is asked for: of at most ``answer_tokens``, until ``ends_at`` by the monotonic clock."""

    messages: list[dict[str, Any]]
    ends_at: float
    answer_tokens: int
    offers_tables: bool


class _OutOfTime(Exception):
    """The time for the whole answer is over."""


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Reading them takes tens of milliseconds, in which no stream of the process goes on."""
    return httpx2.create_ssl_context()
