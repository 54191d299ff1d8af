"""Choose the rows and columns of a table to show for a question, and the order of the rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

from retrieval.tables.grammar import Condition, QuestionInterpretation, interpret_question
from retrieval.tables.known_tables import DAY, LoadedRow, LoadedTable, is_empty
from retrieval.tables.lexicon import GRAMMAR_WORDS, GrammarWord
from retrieval.tables.linking import QuestionSpanKind, link_question_to_table
from retrieval.tables.matching_rows import interpret_row_selection
from retrieval.tables.names import YEAR, make_singular, tokenize
from retrieval.tables.results import TableOperation
from retrieval.tables.table_reading import CellValue

MOST_COLUMNS = 6
MOST_ROWS = 10
# A table of at most WHOLE_ROWS rows is shown whole. Up to MOST_FITTING matching rows are all shown.
WHOLE_ROWS = 15
MOST_FITTING = 25

_FEW = 3
_MOST_SCORED = 1_000

Nearness = Callable[[str, Sequence[int]], Sequence[float]]
"""Returns the nearness in meaning of each column to a text; higher is nearer."""


@dataclass(frozen=True, slots=True)
class TableChoice:
    """The part of a table to show for a question.

    The first ``matched`` of ``rows`` meet the ``conditions``. ``order`` is the index of the column that sorts the rows,
    or None. The highest value comes first, or the lowest if ``is_least`` is true.
    """

    columns: tuple[int, ...]
    rows: tuple[LoadedRow, ...]
    matched: int
    conditions: tuple[Condition, ...] = ()
    order: int | None = None
    is_least: bool = False


def choose_table_part(
    question: str, table: LoadedTable, nearness: Nearness, near_rows: Sequence[int] = ()
) -> TableChoice:
    """Return the part of the table to show.

    ``near_rows`` are the ordinals (from 0) of rows that a search found, best first.
    """
    is_certain = interpret_question(question, table) is not None
    interpretation = interpret_question_loosely(question, table, nearness)
    rows = [row for row in _load_rows(interpretation, table) if row.is_data_row]
    matching = rows
    conditions: list[Condition] = []
    for condition in interpretation.conditions:
        fitting = [row for row in matching if condition.is_met_by(row.values[condition.column])]
        if fitting:
            matching, conditions = fitting, [*conditions, condition]
    if interpretation.order is not None and any(
        _convert_to_number(row.values[interpretation.order]) is None and not is_empty(row.values[interpretation.order])
        for row in matching
    ):
        # A row without a number may be the highest, so the order would be wrong.
        interpretation = replace(interpretation, order=None)
    scores = _score(question, table, near_rows)
    matching = _sort_rows_by_measure(matching, scores, interpretation)
    room = WHOLE_ROWS if table.row_count <= WHOLE_ROWS else MOST_ROWS
    if conditions and interpretation.order is None and len(matching) <= MOST_FITTING:
        room = max(room, len(matching))
    shown = matching[:room]
    if interpretation.order is None and len(shown) == len(matching):
        shown.sort(key=lambda row: row.ordinal)
    if len(shown) < room and not (conditions and is_certain):
        chosen = {row.ordinal for row in matching}
        others = _sort_rows_by_measure([row for row in rows if row.ordinal not in chosen], scores, interpretation)
        if len(matching) <= _FEW:
            others.sort(key=lambda row: min(abs(row.ordinal - ordinal) for ordinal in chosen))
        shown += others[: room - len(shown)]
    return TableChoice(
        _choose_columns(question, interpretation, table, nearness),
        tuple(shown),
        len(matching),
        tuple(conditions),
        interpretation.order,
        interpretation.is_least or interpretation.operation is TableOperation.LEAST,
    )


def score_named_words(question: str, table: LoadedTable) -> float:
    """Return a number that is higher if the question names more of the table's cells, columns and caption."""
    weights = {QuestionSpanKind.VALUE: 1.0, QuestionSpanKind.COLUMN: 1.0}
    weight = 0.0
    for span in link_question_to_table(question, table, keeps_unclear_words=True) or []:
        weight += weights.get(span.kind, 0.5 if span.word is GrammarWord.ROWS else 0.0)
    return weight


