"""Sheets of cells as text: each table's rows as lines that name their columns, what stands around them as paragraphs.

XLSX and XLS are read here, ODS in :mod:`retrieval.documents.extraction.opendocument_sheet`; :func:`write_sheets`
does the rest.
"""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import openpyxl
import xlrd
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.documents.extraction.archive import check_archive
from retrieval.documents.extraction.cell_tables import HEAD, Cell, CellTable, Span, read_table, write_table
from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.number_formats import show_value
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, LeftOut, leave_out, plain_title

_DEFAULT_NAME = re.compile(r"(?:Sheet|Blad|Tabelle|Feuil|Hoja|Foglio)\s?\d*", re.I)

Rows = dict[int, dict[int, Cell]]


class Area(NamedTuple):
    """Rows and columns, the last ones included."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(slots=True)
class Sheet:
    """The filled cells by row and column, and the areas of cells that are merged."""

    name: str
    rows: Rows = field(default_factory=dict)
    merged: Sequence[Area] = ()


class _Placed(NamedTuple):
    """A table, and the columns of the sheet in which it stands."""

    columns: list[int]
    table: CellTable


def write_sheets(
    sheets: Sequence[Sheet],
    filename: str,
    title: str,
    limits: ExtractionLimits,
    left_out: tuple[LeftOut, ...] = (),
) -> ExtractedText:
    """The sheets in their order, each under its name."""
    writer = MarkdownWriter(filename, limits)
    shown = [sheet for sheet in sheets if sheet.rows]
    for sheet in shown:
        if len(shown) > 1 or not _DEFAULT_NAME.fullmatch(sheet.name):
            writer.add_heading(sheet.name, 1)
        for table in _find_tables(sheet):
            write_table(table, writer, has_decimal_points=True)
    return writer.finish(title, left_out=left_out, holds_records=True)


# Tables on a sheet ---------------------------------------------------------------------------------------------------


def _find_tables(sheet: Sheet) -> list[CellTable]:
    """Return the tables and the words around them, from top to bottom."""
    rows = _fill_merged(sheet)
    found: list[_Placed] = []
    for area in _cut_areas(rows, sorted(rows)):
        columns, table = _read_area(rows, area, sheet.merged)
        above = next((known for known in reversed(found) if known.table.header), None)
        if above and not above.table.totals and _continues(table, columns, above):
            places = [columns.index(at) if at in columns else -1 for at in above.columns]
            for into, lines in ((above.table.body, table.body), (above.table.totals, table.totals)):
                into.extend([line[at] if at >= 0 else "" for at in places] for line in lines)
        else:
            found.append(_Placed(columns, table))
    # The words right above a table name it.
    for (_, above_it), (_, table) in pairwise(found):
        words = [*above_it.titles, *(" ".join(row) for row in above_it.body)]
        if not above_it.header and table.header and not table.titles and len(words) == 1:
            table.titles.extend(words)
            above_it.titles.clear()
            above_it.body.clear()
    return [table for _, table in found]


def _fill_merged(sheet: Sheet) -> Rows:
    """The rows, with the words of a cell that is merged over several rows in each of them."""
    rows = {number: dict(cells) for number, cells in sheet.rows.items()}
    for area in sheet.merged:
        cell = rows.get(area.top, {}).get(area.left)
        if cell and area.left == area.right:
            for row in range(area.top + 1, area.bottom + 1):
                if row in rows:
                    rows[row].setdefault(area.left, cell)
    return rows


def _cut_areas(rows: Rows, numbers: Sequence[int]) -> Iterator[Area]:
    """Yield the ranges of cells that empty rows or empty columns separate, but not a table with an empty column."""
    for band in _runs(numbers):
        parts: list[tuple[list[int], Rows]] = []
        for run in _runs(sorted({at for number in band for at in rows[number]})):
            chosen = set(run)
            part = {number: {at: rows[number][at] for at in chosen & rows[number].keys()} for number in band}
            part = {number: cells for number, cells in part.items() if cells}
            if parts and _goes_on(*parts[-1], run, part):
                before, part_before = parts.pop()
                run = [*before, *run]
                part = {number: part_before.get(number, {}) | part.get(number, {}) for number in band}
                part = {number: cells for number, cells in part.items() if cells}
            parts.append((run, part))
        if len(parts) == 1:
            yield Area(band[0], parts[0][0][0], band[-1], parts[0][0][-1])
            continue
        for _, part in parts:
            yield from _cut_areas(part, sorted(part))


def _goes_on(run: list[int], part: Rows, run_after: list[int], after: Rows) -> bool:
    """Return whether an empty column is one within a table: the rows on both sides are the same, and their names
    differ."""
    top = min(part)
    if top != min(after) or len(part.keys() & after.keys()) < 0.8 * len(part.keys() | after.keys()):
        return False
    names = {cell.text for cell in part[top].values()} & {cell.text for cell in after[top].values()}
    is_narrow = len(run) == 1 or len(run_after) == 1
    return not names and (is_narrow or len(part) > 2) and len(part) > 1


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _read_area(rows: Rows, area: Area, merged: Sequence[Area]) -> _Placed:
    inside = range(area.left, area.right + 1)
    numbers = [at for at in range(area.top, area.bottom + 1) if any(column in inside for column in rows.get(at, ()))]
    columns = sorted({at for number in numbers for at in rows[number] if at in inside})
    head = [[rows[number].get(at, Cell("", False)) for at in columns] for number in numbers[:HEAD]]
    lines = [[rows[number][at].text if at in rows[number] else "" for at in columns] for number in numbers]
    spans = [
        Span(numbers.index(each.top), columns.index(each.left), bisect_right(columns, each.right) - 1)
        for each in merged
        if each.left < each.right and each.top in numbers[:HEAD] and each.left in columns
    ]
    return _Placed(columns, read_table(head, lines, spans))


def _continues(table: CellTable, columns: list[int], above: _Placed) -> bool:
    """Return whether these rows go on below an empty row: they stand in the columns of the table, and have no names of
    their own."""
    is_form = not table.header and len(table.body) > 1 and all(row[0].endswith(":") for row in table.body)
    is_within = len(columns) > 1 and set(columns) <= set(above.columns)
    return is_within and table.is_nameless and not table.titles and not is_form


_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_FORMULA_WITHOUT_VALUE = re.compile(rb"<f(?:\s[^<>]*)?(?:/>|>[^<]*</f>)\s*+(?:<v\s*+/>|<v></v>)?+\s*+</c>")


def extract_workbook(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive(data, filename, limits, program="Excel")
    try:
        workbook = openpyxl.load_workbook(io.BytesIO(data), data_only=True, keep_links=False)
    except InvalidFileException as error:
        raise DocumentRejected(f"{filename} is no Excel workbook: save it again in Excel and upload that.") from error
    shown = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
    hidden = [sheet.title for sheet in workbook.worksheets if sheet.sheet_state != "visible"]
    properties = workbook.properties
    return write_sheets(
        [_read_sheet(sheet) for sheet in shown],
        filename,
        plain_title(canonical(properties.title or "")),
        limits,
        leave_out("sheets", [canonical(name) for name in hidden]) + leave_out("formulas", (), _count_formulas(data)),
    )


def _count_formulas(data: bytes) -> int:
    """How many formulas have a value that the file does not hold; only a spreadsheet program computes them."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(
            len(_FORMULA_WITHOUT_VALUE.findall(archive.read(name)))
            for name in archive.namelist()
            if _SHEET.fullmatch(name)
        )


