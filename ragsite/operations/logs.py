"""Log lines, as text or JSON: with the request that they belong to, and without texts of documents or questions.

The product's own messages hold none. Those of libraries may quote what they were given, in the lines behind the first:
a database its row, a validator its input. So a message, and that of an error, is cut at its first line.
"""

from __future__ import annotations

import copy
import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ragsite.operations import request_context

LONGEST_CHARACTERS = 1000
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class RefusalFilter(logging.Filter):
    """Takes the traceback off records of responses below 500: Django logs one with each 403."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = None
        return True


class TextFormatter(logging.Formatter):
    """A line an event, which ends with the id of its request; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        request_id = request_context.current().request_id
        shortened = copy.copy(record)
        shortened.msg = _message(record) + (f" [{request_id}]" if request_id else "")
        shortened.args = shortened.exc_text = None
        return super().format(shortened)

    def formatException(self, exc_info: Any) -> str:  # noqa: N802 - its name in `logging`
        return describe(exc_info[1])


class JsonFormatter(logging.Formatter):
    """One JSON object an event: time, level, logger, message; with what is known of the request, and an error."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            **request_context.current().as_fields(),
        }
        for name, value in vars(record).items():
            # Others are objects, such as a request, whose text is anything.
            if name not in _OWN_ATTRIBUTES and isinstance(value, str | int | float):
                line[name] = _first_line(value) if isinstance(value, str) else value
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = describe(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def describe(error: BaseException) -> str:
    """The error and what it came from, the cause first, each with its traceback and the first line of its message."""
    parts = []
    for each in reversed(list(_causes(error))):
        parts.append("Traceback (most recent call last):\n" + "".join(traceback.format_tb(each.__traceback__)))
        parts[-1] += f"{type(each).__name__}: {_first_line(str(each))}"
    return "\n".join(parts)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _message(record: logging.LogRecord) -> str:
    args = record.args
    if isinstance(args, tuple):
        args = tuple(_first_line(str(each)) if isinstance(each, BaseException) else each for each in args)
    message = str(record.msg)
    return _first_line(message % args if args else message)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    line = lines[0][:LONGEST_CHARACTERS]
    return line if line == text.strip() else f"{line} …"