def interpret_question_loosely(question: str, table: LoadedTable, nearness: Nearness) -> QuestionInterpretation:
    """Return what the question asks of the table: conditions, columns and an order, also if some words are unclear."""

    years = [token.norm for token in tokenize(question) if YEAR.fullmatch(token.norm)]

    def choose_column(columns: Sequence[int], said: str = question) -> int:
        near = dict(zip(columns, nearness(said, columns), strict=True)) if len(columns) > 1 else {}

        def key(column: int) -> tuple[int, float, int]:
            # Names of columns may shorten years to two digits, so "2000" also means the column incidents_00_14.
            words = table.list_column_words(column)
            return sum(year in words or year[-2:] in words for year in years), near.get(column, 0.0), -column

        return max(columns, key=key)

    interpretation = interpret_question(question, table)
    if interpretation is None or interpretation.operation is TableOperation.COMPARE:
        interpretation = interpret_row_selection(question, table, choose_column) or QuestionInterpretation(
            TableOperation.ROWS
        )
    if interpretation.order is None and (extreme := _find_superlative(question, table)) is not None:
        word, said = extreme
        if columns := table.rankable_columns if word in (GrammarWord.MOST, GrammarWord.LEAST) else table.day_columns:
            interpretation = replace(
                interpretation,
                order=choose_column(columns, said),
                is_least=word in (GrammarWord.LEAST, GrammarWord.EARLIEST),
            )
    return interpretation


def _find_superlative(question: str, table: LoadedTable) -> tuple[GrammarWord, str] | None:
    spans = link_question_to_table(question, table, keeps_unclear_words=True) or []
    for at, span in enumerate(spans):
        if span.word in (GrammarWord.MOST, GrammarWord.LEAST, GrammarWord.LATEST, GrammarWord.EARLIEST):
            behind = spans[at + 1 : at + 2]
            said = behind[0] if behind and behind[0].kind is QuestionSpanKind.OTHER else span
            return span.word, question[said.start : said.end]
    return None


def _load_rows(interpretation: QuestionInterpretation, table: LoadedTable) -> Iterable[LoadedRow]:
    columns = {condition.column for condition in interpretation.conditions}
    if interpretation.order is not None:
        columns.add(interpretation.order)
    return table.read_rows(columns) if columns else table.named_rows


def _sort_rows_by_measure(
    rows: Sequence[LoadedRow], scores: Mapping[int, float], interpretation: QuestionInterpretation
) -> list[LoadedRow]:
    is_least = interpretation.is_least or interpretation.operation is TableOperation.LEAST

    def key(row: LoadedRow) -> tuple[float, float, int]:
        measure = 0.0 if interpretation.order is None else _convert_to_number(row.values[interpretation.order])
        place = float("inf") if measure is None else measure if is_least else -measure
        return place, -scores.get(row.ordinal, 0.0), row.ordinal

    return sorted(rows, key=key)


def _convert_to_number(value: CellValue) -> float | None:
    if isinstance(value, str):
        return float(value.replace("-", "")) if DAY.fullmatch(value) else None
    return None if value is None else float(value)


def _score(question: str, table: LoadedTable, near_rows: Sequence[int]) -> dict[int, float]:
    scores: dict[int, float] = defaultdict(float)
    if len(table.named_rows) <= _MOST_SCORED:
        for word in {make_singular(token.norm) for token in tokenize(question) if token.norm not in GRAMMAR_WORDS}:
            found = table.rows_by_word.get(word, ())
            for ordinal in found:
                scores[ordinal] += log(1 + len(table.named_rows) / len(found))
    for place, ordinal in enumerate(near_rows):
        scores[ordinal] += 1 / (1 + place)
    return scores


def _choose_columns(
    question: str, interpretation: QuestionInterpretation, table: LoadedTable, nearness: Nearness
) -> tuple[int, ...]:
    named = [
        interpretation.order,
        interpretation.answer,
        *interpretation.shown,
        *(each.column for each in interpretation.conditions),
    ]
    chosen = list(dict.fromkeys([*table.row_name_columns, *(column for column in named if column is not None)]))
    left = [column for column in range(len(table.columns)) if column not in chosen]
    if len(chosen) + len(left) > MOST_COLUMNS:
        near = dict(zip(left, nearness(question, left), strict=True))
        left.sort(key=lambda column: (-near[column], column))
    return tuple([*chosen, *left][:MOST_COLUMNS])
