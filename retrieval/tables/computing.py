"""An interpretation, computed over all rows of its table by PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Avg, DateField, FloatField, Max, Min, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from retrieval.ingest.formats.media_types import CSV, TSV
from retrieval.models import Chunk, DocumentText, Table, TableRow
from retrieval.tables.interpretation.conditions import Condition
from retrieval.tables.interpretation.links import KnownTable, ValueLink
from retrieval.tables.interpretation.operations import Interpretation
from retrieval.tables.types import Operation, ResultCell, ResultRow, TableResult
from retrieval.tables.words import show_name

MOST_ROWS_SHOWN = 50
# Of the cells that a condition allows, those that are named.
_MOST_TEXTS = 3
_OPERATORS = {"=": "", "<": "__lt", "<=": "__lte", ">": "__gt", ">=": "__gte"}


def compute(interpretation: Interpretation, known: KnownTable, language: str = "") -> TableResult | None:
    """None when no row fits, but for a count."""
    table = Table.objects.select_related("document").filter(pk=known.pk).first()
    if table is None:
        return None  # its document is read again at this moment
    rows = table.rows.all()
    for condition in interpretation.conditions:
        rows = _meet(rows, condition, known)
    if interpretation.entities:
        named = (Q(**{f"values__{entity.column}__in": entity.texts}) for entity in interpretation.entities)
        rows = rows.filter(reduce(or_, named))
    described = [*interpretation.conditions]
    if len(interpretation.entities) == 1 and len(interpretation.entities[0].texts) > 1:
        described += [Condition(entity.column, "in", entity.texts, entity.words) for entity in interpretation.entities]
    operation, value = interpretation.operation, ""
    matched = rows.count()
    if operation in (Operation.LEAST, Operation.MOST) and interpretation.order is not None:
        rows = _extremes(rows, interpretation.order, operation, known)
    elif operation in (Operation.SUM, Operation.MEAN):
        figure = _figure(interpretation.targets[0], known)
        rows = rows.annotate(figure=figure).filter(figure__isnull=False)
        matched = rows.count()
        computed = rows.aggregate(computed=Sum(figure) if operation is Operation.SUM else Avg(figure))["computed"]
        value = "" if computed is None else format_number(computed)
    elif operation is Operation.COUNT:
        value = str(matched)
    if operation not in (Operation.LEAST, Operation.MOST):
        rows = rows.order_by("ordinal")
    shown = list(rows[:MOST_ROWS_SHOWN])
    shown.sort(key=lambda row: _place_among(interpretation.entities, row))
    if not shown and operation is not Operation.COUNT:
        return None
    columns = _columns_shown(interpretation, known)
    return TableResult(
        operation=operation,
        document_id=table.document_id,
        document_title=str(table.document),
        caption=table.caption,
        columns=tuple(known.columns[column].name for column in columns),
        rows=_result_rows(shown, columns, known, table.document_id),
        conditions=tuple(describe(condition, known, language) for condition in described),
        matched=matched,
        total=table.row_count,
        value=value,
        confidence=interpretation.confidence,
        targets=tuple(dict.fromkeys(columns.index(target) for target in interpretation.targets)),
        name_columns=len(known.shown_names),
        is_markup=table.document.media_type not in (CSV, TSV),
    )


def _place_among(entities: Sequence[ValueLink], row: TableRow) -> int:
    """Which of the entities the row is, so that they are shown as they are named."""
    named = (place for place, entity in enumerate(entities) if row.values[entity.column] in entity.texts)
    return next(named, len(entities))


def format_number(number: float) -> str:
    return f"{number:.0f}" if number == round(number) else f"{number:.4f}".rstrip("0").rstrip(".")


def describe(condition: Condition, known: KnownTable, language: str) -> str:
    name, value = show_name(known.columns[condition.column].name), condition.values[0]
    if condition.words and len(condition.values) > 1:
        return f"{name} {'bevat' if language == 'nl' else 'contains'} {condition.words}"
    if condition.operator == "in":
        texts = [str(text) for text in condition.values[:_MOST_TEXTS]]
        return f"{name} = {' / '.join(texts)}{' / …' if len(condition.values) > _MOST_TEXTS else ''}"
    if isinstance(value, bool):
        yes, no = ("ja", "nee") if language == "nl" else ("yes", "no")
        return f"{name} = {yes if value else no}"
    return f"{name} {condition.operator} {value if isinstance(value, str) else format_number(value or 0)}"


def _meet(rows: QuerySet[TableRow], condition: Condition, known: KnownTable) -> QuerySet[TableRow]:
    if condition.operator == "in":
        return rows.filter(**{f"values__{condition.column}__in": condition.values})
    if known.columns[condition.column].kind == "boolean":
        return rows.filter(**{f"values__{condition.column}": condition.values[0]})
    alias = f"value_{condition.column}"
    rows = rows.annotate(**{alias: _figure(condition.column, known)})
    return rows.filter(**{alias + _OPERATORS[condition.operator]: condition.values[0]})


def _figure(column: int, known: KnownTable) -> Cast:
    # As JSON, null and text would compare with numbers too; as text cast to the column's kind, null stays unknown.
    output: Any = DateField() if known.columns[column].kind == "date" else FloatField()
    return Cast(KeyTextTransform(column, "values"), output)


def _extremes(rows: QuerySet[TableRow], column: int, operation: Operation, known: KnownTable) -> QuerySet[TableRow]:
    """The rows that have the least or the most: more than one when they are equal."""
    figure = _figure(column, known)
    best = rows.aggregate(best=Min(figure) if operation is Operation.LEAST else Max(figure))["best"]
    return rows.annotate(figure=figure).filter(figure=best).order_by("ordinal")


def _columns_shown(interpretation: Interpretation, known: KnownTable) -> list[int]:
    conditions = [condition.column for condition in interpretation.conditions]
    named = [entity.column for entity in interpretation.entities]
    return list(dict.fromkeys([*known.shown_names, *named, *interpretation.targets, *conditions]))


def _result_rows(
    rows: Sequence[TableRow], columns: Sequence[int], known: KnownTable, document_id: int
) -> tuple[ResultRow, ...]:
    if not rows:
        return ()
    text = DocumentText.objects.values_list("text", flat=True).get(pk=document_id)
    chunks = _chunks_of(rows, document_id)
    results = []
    for row in rows:
        cells = []
        for at in columns:
            start, end = row.cells[at]
            cells.append(
                ResultCell(
                    known.columns[at].name, text[start:end], known.columns[at].unit, start, end, known.columns[at].kind
                )
            )
        results.append(ResultRow(chunks.get(row.pk, 0), row.start, row.end, tuple(cells)))
    return tuple(results)


def _chunks_of(rows: Sequence[TableRow], document_id: int) -> dict[int, int]:
    """The passage that each row begins in."""
    holding = reduce(or_, (Q(start__lte=row.start, end__gt=row.start) for row in rows))
    places = Chunk.objects.filter(holding, document=document_id).order_by("start").values_list("pk", "start", "end")
    return {row.pk: pk for pk, start, end in places for row in rows if start <= row.start < end}
