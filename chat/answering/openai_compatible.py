from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from operator import mul

import numpy as np
from django.utils import timezone

from chat.answering.checking.answer_stream import AnswerStream
from chat.answering.prompts import BYTES_PER_TOKEN, PROMPT_VERSION, compose_prompt, estimate_tokens
from chat.answering.sources import TablesOfQuestion
from chat.answering.table_dialogue import FUNCTION_TOKENS, MOST_RESULT_TOKENS, RESULTS_SHARE, TableDialogue
from chat.answering.tool_calls import ASK_TABLES, FunctionCallCollector
from chat.exceptions import NoAnswerFound
from chat.types import AnswerDraft, AnswerToken, TokensWithdrawnEvent, TokenUsage
from core import deadline
from core.breaker import Breaker
from core.exceptions import ModelFailed
from core.language_model.chat_endpoint import ChatEndpoint
from core.language_model.completion_client import CompletionClient, Request
from core.language_model.completion_stream import CALLS, FILTERED, LENGTH
from core.language_model.machinery import ReplyCleaner
from retrieval.index import embedder_choice
from retrieval.types import Turn

logger = logging.getLogger(__name__)

# With a time limit, KEPT_SHARE of the remaining time, at most MOST_KEPT_SECONDS, is kept to check the answer or to
# quote documents.
KEPT_SHARE, MOST_KEPT_SECONDS = 0.25, 5.0
# A token has at most about this many characters. An answer with more characters than its tokens allow is cut off.
CHARACTERS_PER_TOKEN = 16
LARGEST_ANSWER_CHARACTERS = 100_000
_NOTHING = TokenUsage(0, 0)


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """The limits of one answer by a language model.

    ``silence_seconds`` is the longest pause between two pieces, ``total_seconds`` the time for all attempts.
    ``context_tokens`` is for the prompt and the answer.
    """

    silence_seconds: float = 60.0
    total_seconds: float = 300.0
    answer_tokens: int = 1000
    context_tokens: int = 16000
    prompt_tokens: int = 1500

    def compute_prompt_budget(self, taken_tokens: int = 0) -> int:
        """Return how many tokens a prompt may have, after ``taken_tokens`` for other texts."""
        answer_tokens = min(self.answer_tokens, self.context_tokens // 2)
        return max(1, min(self.prompt_tokens, self.context_tokens - answer_tokens) - taken_tokens)


class OpenAICompatibleGenerator:
    """Writes answers from numbered sources with a language model.

    ``prices`` are per million tokens of prompt and of completion. With ``may_refuse``, the model may reply NO_ANSWER.
    Raises: LanguageModelMisconfigured.
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
        self._client = CompletionClient(endpoint, self._limits.silence_seconds, Breaker("model"))
        self._prices = prices

    async def compose(
        self, draft: AnswerDraft, history: Sequence[Turn], tables: TablesOfQuestion | None = None
    ) -> AsyncGenerator[AnswerToken | TokensWithdrawnEvent, None]:
        """Yield the answer in pieces. A ``TokensWithdrawnEvent`` means that all pieces before it must be removed.

        ``history`` is ordered oldest first. The usage, the function calls and the model's text are stored in ``draft``.
        Raises: NoAnswerFound, ModelFailed, AnswerWithheld.
        """
        limits, sources = self._limits, draft.sources
        if "tools" in self._client.known.refused:
            tables = None
        room_tokens = min(MOST_RESULT_TOKENS, int(RESULTS_SHARE * limits.context_tokens))
        taken_tokens = room_tokens + FUNCTION_TOKENS if tables else 0
        prompt = compose_prompt(
            draft.question,
            sources,
            today=timezone.localdate(),
            budget_tokens=limits.compute_prompt_budget(taken_tokens),
            history=history,
            tables=tables.names if tables else (),
            may_refuse=self.may_refuse,
            instructions=draft.instructions,
        )
        draft.prompt_version, draft.left_out = PROMPT_VERSION, prompt.left_out
        draft.usage = self._build_usage(prompt.tokens, 0, estimated=True)
        output = AnswerStream(prompt, draft.question, sources, history, _encode_texts)
        known = [source.block.content for source in sources]
        messages: list[Mapping[str, object]] = [*prompt.messages]
        ends_at = self._compute_deadline()
        dialogue = None
        if tables is not None:
            dialogue = TableDialogue(tables, output, draft, room_tokens=room_tokens, ends_at=ends_at)
        async with aclosing(self._stream_replies(messages, dialogue, known, draft, ends_at)) as pieces:
            async for piece in pieces:
                if piece is None:
                    output = AnswerStream(prompt, draft.question, draft.sources, history, _encode_texts)
                    if dialogue is not None:
                        dialogue.output = output
                    yield TokensWithdrawnEvent()
                elif shown := output.feed(piece):
                    yield _build_token(output, shown)
                if output.is_looping:
                    draft.looped = True
                    break
        if rest := output.close():
            yield _build_token(output, rest)
        draft.written = output.written.strip()
        if not draft.calls and not draft.looped:
            draft.dialogue = (*prompt.messages, {"role": "assistant", "content": draft.written})
        if draft.has_machinery:
            logger.warning(
                "The reply of %s had parts that are no answer, such as a thought; they are left out.", self.name
            )
        if output.has_no_answer:
            raise NoAnswerFound
        if not output.written:
            what = "only a call or a thought" if draft.has_machinery else "nothing"
            raise ModelFailed(f"The model said {what} in place of an answer.")

    async def _stream_replies(
        self,
        messages: list[Mapping[str, object]],
        dialogue: TableDialogue | None,
        known: Sequence[str],
        draft: AnswerDraft,
        ends_at: float,
    ) -> AsyncGenerator[str | None, None]:
        """Yield the model's text in pieces, and None when the caller must remove all pieces so far."""
        calls = None if dialogue is None else FunctionCallCollector()
        said, spent = "", _NOTHING
        while True:
            gap = "\n\n" if said else ""
            async with aclosing(self._stream_reply(messages, known, draft, ends_at, spent, calls)) as pieces:
                async for piece in pieces:
                    said = "" if piece is None else said + piece
                    yield piece if piece is None else gap + piece
                    gap = ""
            if dialogue is None or not calls or draft.cut_off:
                return
            messages += await dialogue.run(said, calls)
            spent, calls = draft.usage or _NOTHING, None

    def _compute_deadline(self) -> float:
        left = deadline.seconds_left(math.inf)
        return time.monotonic() + min(self._limits.total_seconds, left - min(KEPT_SHARE * left, MOST_KEPT_SECONDS))

    async def _stream_reply(
        self,
        messages: list[Mapping[str, object]],
        known: Sequence[str],
        draft: AnswerDraft,
        ends_at: float,
        spent: TokenUsage,
        calls: FunctionCallCollector | None,
    ) -> AsyncGenerator[str | None, None]:
        """Yield the text of one reply, without reasoning, and None when the caller must remove all text so far.

        ``spent`` are the tokens of earlier requests for this answer. Function calls are added to ``calls``.
        """
        prompt_tokens, counted = sum(estimate_tokens(str(message["content"])) for message in messages), False
        prompt_tokens += 0 if calls is None else FUNCTION_TOKENS
        room_tokens = self._limits.context_tokens - prompt_tokens
        answer_tokens = min(self._limits.answer_tokens - spent.completion_tokens, room_tokens)
        if answer_tokens <= 0:
            draft.cut_off = True
            return
        said_bytes, last, ending = 0, "", ""
        characters_left = min(LARGEST_ANSWER_CHARACTERS, CHARACTERS_PER_TOKEN * answer_tokens)
        plain = " ".join(" ".join(known).split())
        quirks = self._client.known
        machinery = ReplyCleaner(
            lambda text: " ".join(text.split()) in plain, opens_with_thought=quirks.opens_with_thought
        )
        request = Request(messages, ends_at, answer_tokens, tools=() if calls is None else [ASK_TABLES])
        try:
            async with aclosing(self._client.stream_deltas(request)) as received:
                async for delta in received:
                    ending = delta.finish_reason or ending
                    if ending == FILTERED:
                        draft.filtered = True
                        raise ModelFailed("The model server's content filter stopped the answer.")
                    draft.cut_off = draft.cut_off or ending == LENGTH
                    if calls is not None:
                        calls.add(delta.calls)
                    if delta.prompt_tokens is not None and delta.completion_tokens is not None:
                        draft.usage = self._build_usage(delta.prompt_tokens, delta.completion_tokens, spent)
                        counted = True
                    elif not counted:
                        said_bytes += len(delta.text.encode()) + sum(len(each.arguments) for each in delta.calls)
                        reckoned = math.ceil(said_bytes / BYTES_PER_TOKEN)
                        draft.usage = self._build_usage(prompt_tokens, reckoned, spent, estimated=True)
                    last = (last + delta.text)[-80:]
                    said = machinery.feed(delta.text)
                    if machinery.takes_back:
                        machinery.takes_back = False
                        yield None
                    if said[:characters_left]:
                        yield said[:characters_left]
                    characters_left -= len(said)
                    if characters_left < 0:
                        draft.cut_off = True
                        break
                else:
                    if ending == CALLS and not calls:
                        raise ModelFailed("The model called a function that it was not offered.")
                    draft.cut_off = draft.cut_off or (not ending and _ends_within_sentence(last))
                    rest = machinery.close(is_cut=draft.cut_off)
                    if machinery.takes_back:
                        yield None
                    if rest:
                        yield rest
        finally:
            # If a model ends a thought that it never opened, its next answers are hidden until their thought ends.
            quirks.opens_with_thought = quirks.opens_with_thought or machinery.closes_alone
        draft.has_machinery = draft.has_machinery or machinery.withheld

    def _build_usage(
        self, prompt_tokens: int, completion_tokens: int, spent: TokenUsage = _NOTHING, *, estimated: bool = False
    ) -> TokenUsage:
        tokens = prompt_tokens + spent.prompt_tokens, completion_tokens + spent.completion_tokens
        cost = round(sum(map(mul, self._prices, tokens)) / 1_000_000, 6) if self._prices else None
        return TokenUsage(*tokens, cost, estimated or spent.estimated)


def _build_token(output: AnswerStream, text: str) -> AnswerToken:
    begin = output.shown_length - len(text)
    return AnswerToken(text, tuple(marker.shift_by(-begin) for marker in output.markers if marker.start >= begin))


def _ends_within_sentence(text: str) -> bool:
    end = text.rstrip()[-1:]
    return end.isalnum() or (end != "" and end in ",;(-–/&")


def _encode_texts(texts: Sequence[str]) -> np.ndarray:
    return np.asarray(embedder_choice.get_embedder().embed_documents(texts))
