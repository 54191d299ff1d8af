"""Store the tables of documents, and load those that a question may be about."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Greatest, Least

from core.database import fetch_rows
from core.recent import LruCache
from retrieval.models import Chunk, Document, DocumentText, Table
from retrieval.rights.search_filters import filter_by_document
from retrieval.tables.known_tables import LoadedRow, LoadedTable
from retrieval.tables.lexicon import CONCEPTS, GRAMMAR_WORDS
from retrieval.tables.names import QuestionToken, list_terms, make_singular, tokenize
from retrieval.tables.table_reading import LONGEST_LABEL, CellValue, Column, ParsedTable, strip_cell
from retrieval.types import Passage, SearchFilters


def replace_tables(document: Document, tables: Sequence[ParsedTable]) -> None:
    """Replace the document's stored tables by ``tables``. Must run in a transaction."""
    Table.objects.filter(document=document).delete()
    written = Table.objects.bulk_create(
        Table(
            document=document,
            ordinal=ordinal,
            start=table.start,
            end=table.end,
            caption=table.caption,
            columns=[[column.name, column.kind, column.unit] for column in table.columns],
            row_count=len(table.rows),
        )
        for ordinal, table in enumerate(tables)
    )
    # COPY takes a fifth of the time of INSERT.
    with (
        connection.cursor() as cursor,
        cursor.copy(
            'COPY retrieval_tablerow (table_id, ordinal, start, "end", "values", cells, labels) FROM STDIN'
        ) as copy,
    ):
        for stored, table in zip(written, tables, strict=True):
            for ordinal, row in enumerate(table.rows):
                values, cells = json.dumps(row.values), json.dumps(row.cells)
                copy.write_row((stored.pk, ordinal, row.start, row.end, values, cells, list(row.labels)))


