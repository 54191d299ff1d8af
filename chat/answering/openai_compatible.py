"""Answers written by a language model behind OpenAI's chat-completions protocol (OpenAI, Ollama, vLLM, LM Studio,
...).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np
from django.utils import timezone

from chat.answering.attribution import LoopingAnswer
from chat.answering.citations import NUMBERS_IN_BRACKETS
from chat.answering.completion_client import CompletionClient, Request
from chat.answering.filtered_stream import OutputStream
from chat.answering.machinery import MachineryStream
from chat.answering.prompts import (
    BYTES_PER_TOKEN,
    NO_ANSWER,
    PROMPT_VERSION,
    REMEMBERED_TURNS,
    compose,
    estimated_tokens,
    quote_result,
)
from chat.answering.sources import TablesOfQuestion
from chat.answering.tool_calls import ASK_TABLES, Call, CallsOfRound, Unanswerable
from chat.exceptions import GenerationFailed, NoAnswer, TablesUnavailable
from chat.types import AnswerDraft, TracedCall, Usage
from retrieval import conf
from retrieval.infrastructure import deadline
from retrieval.infrastructure.chat_model import ChatEndpoint
from retrieval.types import Turn

logger = logging.getLogger(__name__)

# What a model asks of the tables while it writes one answer, and what it is told.

# What the description of the function takes of the prompt.
FUNCTION_TOKENS = estimated_tokens(json.dumps(ASK_TABLES))
# Of what prompt and answer may hold, this share, and no more than these tokens, is kept for the results.
RESULTS_SHARE, MOST_RESULT_TOKENS, FEWEST_RESULT_TOKENS = 1 / 8, 2000, 60
# Of a result, this much is kept for the debug panel.
LONGEST_TRACED = 500


class TableDialogue:
    """A model's questions to the tables, and their results. ``ends_at`` is by the monotonic clock."""

    def __init__(
        self, tables: TablesOfQuestion, output: OutputStream, draft: AnswerDraft, *, room_tokens: int, ends_at: float
    ) -> None:
        self._tables = tables
        self._output = output
        self._draft = draft
        self._room_tokens = room_tokens
        self.ends_at = ends_at

    async def run(self, said: str, calls: CallsOfRound) -> list[dict[str, Any]]:
        """The messages to add: the model's text with its calls, and their results. Raises: GenerationFailed if the time
        is over.
        """
        messages = [{"role": "assistant", "content": said, "tool_calls": [call.as_sent() for call in calls]}]
        for call in calls:
            told = await self._run(call)
            self._room_tokens -= estimated_tokens(told)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
        return messages

    async def _run(self, call: Call) -> str:
        try:
            question = call.read_question()
            if self._room_tokens < FEWEST_RESULT_TOKENS:
                raise Unanswerable("There is no room for further results: answer from what is known.")
            async with asyncio.timeout(max(0.0, self.ends_at - time.monotonic())):
                found = await self._tables.ask(question)
            if found is None:
                raise Unanswerable("No table answers this with confidence: nothing was computed.")
        except (Unanswerable, TablesUnavailable) as error:
            self._draft.calls.append(TracedCall(call.arguments, str(error)))
            return str(error)
        except TimeoutError as error:
            raise GenerationFailed("The tables did not answer the model within its time.") from error
        self._draft.calls.append(TracedCall(call.arguments, found.text[:LONGEST_TRACED], found.document_id))
        self._output.admit(found.sources)
        return quote_result(found.text, [source.marker for source in found.sources], self._room_tokens)


