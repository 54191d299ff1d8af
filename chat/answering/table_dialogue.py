from __future__ import annotations

import asyncio
import json
import time

from chat.answering.checking.answer_stream import AnswerStream
from chat.answering.prompts import estimate_tokens, quote_result
from chat.answering.sources import TablesOfQuestion
from chat.answering.tool_calls import ASK_TABLES, Call, DialogueMessage, FunctionCallCollector, UnanswerableCall
from chat.exceptions import TablesUnavailable
from chat.types import AnswerDraft, TracedCall
from core.exceptions import ModelFailed

FUNCTION_TOKENS = estimate_tokens(json.dumps(ASK_TABLES))
# The results of tables may use RESULTS_SHARE of the model's context, within these limits in tokens.
RESULTS_SHARE, MOST_RESULT_TOKENS, FEWEST_RESULT_TOKENS = 1 / 8, 2000, 60
LONGEST_TRACED = 500


class TableDialogue:
    """Answers a language model's table queries. The found rows become sources that the answer (``output``) can cite."""

    def __init__(
        self, tables: TablesOfQuestion, output: AnswerStream, draft: AnswerDraft, *, room_tokens: int, ends_at: float
    ) -> None:
        self._tables = tables
        self.output = output
        self._draft = draft
        self._room_tokens = room_tokens
        self.ends_at = ends_at

    async def run(self, said: str, calls: FunctionCallCollector) -> list[DialogueMessage]:
        """Run the model's ``calls``, and return the messages to add to the prompt.

        The first message repeats the model's reply: its text ``said`` and the calls. Each of the others has the result
        of a call. Raises: ModelFailed.
        """
        sent = [call.to_openai_format() for call in calls]
        messages: list[DialogueMessage] = [{"role": "assistant", "content": said, "tool_calls": sent}]
        for call in calls:
            told = await self._run_function_call(call)
            self._room_tokens -= estimate_tokens(told)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
        return messages

    async def _run_function_call(self, call: Call) -> str:
        try:
            question = call.read_question()
            if self._room_tokens < FEWEST_RESULT_TOKENS:
                raise UnanswerableCall("There is no room for further results: answer from what is known.")
            async with asyncio.timeout(max(0.0, self.ends_at - time.monotonic())):
                found = await self._tables.compute_answer(question)
            if found is None:
                raise UnanswerableCall("No table answers this with confidence: nothing was computed.")
        except (UnanswerableCall, TablesUnavailable) as error:
            self._draft.calls.append(TracedCall(call.arguments, str(error)))
            return str(error)
        except TimeoutError as error:
            raise ModelFailed("The tables did not answer the model within its time.") from error
        self._draft.calls.append(TracedCall(call.arguments, found.text[:LONGEST_TRACED], found.document_id))
        self.output.add_sources(found.sources)
        return quote_result(found.text, [source.marker for source in found.sources], self._room_tokens)
