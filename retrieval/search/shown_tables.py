"""Choose the table, rows and columns that a question is about, to show them below an answer."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from retrieval.exceptions import EmbeddingFailed
from retrieval.index.active_embedder import encode_names, encode_query
from retrieval.models import DocumentText, Table
from retrieval.tables.answering import describe_table_condition
from retrieval.tables.choosing import Nearness, TableChoice, choose_table_part, score_named_words
from retrieval.tables.filters import write_filter
from retrieval.tables.grammar import Condition
from retrieval.tables.known_tables import LoadedTable
from retrieval.tables.names import format_column_label, make_comparison_key
from retrieval.tables.results import ShownTable, TableDocument
from retrieval.tables.table_reading import format_cell

if TYPE_CHECKING:
    from retrieval.types import Passage

logger = logging.getLogger(__name__)

# A table is shown from this weight on. Its weight is 2 / rank of its best hit, plus `score_named_words`.
LEAST_WEIGHT = 1.5
_LONGEST_CELL = 200
_UNNAMED = re.compile(r"column \d+")


def show_table(
    question: str, candidates: Sequence[LoadedTable], passages: Sequence[Passage], language: str = ""
) -> ShownTable | None:
    """Return the table that the question is most likely about; None if no table is likely enough."""
    weighed = [
        (_score_by_passage_rank(known, passages) + score_named_words(question, known), -place, known)
        for place, known in enumerate(candidates)
    ]
    weight, _, known = max(weighed, key=lambda each: each[:2], default=(0.0, 0, None))
    if known is None or weight < LEAST_WEIGHT:
        return None
    table = Table.objects.select_related("document__collection").filter(pk=known.pk).first()
    if table is None:
        return None
    near_rows = _find_rows_of_hits(table, known, passages)
    return _load_shown_table(
        choose_table_part(question, known, bind_nearness_to_table(known), near_rows), known, table, language
    )


def _score_by_passage_rank(known: LoadedTable, passages: Sequence[Passage]) -> float:
    return next((2 / rank for rank, passage in enumerate(passages, start=1) if known.overlaps(passage)), 0.0)


def _find_rows_of_hits(table: Table, known: LoadedTable, passages: Sequence[Passage]) -> list[int]:
    holding = [passage for passage in passages if known.overlaps(passage)]
    if not holding:
        return []
    places = reduce(or_, (Q(start__lt=passage.end, end__gt=passage.start) for passage in holding))
    rows = table.rows.filter(places).order_by("ordinal").values_list("ordinal", "start", "end")
    return [
        ordinal for passage in holding for ordinal, start, end in rows if start < passage.end and passage.start < end
    ]


def bind_nearness_to_table(table: LoadedTable) -> Nearness:
    return partial(_measure_nearness, table)


def _measure_nearness(table: LoadedTable, text: str, columns: Sequence[int]) -> Sequence[float]:
    names = [format_column_label(table.columns[column].name) for column in columns]
    try:
        asked = encode_query(text)
        return [float(vector @ asked) for vector in encode_names(names)]
    except EmbeddingFailed as error:
        logger.warning("The columns of a table are shown in its own order: %s", error)
        return [0.0] * len(columns)


def _load_shown_table(choice: TableChoice, known: LoadedTable, table: Table, language: str) -> ShownTable | None:
    """Return the chosen part of the table; None if its rows are missing, because the document is being read again."""
    ordinals = [row.ordinal for row in choice.rows]
    cells = dict(table.rows.filter(ordinal__in=ordinals).values_list("ordinal", "cells"))
    text = DocumentText.objects.filter(pk=table.document_id).values_list("text", flat=True).first()
    if text is None or len(cells) != len(ordinals):
        return None
    shown = {
        column: [format_cell(text[slice(*cells[ordinal][column])]) for ordinal in ordinals] for column in choice.columns
    }
    shown = {at: texts for at, texts in shown.items() if any(texts) or not _UNNAMED.fullmatch(known.columns[at].name)}
    rows = tuple(tuple(map(_shorten_cell, row)) for row in zip(*shown.values(), strict=True))
    document = table.document
    columns = tuple(format_column_label(known.columns[column].name) for column in shown)
    sorted_by = format_column_label(known.columns[choice.order].name) if choice.order is not None else ""
    conditions = tuple(
        describe_table_condition(
            each, known, language, is_part=_is_part_of_cell(each, shown[each.column][: choice.matched])
        )
        for each in choice.conditions
    )
    with translation.override(language if language in dict(settings.LANGUAGES) else "en"):
        summary = _summarise(choice, conditions, sorted_by, table.row_count)
    return ShownTable(
        document=TableDocument(document.pk, str(document), document.url, document.collection.slug),
        caption=table.caption,
        columns=columns,
        rows=rows,
        row_count=table.row_count,
        matched=choice.matched,
        shown=len(rows),
        sorted_by=sorted_by,
        url=_build_table_url(choice, known, table),
        conditions=conditions,
        summary=summary,
    )


def _is_part_of_cell(condition: Condition, cells: Sequence[str]) -> bool:
    return condition.operator == "is" and any(make_comparison_key(cell) not in condition.values for cell in cells)


def _shorten_cell(cell: str) -> str:
    return cell if len(cell) <= _LONGEST_CELL else f"{cell[: _LONGEST_CELL - 1]}…"


def _summarise(choice: TableChoice, conditions: Sequence[str], sorted_by: str, row_count: int) -> str:
    if conditions:
        said = _("%(matched)d of %(total)d rows: %(conditions)s") % {
            "matched": choice.matched,
            "total": row_count,
            "conditions": _(" and ").join(conditions),
        }
    else:
        said = _("%(matched)d of %(total)d rows") % {"matched": len(choice.rows), "total": row_count}
    if sorted_by:
        phrase = (
            _("sorted by %(column)s, the lowest first")
            if choice.is_least
            else _("sorted by %(column)s, the highest first")
        )
        said = f"{said}, {phrase % {'column': sorted_by}}"
    if conditions and len(choice.rows) > choice.matched:
        others = _("others below them")
        said = f"{said}; {others}"
    return f"{said}."


def _build_table_url(choice: TableChoice, known: LoadedTable, table: Table) -> str:
    typed: dict[str, str] = {}
    for condition in choice.conditions:
        name = f"c{condition.column}"
        typed[name] = f"{typed.get(name, '')} {write_filter(condition, known.columns[condition.column])}".strip()
    if choice.order is not None:
        typed["sort"] = f"{'' if choice.is_least else '-'}{choice.order}"
    page = reverse("retrieval:table", args=[table.document_id, table.ordinal])
    return f"{page}?{urlencode(typed)}" if typed else page
