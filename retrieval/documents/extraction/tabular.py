"""Convert CSV, TSV and JSON lines. Each row becomes a line with the names of its columns."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from typing import Any

from retrieval.documents.extraction.cell_tables import (
    HEAD,
    Cell,
    CellTable,
    drop_empty_columns,
    read_table,
    write_table,
)
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.source_code import extract_source
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.media_types import TSV
from retrieval.text.extracted import ExtractedText, ExtractionLimits

_MOST_FIELDS = 100
_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_EXCEL_HINT = re.compile(r"\Asep=(.)\n", re.I)
# A quotation mark after a backslash, within a cell.
_ESCAPED = re.compile(r'\\"(?![,;\t|\n]|\Z)')
# Programs write ="00123" so that Excel keeps the zeros.
_FORMULA_TEXT = re.compile(r'\A="([^"]*)"\Z')
_MOST_TABLES = 20
_VALUE = re.compile(r"[-+€$£]?\s*+[\d.,]++\s*+[%€]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*|[^\s@]++@\S++|https?://.*")


def extract_table(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    source = decode(data, filename)
    hint = _EXCEL_HINT.match(source)
    source = source[hint.end() :] if hint else source
    delimiter = hint[1] if hint else "\t" if media_type == TSV else sniff_delimiter(source)
    if _ESCAPED.search(source):
        source = source.replace('\\"', '""')
    lines = source.splitlines(keepends=True)
    odd = [at for at, line in enumerate(lines) if line.count('"') % 2]
    if len(odd) == 1:
        # After an unclosed quotation mark, the CSV reader would take all lines as one cell.
        lines[odd[0]] = re.sub(r'(?:^|(?<=[,;\t|]))"', '""', lines[odd[0]])
    try:
        rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error as error:
        raise DocumentRejected(
            f"{filename} is no well-formed table ({error}): check its quotation marks and upload it again."
        ) from error
    rows = _split_quoted_lines(rows)
    rows = [[_FORMULA_TEXT.sub(r"\1", cell) for cell in row] for row in rows]
    writer = MarkdownWriter(filename, limits)
    for table in _find_tables(rows):
        write_table(table, writer)
    return writer.build_extracted_text(holds_records=True)


def _split_quoted_lines(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table whose lines are each in quotation marks: it was written as the cells of another one.

    Quoted sentences are no such lines, because they have different numbers of commas.
    """
    lines = [cell for row in rows for cell in row]
    if any(len(row) > 1 for row in rows) or any("\n" in line for line in lines):
        return rows
    split = list(csv.reader(lines, delimiter=sniff_delimiter("\n".join(lines)), skipinitialspace=True))
    widths = {len(row) for row in split}
    return split if len(widths) == 1 and widths != {1} else rows


def _find_tables(rows: list[list[str]]) -> list[CellTable]:
    parts: list[list[list[str]]] = [[]]
    for row in rows:
        if any(cell.strip() for cell in row):
            parts[-1].append(row)
        elif sum(len(list(filter(None, line))) > 1 for line in parts[-1]) > 2:
            parts.append([])
    tables = [_read_table_part(part) for part in parts if part]
    is_one = len(tables) > _MOST_TABLES or any(table.has_no_column_names or not table.body for table in tables[1:])
    return [_read_table_part([row for part in parts for row in part])] if is_one else tables


def _read_table_part(rows: list[list[str]]) -> CellTable:
    most = max(2, HEAD * 100 // max([100, *map(len, rows[:HEAD])]))
    head = [
        [Cell(text, bool(_VALUE.fullmatch(text))) for text in (" ".join(cell.split()) for cell in row)]
        for row in rows[:most]
    ]
    return read_table(*drop_empty_columns(head, rows))


def extract_records(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """Return lines of JSON objects as rows with a column for each field; other content unchanged."""
    try:
        records = [json.loads(line) for line in decode(data, filename).split("\n") if line.strip()]
    except (ValueError, RecursionError):
        records = []
    are_objects = all(isinstance(record, dict) for record in records)
    fields = dict.fromkeys(field for record in records for field in record) if are_objects else {}
    if not 0 < len(fields) <= _MOST_FIELDS:
        return extract_source(data, filename, media_type, limits)
    rows = [[_show_field(record.get(field)) for field in fields] for record in records]
    writer = MarkdownWriter(filename, limits)
    writer.add_rows(
        [" ".join(make_canonical_text(field).split()) for field in fields], [row for row in rows if any(row)]
    )
    return writer.build_extracted_text(holds_records=True)


def _show_field(value: Any) -> str:
    words = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
    return make_canonical_text(words).strip()


def sniff_delimiter(source: str) -> str:
    """Return the delimiter that splits most of the first lines into equally many fields; a comma if none does."""
    sample = source.splitlines(keepends=True)[:_SAMPLE_LINES]

    def measure_width_agreement(delimiter: str) -> tuple[float, int]:
        try:
            widths = Counter(len(row) for row in csv.reader(sample, delimiter=delimiter, skipinitialspace=True) if row)
        except csv.Error:
            return 0.0, 0
        width, count = max(widths.items(), key=lambda pair: (pair[1], pair[0]), default=(0, 0))
        return (count / sum(widths.values()), width) if width > 1 else (0.0, 0)

    return max(_DELIMITERS, key=measure_width_agreement)
