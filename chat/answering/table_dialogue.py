"""What a model asks of the tables while it writes one answer, and what it is told."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from chat.answering.filtered_stream import OutputStream
from chat.answering.prompts import Prompt, estimated_tokens, quote_result
from chat.answering.tool_calls import ASK_TABLES, Call, CallsOfRound, Unanswerable
from chat.exceptions import GenerationFailed, TablesUnavailable
from chat.protocols import AskableTables, PartialAnswer
from chat.types import TracedCall

# What the description of the function takes of the prompt.
FUNCTION_TOKENS = estimated_tokens(json.dumps(ASK_TABLES))
# So often a model may ask, with several calls at once, before it has to answer.
MOST_ROUNDS = 3
# Of what prompt and answer may hold, this share, and no more than these tokens, is kept for the results.
RESULTS_SHARE, MOST_RESULT_TOKENS, FEWEST_RESULT_TOKENS = 1 / 8, 2000, 60
# Of a result, this much is kept for the debug panel.
LONGEST_TRACED = 500


def room_for_results(context_tokens: int) -> int:
    return min(MOST_RESULT_TOKENS, int(RESULTS_SHARE * context_tokens))


class TableDialogue:
    """The messages of one answer, which grow with each round of calls. ``ends_at`` is by the monotonic clock."""

    def __init__(
        self,
        tables: AskableTables,
        prompt: Prompt,
        output: OutputStream,
        partial: PartialAnswer,
        *,
        room_tokens: int,
        ends_at: float,
    ) -> None:
        self.messages: list[dict[str, Any]] = list(prompt.messages)
        self._tables = tables
        self._prompt = prompt
        self._output = output
        self._partial = partial
        self._room_tokens = room_tokens
        self.ends_at = ends_at

    @property
    def has_calls(self) -> bool:
        return len(self.messages) > len(self._prompt.messages)

    def forget_calls(self) -> None:
        """The messages as they were before the first call."""
        self.messages = list(self._prompt.messages)

    async def tell(self, said: str, calls: CallsOfRound) -> None:
        """Run the calls that followed what the model said. Raises: GenerationFailed when the time is over."""
        self.messages.append({"role": "assistant", "content": said, "tool_calls": [call.as_sent() for call in calls]})
        for call in calls:
            told = await self._run(call)
            self._room_tokens -= estimated_tokens(told)
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": told})

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
            self._partial.calls.append(TracedCall(call.arguments, str(error)))
            return str(error)
        except TimeoutError as error:
            raise GenerationFailed("The tables did not answer the model within its time.") from error
        self._partial.calls.append(TracedCall(call.arguments, found.text[:LONGEST_TRACED], found.document_id))
        self._output.admit(found.sources)
        return quote_result(found.text, [source.marker for source in found.sources], self._room_tokens)
