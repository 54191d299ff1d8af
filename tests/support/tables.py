"""Tables as questions name them, made from the text of a file, without a database."""

from __future__ import annotations

from collections import Counter

from retrieval.tables.interpretation.links import KnownTable

from retrieval.ingest.extraction import extract
from retrieval.tables.reading import ReadTable, read_tables


def read_table(source: str, filename: str) -> ReadTable:
    """The only table of the file."""
    (table,) = read_tables(extract(source.encode(), filename))
    return table


def known_table(source: str, filename: str) -> KnownTable:
    table = read_table(source, filename)
    texts = {
        at: Counter(str(row.values[at]) for row in table.rows if row.values[at])
        for at, column in enumerate(table.columns)
        if column.kind == "text"
    }
    return KnownTable(1, table.caption, table.columns, len(table.rows), texts)
