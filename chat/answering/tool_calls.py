"""Describe the function that a model may call, and parse the model's calls.

Servers send calls whole or in pieces, and use ``index`` and id differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict

from core.language_model.completion_stream import FunctionCallPiece

FUNCTION = "ask_tables"
ASK_TABLES: Mapping[str, object] = {
    "type": "function",
    "function": {
        "name": FUNCTION,
        "description": (
            "Computes over all rows of a table in the documents, of which the sources may show only some. It reads one "
            "question about one table: look up a value of a row, compare two rows, the row with the least or the most "
            "of a column, count, sum or mean of rows, or list the rows that meet conditions (a value, more or less "
            "than a number, yes or no, a year). It cannot join tables, group, rank beyond the first, or answer what "
            "is no column. Call it, without a word before the call, only where the sources and what was computed "
            "already do not say it, and then before you say that they do not. Its result has the numbers of the "
            "sources to cite."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "A short question in plain words, with the names of columns and values as the "
                    "table has them, such as: How many pumps weigh more than 2 kg?",
                }
            },
            "required": ["question"],
            "additionalProperties": False,
        },
    },
}
MOST_CALLS = 4
LONGEST_QUESTION = 500
LONGEST_ARGUMENTS = 2000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionCallPayload(TypedDict):
    name: str
    arguments: str


class ToolCallPayload(TypedDict):
    id: str
    type: Literal["function"]
    function: FunctionCallPayload


class DialogueMessage(TypedDict):
    role: Literal["assistant", "tool"]
    content: str
    tool_calls: NotRequired[list[ToolCallPayload]]
    tool_call_id: NotRequired[str]


class UnanswerableCall(Exception):
    """An error: the model's call cannot be run. The model reads the message."""


@dataclass(slots=True)
class Call:
    id: str
    name: str
    arguments: str = ""

    def read_question(self) -> str:
        """Return the question that the model wrote into the call's arguments. Raises: UnanswerableCall."""
        if self.name != FUNCTION:
            raise UnanswerableCall(f"There is no such function. The only one is {FUNCTION}.")
        if len(self.arguments) > LONGEST_ARGUMENTS:
            raise UnanswerableCall(f"The arguments are too long: a question has at most {LONGEST_QUESTION} characters.")
        question = (_parse_object(self.arguments) or {}).get("question")
        if not isinstance(question, str) or not question.strip():
            raise UnanswerableCall('The arguments must be a JSON object with a text as "question".')
        if len(question) > LONGEST_QUESTION:
            raise UnanswerableCall(f"The question is too long: it has at most {LONGEST_QUESTION} characters.")
        return " ".join(question.split())

    def to_openai_format(self) -> ToolCallPayload:
        known = self.arguments if _parse_object(self.arguments) is not None else "{}"
        name = self.name if _NAME.fullmatch(self.name) else "unknown"
        return {"id": self.id, "type": "function", "function": {"name": name, "arguments": known}}


class FunctionCallCollector:
    """Collects a model's function calls from the pieces of one reply, at most MOST_CALLS."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._open: dict[int, Call] = {}

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls[:MOST_CALLS])

    def __len__(self) -> int:
        return min(len(self._calls), MOST_CALLS)

    def add(self, pieces: Iterable[FunctionCallPiece]) -> None:
        for piece in pieces:
            call = self._open.get(piece.index)
            if call is None or _is_new_call(call, piece):
                call = self._open[piece.index] = Call(piece.id or f"call_{len(self._calls) + 1}", piece.name)
                self._calls.append(call)
            call.name = call.name or piece.name
            call.arguments += piece.arguments[: LONGEST_ARGUMENTS + 1 - len(call.arguments)]


def _is_new_call(call: Call, piece: FunctionCallPiece) -> bool:
    return bool(piece.name) and piece.id not in ("", call.id) and _parse_object(call.arguments) is not None


def _parse_object(arguments: str) -> dict[str, object] | None:
    try:
        read = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None
