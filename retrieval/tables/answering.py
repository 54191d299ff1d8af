"""Answer a question from the rows of a table: compute a value, or select the matching rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from django.db.models import Q

from retrieval.media_types import CSV, JSON_LINES, TSV
from retrieval.models import Chunk, DocumentText, Table, TableRow
from retrieval.tables.choosing import Nearness, interpret_question_loosely
from retrieval.tables.computing import ComputationResult, compute_table_result, format_number
from retrieval.tables.grammar import Condition, QuestionInterpretation, interpret_question
from retrieval.tables.known_tables import LoadedTable
from retrieval.tables.matching_rows import uses_every_word
from retrieval.tables.names import format_column_name
from retrieval.tables.results import ResultCell, ResultRow, TableOperation, TableResult
from retrieval.tables.stored_tables import load_overlapping_table
from retrieval.tables.table_reading import format_cell
from retrieval.tables.units import add_unit
from retrieval.text.word_lists import read_sections

if TYPE_CHECKING:
    from retrieval.types import Passage


def answer_from_tables(
    question: str,
    candidates: Sequence[LoadedTable],
    make_nearness: Callable[[LoadedTable], Nearness],
    language: str = "",
) -> TableResult | None:
    """Return a value computed from a table, or else its matching rows; None if no table clearly fits the question.

    Only English and Dutch questions are understood. The result describes its conditions in ``language``.
    """
    shown: TableResult | None = None
    for table in candidates:
        interpretation = interpret_question(question, table)
        computed = compute_table_result(interpretation, table) if interpretation is not None else None
        if interpretation is None or computed is None:
            if shown is None:
                interpretation = interpret_question_loosely(question, table, make_nearness(table))
                has_part = bool(interpretation.conditions) or interpretation.order is not None
                if has_part and uses_every_word(question, table, interpretation):
                    shown = _build_matching_rows_result(interpretation, table, language)
            continue
        if shown is not None and computed.operation is TableOperation.ROWS:
            continue
        result = _build_table_result(interpretation, computed, table, language)
        if result is not None and result.is_computed:
            return result
        shown = shown or result
    return shown


def answer_from_only_table(
    question: str,
    candidates: Sequence[LoadedTable],
    make_nearness: Callable[[LoadedTable], Nearness],
    language: str = "",
) -> TableResult | None:
    """Return the result of the only table that clearly fits the question; None if no table or several do."""
    found = [
        result
        for table in candidates
        if (result := answer_from_tables(question, [table], make_nearness, language)) is not None
    ]
    return found[0] if len(found) == 1 else None


def find_matching_rows(
    question: str, passage: Passage, make_nearness: Callable[[LoadedTable], Nearness], language: str = ""
) -> TableResult | None:
    """Return the rows that the question selects from the table in the passage.

    The result is None if the question selects no row, or selects more than half of the rows and does not sort them.
    """
    table = load_overlapping_table(passage, question)
    if table is None:
        return None
    interpretation = interpret_question_loosely(question, table, make_nearness(table))
    rows = _build_matching_rows_result(interpretation, table, language)
    is_choice = rows is not None and (interpretation.order is not None or rows.matched * 2 <= table.row_count)
    return rows if is_choice else None


def _build_matching_rows_result(
    interpretation: QuestionInterpretation, table: LoadedTable, language: str
) -> TableResult | None:
    interpretation = replace(interpretation, operation=TableOperation.ROWS)
    computed = compute_table_result(interpretation, table)
    return _build_table_result(interpretation, computed, table, language) if computed is not None else None


# All columns are shown if there are at most this many columns, or at most this many rows.
_MOST_COLUMNS, _FEW_ROWS = 8, 5


def _build_table_result(
    interpretation: QuestionInterpretation, computed: ComputationResult, known: LoadedTable, language: str
) -> TableResult | None:
    table = Table.objects.select_related("document").filter(pk=known.pk).first()
    if table is None:
        return None
    names, targets = _choose_shown_columns(interpretation, computed, known)
    columns = list(dict.fromkeys([*names, *targets, *(condition.column for condition in interpretation.conditions)]))
    rows = _build_rows([row.ordinal for row in computed.rows], columns, known, table)
    is_markup = table.document.media_type not in (CSV, TSV, JSON_LINES)
    answers: tuple[str, ...] = (computed.value,) if computed.value else ()
    if computed.answer is not None:
        places = [columns.index(column) for column in (computed.answer, *interpretation.shown)]
        answering = rows[:1] if computed.operation is TableOperation.COMPARE else rows
        texts = [row.cells[place].text.strip() for row in answering for place in places]
        answers = tuple(dict.fromkeys(map(format_cell, texts) if is_markup else texts))
    return TableResult(
        operation=computed.operation,
        document_id=table.document_id,
        document_title=str(table.document),
        caption=table.caption,
        columns=tuple(known.columns[column].name for column in columns),
        rows=rows,
        conditions=tuple(
            describe_table_condition(condition, known, language) for condition in interpretation.conditions
        ),
        matched=computed.matched,
        total=known.data_row_count,
        value=computed.value,
        targets=tuple(columns.index(target) for target in targets),
        name_columns=len(names),
        is_markup=is_markup,
        ordinals=tuple(row.ordinal + 1 for row in computed.rows),
        answers=answers,
        is_value=computed.answer is not None and computed.answer == interpretation.order,
        is_ordered=computed.operation is TableOperation.ROWS and interpretation.order is not None,
        is_least=interpretation.is_least,
        asked=tuple(
            columns.index(column)
            for column in (interpretation.order, interpretation.answer, *interpretation.shown)
            if column in columns and column not in names
        ),
    )


def _choose_shown_columns(
    interpretation: QuestionInterpretation, computed: ComputationResult, known: LoadedTable
) -> tuple[list[int], list[int]]:
    subject = known.subject_column if known.subject_column is not None else 0
    if computed.operation is TableOperation.ROWS:
        targets = [interpretation.order] if interpretation.order is not None else []
        targets += [column for column in (interpretation.answer, *interpretation.shown) if column is not None]
        is_small = len(known.columns) <= _MOST_COLUMNS or len(computed.rows) <= _FEW_ROWS
        if not targets or len(computed.rows) == 1:
            targets = list(range(len(known.columns))) if is_small else []
        names = list(known.row_name_columns)
        return names, [target for target in dict.fromkeys(targets) if target not in names]
    ranks = computed.operation in (TableOperation.MOST, TableOperation.LEAST, TableOperation.COMPARE)
    asked = (
        interpretation.order
        if ranks or computed.operation in (TableOperation.SUM, TableOperation.MEAN)
        else interpretation.answer
    )
    if ranks or computed.operation is TableOperation.LIST:
        subject = computed.answer if computed.answer not in (None, interpretation.order) else subject
    spoken = [
        condition.column
        for condition in interpretation.conditions
        if condition.operator == "is" and not condition.is_negated and known.has_unique_cells(condition.column)
    ]
    if computed.operation is TableOperation.LOOK_UP and spoken:
        subject = spoken[0]
    asked_for = [asked, *(interpretation.shown if computed.operation is TableOperation.LOOK_UP else ())]
    return [subject], [column for column in asked_for if column is not None and column != subject]


def describe_table_condition(condition: Condition, known: LoadedTable, language: str, *, is_part: bool = False) -> str:
    """Return the condition as text, such as "category = pump", or "category contains pump" if ``is_part`` is true."""
    tables = read_sections("tables")
    words = tables.get(language, tables["en"])
    name = format_column_name(known.columns[condition.column].name)
    sign = "=" if condition.operator == "is" else condition.operator.removeprefix("year")
    if is_part and not condition.is_negated:
        sign = words["contains"]
    value = condition.values[0]
    if known.columns[condition.column].kind == "boolean":
        return f"{name} = {words['yes' if value else 'no'].split()[0]}"
    unit = "" if condition.operator.startswith("year") else known.columns[condition.column].unit
    if condition.operator.endswith("between"):
        low, high = (add_unit(format_number(float(bound or 0)), unit) for bound in condition.values)
        return f"{low} ≤ {name} ≤ {high}"
    shown = condition.shown if condition.operator == "is" else add_unit(format_number(float(value or 0)), unit)
    return f"{name} {'≠' if condition.is_negated else sign} {shown}"


def _build_rows(
    ordinals: Sequence[int], columns: Sequence[int], known: LoadedTable, table: Table
) -> tuple[ResultRow, ...]:
    stored = {row.ordinal: row for row in table.rows.filter(ordinal__in=ordinals)}
    rows = [stored[ordinal] for ordinal in ordinals if ordinal in stored]
    if not rows:
        return ()
    text = DocumentText.objects.values_list("text", flat=True).get(pk=table.document_id)
    chunks = _find_chunks(rows, table.document_id)
    return tuple(
        ResultRow(
            chunks.get(row.pk, 0),
            row.start,
            row.end,
            tuple(
                ResultCell(column.name, text[start:end], column.unit, start, end, column.kind)
                for column, (start, end) in ((known.columns[at], row.cells[at]) for at in columns)
            ),
        )
        for row in rows
    )


def _find_chunks(rows: Sequence[TableRow], document_id: int) -> dict[int, int]:
    holding = reduce(or_, (Q(start__lte=row.start, end__gt=row.start) for row in rows))
    places = Chunk.objects.filter(holding, document=document_id).order_by("start").values_list("pk", "start", "end")
    return {row.pk: pk for pk, start, end in places for row in rows if start <= row.start < end}
