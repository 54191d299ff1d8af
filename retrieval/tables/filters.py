"""Convert between conditions and the filters that users type above a table's columns, such as ``>=5 <9``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.tables.grammar import Condition
from retrieval.tables.known_tables import LoadedRow, LoadedTable, is_empty
from retrieval.tables.names import YEAR, fold_text, make_comparison_key
from retrieval.tables.table_reading import CellValue, Column, read_boolean, read_quantity

_BOUND = re.compile(r"(<=|>=|!=|<|>|=)?\s*([^<>=!]+)")


def parse_filter(typed: str, at: int, column: Column) -> list[Condition]:
    """Return the conditions that were ``typed`` as the filter of the column with index ``at``. Raises: ValueError."""
    typed = typed.strip()
    if column.kind == "number" or (column.kind == "date" and re.fullmatch(r"[<>=!\s\d]*", typed)):
        return [_parse_bound(sign, number, at, column) for sign, number in _split_bounds(typed)]
    if column.kind == "boolean" and typed:
        value = read_boolean(typed)
        if value is None:
            raise ValueError(typed)
        return [Condition(at, "=", (float(value),))]
    sign, words = (
        ("=", typed[1:]) if typed.startswith("=") else ("!=", typed[2:]) if typed.startswith("!=") else ("", typed)
    )
    if not words.strip():
        return []
    if not sign:
        return [Condition(at, "contains", (fold_text(words.strip()),), words.strip())]
    return [
        Condition(at, "is", tuple(make_comparison_key(each) for each in words.split("|")), words.strip(), sign == "!=")
    ]


def write_filter(condition: Condition, column: Column) -> str:
    if condition.operator == "contains":
        return condition.shown
    if condition.operator == "is":
        return f"{'!=' if condition.is_negated else '='}{condition.shown.replace(' / ', '|')}"
    value = condition.values[0]
    if condition.operator.endswith("between"):
        return " ".join(
            f"{sign}{float(bound or 0):g}" for sign, bound in zip((">=", "<="), condition.values, strict=True)
        )
    if column.kind == "boolean":
        return "yes" if value else "no"
    sign = "!=" if condition.is_negated else condition.operator.removeprefix("year")
    return f"{sign}{float(value or 0):g}"


def sort_rows(rows: Sequence[LoadedRow], at: int, *, descending: bool) -> list[LoadedRow]:
    """Return the rows sorted by the column with index ``at``. Words follow numbers. Empty cells are always last."""
    filled = [row for row in rows if not is_empty(row.values[at])]
    return [
        *sorted(filled, key=lambda row: _sort_key(row.values[at]), reverse=descending),
        *(row for row in rows if is_empty(row.values[at])),
    ]


def filter_rows(table: LoadedTable, conditions: Sequence[Condition], order: int | None) -> list[LoadedRow]:
    columns = {condition.column for condition in conditions} | ({order} if order is not None else set())
    return [
        row
        for row in table.read_rows(columns)
        if all(condition.is_met_by(row.values[condition.column]) for condition in conditions)
    ]


def _sort_key(value: CellValue) -> tuple[int, float, str]:
    return (1, 0.0, fold_text(value)) if isinstance(value, str) else (0, float(value or 0), "")


def _split_bounds(typed: str) -> list[tuple[str, str]]:
    bounds = _BOUND.findall(typed)
    if typed and "".join(map("".join, bounds)).replace(" ", "") != typed.replace(" ", ""):
        raise ValueError(typed)
    return bounds


def _parse_bound(sign: str, number: str, at: int, column: Column) -> Condition:
    quantity = read_quantity(number)
    if quantity is None:
        raise ValueError(number)
    is_year = column.kind == "date"
    if is_year and not YEAR.fullmatch(number.strip()):
        raise ValueError(number)
    operator = f"{'year' if is_year else ''}{'=' if sign in ('', '!=') else sign}"
    return Condition(at, operator, (quantity.value,), number.strip(), sign == "!=")