# Of what a question has left, for checking the answer, or for quoting one where the model wrote none.
KEPT_SHARE, MOST_KEPT_SECONDS = 0.25, 5.0
# No tokenizer makes more characters of a token than these, runs of blanks aside. An answer that is longer than its
# tokens allow is cut off, as is one that is longer than anybody reads.
CHARACTERS_PER_TOKEN = 16
LARGEST_ANSWER_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """``silence_seconds`` limits the wait for each next piece from the model, ``total_seconds`` the whole answer with
    all attempts. ``context_tokens`` limits prompt and answer together, ``prompt_tokens`` the prompt.
    """

    silence_seconds: float = 60.0
    total_seconds: float = 300.0
    answer_tokens: int = 1000
    context_tokens: int = 16000
    prompt_tokens: int = 1500

    def budget(self, taken_tokens: int = 0) -> int:
        """The tokens left for the prompt, beside an answer and ``taken_tokens``. In a small context, the answer gets at
        most half.
        """
        answer_tokens = min(self.answer_tokens, self.context_tokens // 2)
        return max(1, min(self.prompt_tokens, self.context_tokens - answer_tokens) - taken_tokens)


_NOTHING = Usage(0, 0)
# What may stand around the word by which a model refuses.
_AROUND = " \t\r\n\"'`*["


# Less than these characters may be meant: "Yes, both do."
LEAST_REPEATED = 40
_SENTENCE_ENDS = re.compile(r"[.!?:](?:[ \t]?\[\d{1,3}\]){0,8}\s|\n")
_BLANK_BEFORE_SIGN = re.compile(r" (?=[.,:;!?])")
_HALF_MARKER = re.compile(r"\[[\d, ]{0,20}\Z")


class _Opening:
    """Holds a model's text back until it is clear that the model does not decline."""

    def __init__(self) -> None:
        self._held: str | None = ""

    def feed(self, text: str) -> str:
        """The text that can be shown after this piece; may be empty."""
        if self._held is None:
            return text
        self._held += text
        if NO_ANSWER.startswith(self._held.strip(_AROUND)[: len(NO_ANSWER)]):
            return ""
        text, self._held = self._held.lstrip(), None
        return text

    def close(self) -> str:
        """The text that was held back. Raises: NoAnswer if the model declines."""
        held = self._held or ""
        if held.strip(_AROUND).startswith(NO_ANSWER):
            raise NoAnswer
        return held.lstrip()


class _Repetition:
    """Holds back what an answer repeats of an earlier one from its beginning, as small models do with follow-ups: whole
    sentences or lines, of LEAST_REPEATED characters or more together.
    """

    def __init__(self, history: Sequence[Turn]) -> None:
        self._earlier = [plain for turn in history[-REMEMBERED_TURNS:] if (plain := _without_markers(turn.answer))]
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that can be shown after this piece; may be empty."""
        if not self._earlier:
            return text
        self._held += text
        while not self._is_repeated(self._held):
            # A block of code is left out whole, or not at all.
            ends = [end.end() for end in _SENTENCE_ENDS.finditer(self._held)]
            ends = [at for at in ends if self._is_repeated(self._held[:at]) and self._held.count("```", 0, at) % 2 == 0]
            repeated = max(ends, default=0)
            if repeated < LEAST_REPEATED:
                self._earlier = []
                return self._held
            # What follows may be the answer to another question.
            self._held = self._held[repeated:]
        return ""

    def close(self) -> str:
        """The text that was held back: an answer that says nothing else."""
        return self._held if self._earlier else ""

    def _is_repeated(self, text: str) -> bool:
        plain = _without_markers(text)
        return any(earlier.startswith(plain) for earlier in self._earlier)


def _without_markers(text: str) -> str:
    plain = " ".join(NUMBERS_IN_BRACKETS.sub("", _HALF_MARKER.sub("", text)).split())
    return _BLANK_BEFORE_SIGN.sub("", plain)


class OpenAICompatibleGenerator:
    """A language model that writes answers from numbered sources.

    ``name`` is the model's name in answers; if empty, the server's name for it. ``prices`` are those of a million
    tokens of prompt and completion. With ``may_refuse``, the model is told how to say that the sources do not answer.
    Raises: ImproperModel if no request can be made to the endpoint.
    """

    def __init__(
        self,
        endpoint: ChatEndpoint,
        limits: AnswerLimits | None = None,
        prices: tuple[float, float] | None = None,
        *,
        name: str = "",
        may_refuse: bool = False,
    ) -> None:
        self.name = name or endpoint.model
        self.may_refuse = may_refuse
        self._limits = limits or AnswerLimits()
        self._client = CompletionClient(endpoint, self._limits.silence_seconds)
        self._prices = prices

    async def compose(
        self, draft: AnswerDraft, history: Sequence[Turn], tables: TablesOfQuestion | None = None
    ) -> AsyncGenerator[str, None]:
        """Pieces of the answer to the draft's question, filtered by OutputStream; keeps the draft up to date.

        ``history`` are the conversation's earlier turns, oldest first, ``tables`` those that the model may query.
        Closing the iterator stops the work. Raises: NoAnswer, GenerationFailed, AnswerWithheld.
        """
        limits, sources = self._limits, draft.sources
        if "tools" in self._client.refused:
            tables = None
        room_tokens = min(MOST_RESULT_TOKENS, int(RESULTS_SHARE * limits.context_tokens))
        taken_tokens = room_tokens + FUNCTION_TOKENS if tables else 0
        prompt = compose(
            draft.question,
            sources,
            today=timezone.localdate(),
            budget_tokens=limits.budget(taken_tokens),
            history=history,
            tables=tables.names if tables else (),
            may_refuse=self.may_refuse,
            instructions=draft.instructions,
        )
        draft.prompt_version, draft.left_out = PROMPT_VERSION, prompt.left_out
        draft.usage = self._usage(prompt.tokens, 0, estimated=True)
        output = OutputStream(prompt, draft.question, sources, history, _encode)
        known = [source.block.content for source in sources]
        messages = [dict[str, Any](message) for message in prompt.messages]
        ends_at = self._end()
        dialogue = None
        if tables is not None:
            dialogue = TableDialogue(tables, output, draft, room_tokens=room_tokens, ends_at=ends_at)
        texts = self._rounds(messages, dialogue, known, draft, ends_at)
        said, repetition = "", _Repetition(history)
        try:
            async with aclosing(texts) as pieces:
                async for piece in pieces:
                    said += piece
                    if shown := output.feed(repetition.feed(piece)):
                        yield shown
            if shown := output.feed(repetition.close()):
                yield shown
            if rest := output.close(is_cut=draft.cut_off):
                yield rest
            if not draft.calls:
                draft.dialogue = (*prompt.messages, {"role": "assistant", "content": said})
        except LoopingAnswer as loop:
            draft.looped = True
            yield loop.finished + output.stop()
            return
        if draft.has_machinery:
            logger.warning("%s wrote what is no answer, such as a call or a thought; it was left out.", self.name)
        if output.gives_up:
            raise NoAnswer
        if not said:
            what = "a call of a function" if draft.has_machinery else "nothing"
            raise GenerationFailed(f"The model said {what} in place of an answer.")

    async def _rounds(
        self,
        messages: list[dict[str, Any]],
        dialogue: TableDialogue | None,
        known: Sequence[str],
        draft: AnswerDraft,
        ends_at: float,
    ) -> AsyncGenerator[str, None]:
        """The model's text. If it ends in calls, the model is asked again with their results and without functions. The
        limits of time and tokens count for both rounds together.
        """
        calls = None if dialogue is None else CallsOfRound()
        said, spent = "", _NOTHING
        while True:
            # What a model says before a call is a paragraph of its own.
            gap = "\n\n" if said else ""
            async with aclosing(self._round(messages, known, draft, ends_at, spent, calls)) as pieces:
                async for piece in pieces:
                    said += piece
                    yield gap + piece
                    gap = ""
            if dialogue is None or not calls or draft.cut_off:
                return
            messages += await dialogue.run(said, calls)
            spent, calls = draft.usage or _NOTHING, None

    def _end(self) -> float:
        """The time by which the model must have finished, by the monotonic clock: it leaves time for checking."""
        left = deadline.seconds_left(math.inf)
        return time.monotonic() + min(self._limits.total_seconds, left - min(KEPT_SHARE * left, MOST_KEPT_SECONDS))

    async def _round(
        self,
        messages: list[dict[str, Any]],
        known: Sequence[str],
        draft: AnswerDraft,
        ends_at: float,
        spent: Usage,
        calls: CallsOfRound | None,
    ) -> AsyncGenerator[str, None]:
        """The model's reply to these messages, without what is not an answer unless a ``known`` text contains it.
        ``draft`` records the tokens used, including those ``spent`` before, and how the reply ended. Functions are
        offered if ``calls`` are to be collected. Raises: NoAnswer, at the end, if the model declines.
        """
        prompt_tokens, counted = sum(estimated_tokens(str(message["content"])) for message in messages), False
        prompt_tokens += 0 if calls is None else FUNCTION_TOKENS
        room_tokens = self._limits.context_tokens - prompt_tokens
        answer_tokens = min(self._limits.answer_tokens - spent.completion_tokens, room_tokens)
        if answer_tokens <= 0:
            draft.cut_off = True
            return
        said_bytes = 0
        characters_left = min(LARGEST_ANSWER_CHARACTERS, CHARACTERS_PER_TOKEN * answer_tokens)
        plain = " ".join(" ".join(known).split())
        machinery = MachineryStream(lambda text: " ".join(text.split()) in plain)
        opening = _Opening()
        request = Request(messages, ends_at, answer_tokens, offers_tables=calls is not None)
        async with aclosing(self._client.deltas(request)) as received:
            async for delta in received:
                if delta.finish_reason == "content_filter":
                    draft.filtered = True
                    raise GenerationFailed("The model server's content filter stopped the answer.")
                draft.cut_off = draft.cut_off or delta.finish_reason == "length"
                if calls is not None:
                    calls.add(delta.calls)
                if delta.prompt_tokens is not None and delta.completion_tokens is not None:
                    draft.usage = self._usage(delta.prompt_tokens, delta.completion_tokens, spent)
                    counted = True
                elif not counted:
                    said_bytes += len(delta.text.encode()) + sum(len(each.arguments) for each in delta.calls)
                    reckoned = math.ceil(said_bytes / BYTES_PER_TOKEN)
                    draft.usage = self._usage(prompt_tokens, reckoned, spent, estimated=True)
                said = machinery.feed(delta.text)
                if shown := opening.feed(said[:characters_left]):
                    yield shown
                characters_left -= len(said)
                if characters_left < 0:
                    # A server that heeds no max_tokens: the rest is not read.
                    draft.cut_off = True
                    break
            else:
                if shown := opening.feed(machinery.close()):
                    yield shown
        draft.has_machinery = draft.has_machinery or machinery.withheld
        if rest := opening.close():
            yield rest

    def _usage(
        self, prompt_tokens: int, completion_tokens: int, spent: Usage = _NOTHING, *, estimated: bool = False
    ) -> Usage:
        tokens = prompt_tokens + spent.prompt_tokens, completion_tokens + spent.completion_tokens
        cost = round(sum(map(mul, self._prices, tokens)) / 1_000_000, 6) if self._prices else None
        return Usage(*tokens, cost, estimated or spent.estimated)


def _encode(texts: Sequence[str]) -> np.ndarray:
    return np.asarray(conf.embedder().embed_documents(texts))