def copy_document_tables(copy_ids: Mapping[int, int]) -> None:
    """Copy tables between documents: ``copy_ids`` maps source ids to target ids. Must run in a transaction."""
    Table.objects.filter(document__in=copy_ids.values()).delete()
    parameters = {"others": list(copy_ids), "own": list(copy_ids.values())}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO retrieval_table (document_id, ordinal, start, "end", caption, columns, row_count)
            SELECT pair.own, ordinal, start, "end", caption, columns, row_count
            FROM unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)
            JOIN retrieval_table AS copied ON copied.document_id = pair.other
            """,
            parameters,
        )
        cursor.execute(
            """
            INSERT INTO retrieval_tablerow (table_id, ordinal, start, "end", "values", cells, labels)
            SELECT own.id, line.ordinal, line.start, line."end", line."values", line.cells, line.labels
            FROM unnest(%(others)s::bigint[], %(own)s::bigint[]) AS pair(other, own)
            JOIN retrieval_table AS copied ON copied.document_id = pair.other
            JOIN retrieval_table AS own ON own.document_id = pair.own AND own.ordinal = copied.ordinal
            JOIN retrieval_tablerow AS line ON line.table_id = copied.id
            """,
            parameters,
        )


MOST_TABLES = 12
_MOST_OF_DOCUMENT = 6
_DOCUMENTS = 3
_LONGEST_SPAN = 8
# A table with more rows is loaded in parts. The first part has its first rows, and rows with words of the question.
_MOST_ROWS_READ = 5_000
_MOST_ROWS_NAMED = 200
_ROWS_OF_PAGE = 2_000
# The last TABLES_KEPT tables are cached, but none with more than _MOST_ROWS_KEPT rows (over 1 MiB).
TABLES_KEPT = 64
_MOST_ROWS_KEPT = 1_000
# The key is the table's id and PostgreSQL's xmin of its row, which changes when the row is written.
_kept: LruCache[tuple[int, str], LoadedTable] = LruCache(TABLES_KEPT)


def find_candidate_tables(question: str, filters: SearchFilters, hits: Sequence[Passage]) -> list[LoadedTable]:
    """Return the tables that the question may be about: first tables in the hits, then others in their documents."""
    near = _filter_visible_tables(filters).filter(document__in={hit.document_id for hit in hits})
    tables: list[Any] = list(near.annotate(edition=RawSQL("retrieval_table.xmin::text", [])))
    holding = [
        table
        for hit in hits
        for table in tables
        if table.document_id == hit.document_id and table.start < hit.end and hit.start < table.end
    ]
    beside = [
        table
        for hit in hits[:_DOCUMENTS]
        for table in [table for table in tables if table.document_id == hit.document_id][:_MOST_OF_DOCUMENT]
    ]
    labels = _list_candidate_labels(tokenize(question))
    return [
        _load_table_contents(table, table.edition, labels)
        for table in list(dict.fromkeys([*holding, *beside]))[:MOST_TABLES]
    ]


def find_tables_of_chunks(question: str, filters: SearchFilters, chunk_ids: Sequence[int]) -> list[LoadedTable]:
    """Return the tables with at least one of these chunks, in the order of the chunks, at most MOST_TABLES."""
    places = {
        pk: (document, start, end)
        for pk, document, start, end in Chunk.objects.filter(pk__in=chunk_ids)
        .order_by()
        .values_list("pk", "document_id", "start", "end")
    }
    near = _filter_visible_tables(filters).filter(document__in={document for document, _, _ in places.values()})
    tables: list[Any] = list(near.annotate(edition=RawSQL("retrieval_table.xmin::text", [])))
    found = [
        table
        for document, start, end in (places[pk] for pk in chunk_ids if pk in places)
        for table in tables
        if table.document_id == document and table.start < end and start < table.end
    ]
    labels = _list_candidate_labels(tokenize(question))
    return [_load_table_contents(table, table.edition, labels) for table in list(dict.fromkeys(found))[:MOST_TABLES]]


def load_overlapping_table(passage: Passage, question: str) -> LoadedTable | None:
    """Return the table that has most characters in the passage; None if the passage has no table."""
    tables = Table.objects.filter(document=passage.document_id, start__lt=passage.end, end__gt=passage.start)
    inside = Least(F("end"), passage.end) - Greatest(F("start"), passage.start)
    found = tables.annotate(edition=RawSQL("retrieval_table.xmin::text", [])).order_by(-inside).first()
    return (
        None
        if found is None
        else _load_table_contents(found, found.edition, _list_candidate_labels(tokenize(question)))
    )


def list_table_names(
    filters: SearchFilters, passages: Sequence[Passage], question: str, most: int
) -> list[tuple[str, list[str]]]:
    """Return (caption, column names) of each table in the passages.

    Other tables of the passages' documents are added if the question names them. The list has at most ``most`` tables.
    """
    asked = _find_content_words(question)
    tables = _filter_visible_tables(filters).filter(document__in={passage.document_id for passage in passages})
    named = []
    for table in tables.order_by("document", "ordinal"):
        columns = [column[0] for column in table.columns]
        is_found = any(
            each.document_id == table.document_id and each.start < table.end and each.end > table.start
            for each in passages
        )
        if is_found or not asked.isdisjoint(list_terms(table.caption, columns)):
            named.append((table.caption, columns))
    return named[:most]


def _filter_visible_tables(filters: SearchFilters) -> QuerySet[Table]:
    return filter_by_document(Table.objects.filter(document__collection__in=filters.collections), filters)


def _find_content_words(question: str) -> set[str]:
    wanted = {token.norm for token in tokenize(question)} - GRAMMAR_WORDS
    for concept in CONCEPTS:
        if wanted & concept.phrases.keys():
            wanted |= concept.columns
    return set(map(make_singular, wanted))


def _list_candidate_labels(tokens: Sequence[QuestionToken]) -> list[str]:
    labels = {
        "".join([*(token.norm for token in tokens[first : last - 1]), end])
        for first in range(len(tokens))
        for last in range(first + 1, min(first + _LONGEST_SPAN, len(tokens)) + 1)
        if last > first + 1 or (tokens[first].norm not in GRAMMAR_WORDS and len(tokens[first].norm) > 1)
        for end in (tokens[last - 1].norm, make_singular(tokens[last - 1].norm))
    }
    return sorted(label for label in labels if len(label) <= LONGEST_LABEL)


def load_stored_table(table: Table) -> LoadedTable:
    found = Table.objects.annotate(edition=RawSQL("retrieval_table.xmin::text", [])).get(pk=table.pk)
    return _load_table_contents(found, found.edition, ())


def _load_table_contents(table: Table, edition: str, labels: Sequence[str]) -> LoadedTable:
    known = _kept.get((table.pk, edition))
    if known is not None:
        return known
    place = (table.pk, table.document_id, table.start, table.end)
    columns = tuple(Column(*column) for column in table.columns)
    if table.row_count > _MOST_ROWS_READ:
        chosen = "(ordinal < 100 OR labels && %s::text[])"
        named = tuple(_read_rows(table, columns, None, chosen, [list(labels)], _MOST_ROWS_NAMED))
        read_rows = functools.partial(_read_rows_in_pages, table, columns)
        return LoadedTable(*place, table.caption, columns, table.row_count, read_rows, named, is_long=True)
    rows = tuple(_read_rows(table, columns))
    known = LoadedTable(*place, table.caption, columns, table.row_count, lambda _columns: rows, rows)
    if table.row_count <= _MOST_ROWS_KEPT:
        _kept.put((table.pk, edition), known)
    return known


def _read_rows_in_pages(table: Table, columns: Sequence[Column], wanted: Iterable[int]) -> Iterator[LoadedRow]:
    needed = sorted({0, 1, *wanted})
    for first in range(0, table.row_count, _ROWS_OF_PAGE):
        page = [first, first + _ROWS_OF_PAGE]
        yield from _read_rows(table, columns, needed, "ordinal >= %s AND ordinal < %s", page)


# Reading one JSON text for each row takes a fifth of the time of reading model fields.
_ROWS = """
SELECT ordinal, jsonb_build_array({values}, {cells})::text FROM retrieval_tablerow
WHERE table_id = %s AND {chosen} ORDER BY ordinal LIMIT %s
"""


def _read_rows(
    table: Table,
    columns: Sequence[Column],
    needed: Sequence[int] | None = None,
    chosen: str = "TRUE",
    parameters: Sequence[object] = (),
    most: int = _MOST_ROWS_READ,
) -> Iterator[LoadedRow]:
    selected = {"values": '"values"', "cells": "cells"}
    if needed is not None:
        selected = {
            name: f"jsonb_build_array({', '.join(f'{column} -> {at}' for at in needed)})"
            for name, column in selected.items()
        }
    text = ""
    for ordinal, found in fetch_rows(_ROWS.format(**selected, chosen=chosen), [table.pk, *parameters, most]):
        values: list[CellValue] = [None] * len(columns)
        for at, value, (start, end) in zip(needed or range(len(columns)), *json.loads(found), strict=True):
            values[at] = value
            if value is None and start < end and columns[at].kind != "text":
                text = text or DocumentText.objects.values_list("text", flat=True).get(pk=table.document_id)
                values[at] = strip_cell(text[start:end])
        yield LoadedRow(ordinal, tuple(values))
