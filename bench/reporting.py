from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from evaluation.exceptions import EvaluationError

# Progress functions get a description of the work, the number of finished items, and the number of all.
Report = Callable[[str, int, int], None]


def format_markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def replace_section(page: Path, name: str, text: str) -> None:
    """Replace the text between the comments ``<!-- NAME -->`` and ``<!-- /NAME -->`` of a page.

    Raises: EvaluationError if the page cannot be read or written, or does not have each comment once.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    try:
        content = page.read_text(encoding="utf-8")
        if content.count(start) != 1 or content.count(end) != 1 or content.index(start) > content.index(end):
            raise EvaluationError(f"{page} must hold {start} and {end}, once each and in this order.")
        marked = re.compile(f"{re.escape(start)}.*{re.escape(end)}", re.DOTALL)
        page.write_text(marked.sub(lambda _: f"{start}\n{text}\n{end}", content), encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{page} cannot be rewritten: {error.strerror}.") from error


def format_figure(value: float) -> str:
    """Format a number with three decimals and without the zero before the point: .717, −.026, 1.000."""
    text = f"{abs(value):.3f}"
    text = text[1:] if text.startswith("0") else text
    return f"−{text}" if value < 0 and text.strip(".0") else text


def format_interval(mean: float, low: float, high: float) -> str:
    """Format a difference with its interval: +.021 [.004 .038]."""
    sign = "+" if mean > 0 else ""
    return f"{sign}{format_figure(mean)} [{format_figure(low)} {format_figure(high)}]"


def parse_positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0.")
    return int(text)