def _read_sheet(sheet: Any) -> Sheet:
    read = Sheet(
        canonical(sheet.title),
        merged=[Area(each.min_row, each.min_col, each.max_row, each.max_col) for each in sheet.merged_cells.ranges],
    )
    # The cells that there are: `iter_rows` makes all those between the first and the last.
    for (row, column), cell in sorted(sheet._cells.items()):
        words = "" if cell.value is None else " ".join(canonical(show_value(cell.value, cell.number_format)).split())
        if words:
            read.rows.setdefault(row, {})[column] = Cell(words, not isinstance(cell.value, str))
    return read


def extract_old_workbook(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """The sheets of a workbook of Excel 5 to 2003."""
    try:
        workbook = xlrd.open_workbook(file_contents=data, formatting_info=True, ragged_rows=True, logfile=io.StringIO())
    except xlrd.XLRDError as error:
        reason = "password-protected" if "encrypted" in str(error) else "no Excel workbook that can be read"
        raise DocumentRejected(f"{filename} is {reason}: save it as .xlsx in Excel and upload that.") from error
    sheets = workbook.sheets()
    hidden = [canonical(sheet.name) for sheet in sheets if sheet.visibility]
    shown = [_read_old_sheet(sheet) for sheet in sheets if not sheet.visibility]
    return write_sheets(shown, filename, "", limits, leave_out("sheets", hidden))


def _read_old_sheet(sheet: Any) -> Sheet:
    merged = [Area(top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells]
    read = Sheet(canonical(sheet.name), merged=merged)
    for row in range(sheet.nrows):
        for column, cell in enumerate(sheet.row(row)):
            number_format = sheet.book.format_map[sheet.book.xf_list[cell.xf_index].format_key].format_str
            value = _old_value(cell, number_format, sheet.book.datemode)
            if words := " ".join(canonical(show_value(value, number_format)).split()):
                read.rows.setdefault(row + 1, {})[column + 1] = Cell(words, not isinstance(value, str))
    return read


def _old_value(cell: Any, number_format: str, datemode: int) -> object:
    """The value of a cell, of the types that openpyxl gives; empty for an empty cell."""
    match cell.ctype:
        case xlrd.XL_CELL_DATE if number_format.startswith("[h"):
            return timedelta(days=cell.value)
        case xlrd.XL_CELL_DATE:
            moment = xlrd.xldate.xldate_as_datetime(cell.value, datemode)
            return moment.time() if 0 <= cell.value < 1 else moment
        case xlrd.XL_CELL_BOOLEAN:
            return bool(cell.value)
        case xlrd.XL_CELL_ERROR:
            return xlrd.error_text_from_code[cell.value]
    return cell.value
