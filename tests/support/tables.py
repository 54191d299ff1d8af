"""Tables as questions name them, made from the text of a file, without a database."""

from retrieval.documents.extraction import extract
from retrieval.tables.known_tables import LoadedRow, LoadedTable
from retrieval.tables.table_reading import read_tables, strip_cell


def read_table(source, filename):
    """Return the only table of the file."""
    (table,) = read_tables(extract(source.encode(), filename))
    return table


def known_table(source, filename):
    text = extract(source.encode(), filename).text
    table = read_table(source, filename)
    rows = []
    for ordinal, row in enumerate(table.rows):
        cells = [strip_cell(text[start:end]) for start, end in row.cells]
        values = tuple(cell or None if value is None else value for value, cell in zip(row.values, cells, strict=True))
        rows.append(LoadedRow(ordinal, values))
    return LoadedTable(
        1, 1, table.start, table.end, table.caption, table.columns, len(rows), lambda _columns: rows, rows
    )
