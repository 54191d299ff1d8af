"""The only module that writes tables: they appear with the passages of their document, in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.db import connection

from retrieval.models import Document, Table
from retrieval.tables.table_reading import ReadTable


def replace_tables(document: Document, tables: Sequence[ReadTable]) -> None:
    """Make ``tables`` the document's tables. Must run inside a transaction."""
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
            terms=list(table.terms),
        )
        for ordinal, table in enumerate(tables)
    )
    # COPY takes a fifth of the time of INSERT, and tables of 100,000 rows are read.
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


def copy_tables(counterparts: Mapping[int, int]) -> None:
    """Give each document (a value) the tables of its counterpart (the key). Must run inside a transaction."""
    Table.objects.filter(document__in=counterparts.values()).delete()
    parameters = {"others": list(counterparts), "own": list(counterparts.values())}
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO retrieval_table (document_id, ordinal, start, "end", caption, columns, row_count, terms)
            SELECT pair.own, ordinal, start, "end", caption, columns, row_count, terms
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
