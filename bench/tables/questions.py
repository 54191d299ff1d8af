"""Compare values computed over tables with the right answers of questions."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.tables.results import ShownTable
from retrieval.tables.table_reading import read_date


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question about the CSV file ``table``. ``answers`` are all values of the right answer."""

    id: str
    question: str
    table: Path
    answers: tuple[str, ...]


@dataclass(slots=True)
class TableQuestionCounts:
    """Counts over questions about tables.

    - ``stated``: a value was computed.
    - ``right``: the computed value is right.
    - ``on_page``: the right value was computed, or is in the shown rows.
    """

    questions: int = 0
    stated: int = 0
    right: int = 0
    on_page: int = 0

    def add(self, *, stated: bool, right: bool, on_page: bool) -> None:
        self.questions += 1
        self.stated += stated
        self.right += right
        self.on_page += on_page


def read_questions(folder: Path) -> list[TableQuestion]:
    with (folder / "questions.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        TableQuestion(row["id"], row["question"], folder / "tables" / f"{row['table']}.csv", tuple(row["answers"]))
        for row in rows
    ]


def split_into_halves(questions: Iterable[TableQuestion]) -> dict[Path, str]:
    tables = sorted({question.table for question in questions})
    return {table: ("shaping", "judging")[place % 2] for place, table in enumerate(tables)}


def is_right(stated: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether both lists have the same values, in any order, as WikiTableQuestions compares them.

    Values are compared as numbers, as days, or as text without case, accents, quotes and notes in brackets at the end
    (Pasupat and Liang, 2015).
    """
    left = [_normalize(value) for value in expected]
    for value in stated:
        same = next((other for other in left if _is_same_value(_normalize(value), other)), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def has_expected_values(table: ShownTable | None, expected: Sequence[str]) -> bool:
    """Return whether the table on the page shows all ``expected`` values.

    If the question filters rows, the number of matching rows also counts as a shown value.
    """
    if table is None:
        return False
    cells = [_normalize(cell) for row in table.rows for cell in row]
    cells += [str(table.matched)] if table.conditions else []
    return all(any(_is_same_value(cell, _normalize(value)) for cell in cells) for value in expected)


def _normalize(text: str) -> str:
    text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    text = re.sub(r"[‘’´`]", "'", text)
    text = re.sub(r"[“”]", '"', text)
    text = re.sub(r"[‐‑‒–—−]", "-", text)
    before = ""
    while text != before:
        before = text
        text = re.sub(r"((?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$", "", text.strip())
        text = re.sub(r"(?<!^)( \([^)]*\))*$", "", text.strip())
        text = re.sub(r'^"([^"]*)"$', r"\1", text.strip())
    return re.sub(r"\s+", " ", text.removesuffix(".")).lower().strip()


def _is_same_value(one: str, other: str) -> bool:
    if one == other:
        return True
    number, expected = _parse_number(one), _parse_number(other)
    if number is not None and expected is not None:
        return abs(number - expected) < 1e-6
    day = read_date(one)
    return day is not None and day == read_date(other)


def _parse_number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
