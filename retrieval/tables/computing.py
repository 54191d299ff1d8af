"""Compute the answer to a question from all rows of a table, after the question was interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.tables.grammar import Condition, QuestionInterpretation
from retrieval.tables.known_tables import LoadedRow, LoadedTable, is_empty, make_cell_lookup_keys
from retrieval.tables.results import TableOperation
from retrieval.tables.table_reading import CellValue

MOST_ROWS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class ComputationResult:
    """The result of a computation over a table.

    ``value`` is a count, a sum or a mean, or empty. ``matched`` counts the matching rows, ``rows`` are those to show.
    ``answer`` is the index of the column with the answer, or None.
    """

    operation: TableOperation
    value: str
    rows: tuple[LoadedRow, ...]
    matched: int
    answer: int | None = None


def compute_table_result(interpretation: QuestionInterpretation, table: LoadedTable) -> ComputationResult | None:
    """Return the result; None if no row matches, or if a needed cell cannot be compared."""
    if interpretation.operation is TableOperation.COMPARE:
        return _compare_two_rows(interpretation, table)
    rows = _find_matching_rows(interpretation, interpretation.conditions, table)
    if rows is None:
        return None
    match interpretation.operation:
        case TableOperation.COUNT:
            return _count_matching_rows(interpretation, rows, table)
        case TableOperation.SUM | TableOperation.MEAN:
            return _compute_sum_or_mean(interpretation, rows)
        case TableOperation.MOST | TableOperation.LEAST:
            return _find_extreme_row(interpretation, rows)
        case TableOperation.LOOK_UP | TableOperation.LIST if rows:
            return _look_up_answer(interpretation, rows)
    if interpretation.order is not None:
        numbers = _read_numbers(rows, interpretation.order)
        if numbers is None:
            return None
        rows = [row for _, row in sorted(numbers, key=lambda pair: pair[0], reverse=not interpretation.is_least)]
    return _build_rows_result(rows)


def _find_matching_rows(
    interpretation: QuestionInterpretation, conditions: Sequence[Condition], table: LoadedTable
) -> list[LoadedRow] | None:
    """Return the rows that meet the conditions.

    If a cell cannot be compared, TableOperation.ROWS leaves out its row. Other operations would compute a wrong value,
    so the result is None.
    """
    columns = {
        column for column in (interpretation.answer, interpretation.order, *interpretation.shown) if column is not None
    }
    matching = []
    for row in table.read_rows(columns | {condition.column for condition in conditions}):
        if not row.is_data_row:
            continue
        held = [condition.is_met_by(row.values[condition.column]) for condition in conditions]
        if False in held:
            continue
        if None in held:
            if interpretation.operation is TableOperation.ROWS:
                continue
            return None
        matching.append(row)
    return matching


def _build_rows_result(rows: Sequence[LoadedRow]) -> ComputationResult | None:
    return ComputationResult(TableOperation.ROWS, "", tuple(rows[:MOST_ROWS_SHOWN]), len(rows)) if rows else None


def _count_matching_rows(
    interpretation: QuestionInterpretation, rows: Sequence[LoadedRow], table: LoadedTable
) -> ComputationResult | None:
    """Return the count of rows, or of different cells in the counted column; None without rows.

    The rows are returned instead if the count is uncertain.
    """
    if not rows:
        return None
    count = len(rows)
    if interpretation.answer is not None:
        cells = [row.values[interpretation.answer] for row in rows]
        if any(is_empty(cell) or (isinstance(cell, str) and cell[:1].isdigit()) for cell in cells):
            return _build_rows_result(rows)
        if interpretation.answer != table.subject_column and any(
            isinstance(cell, str) and len(make_cell_lookup_keys(cell)) > 2 for cell in cells
        ):
            return _build_rows_result(rows)
        different = len({" ".join(cell.casefold().split()) if isinstance(cell, str) else cell for cell in cells})
        if different != count and not interpretation.is_distinct:
            return _build_rows_result(rows)
        count = different
    return ComputationResult(TableOperation.COUNT, str(count), tuple(rows[:MOST_ROWS_SHOWN]), len(rows))


def _read_numbers(rows: Sequence[LoadedRow], column: int) -> list[tuple[float, LoadedRow]] | None:
    found = []
    for row in rows:
        value: CellValue = row.values[column]
        if is_empty(value):
            continue
        if not isinstance(value, float | int) or isinstance(value, bool):
            return None
        found.append((float(value), row))
    return found


def _compute_sum_or_mean(interpretation: QuestionInterpretation, rows: Sequence[LoadedRow]) -> ComputationResult | None:
    numbers = None if interpretation.order is None else _read_numbers(rows, interpretation.order)
    if not numbers:
        return None
    total = sum(number for number, _ in numbers)
    value = total if interpretation.operation is TableOperation.SUM else total / len(numbers)
    shown = tuple(row for _, row in numbers[:MOST_ROWS_SHOWN])
    return ComputationResult(interpretation.operation, format_number(value), shown, len(numbers))


def _find_extreme_row(interpretation: QuestionInterpretation, rows: Sequence[LoadedRow]) -> ComputationResult | None:
    numbers = None if interpretation.order is None else _read_numbers(rows, interpretation.order)
    if not numbers or interpretation.answer is None:
        return None
    if interpretation.operation is TableOperation.LEAST and len(numbers) < len(rows):
        return None  # An empty cell may mean zero, which could be the lowest number.
    ends = max if interpretation.operation is TableOperation.MOST else min
    end = ends(number for number, _ in numbers)
    best = [row for number, row in numbers if number == end]
    if interpretation.answer != interpretation.order and len(best) > 1:
        return None
    if is_empty(best[0].values[interpretation.answer]):
        return None
    return ComputationResult(interpretation.operation, "", (best[0],), len(numbers), interpretation.answer)


def _compare_two_rows(interpretation: QuestionInterpretation, table: LoadedTable) -> ComputationResult | None:
    found = [_find_matching_rows(interpretation, [condition], table) for condition in interpretation.conditions]
    if interpretation.order is None or any(rows is None or len(rows) != 1 for rows in found):
        return None
    both = [row for rows in found for row in rows or ()]
    numbers = _read_numbers(both, interpretation.order)
    if numbers is None or len(numbers) != 2 or both[0] == both[1]:
        return None
    if numbers[0][0] == numbers[1][0]:
        return _build_rows_result(both)
    numbers.sort(key=lambda pair: pair[0], reverse=not interpretation.is_least)
    return ComputationResult(TableOperation.COMPARE, "", tuple(row for _, row in numbers), 2, interpretation.answer)


def _look_up_answer(interpretation: QuestionInterpretation, rows: Sequence[LoadedRow]) -> ComputationResult | None:
    answer = interpretation.answer
    if answer is None or any(
        is_empty(row.values[column]) for row in rows for column in (answer, *interpretation.shown)
    ):
        return _build_rows_result(rows)
    if interpretation.shown and len(rows) > 1:
        return _build_rows_result(rows)
    different = len({row.values[answer] for row in rows})
    if different > 1 and (interpretation.operation is not TableOperation.LIST or different < len(rows)):
        return _build_rows_result(rows)
    if different > MOST_ROWS_SHOWN:
        return _build_rows_result(rows)
    return ComputationResult(
        interpretation.operation if different > 1 else TableOperation.LOOK_UP,
        "",
        tuple(rows[:MOST_ROWS_SHOWN]),
        len(rows),
        answer,
    )


def format_number(number: float) -> str:
    return f"{number:.0f}" if number == round(number) else f"{number:.4f}".rstrip("0").rstrip(".")
