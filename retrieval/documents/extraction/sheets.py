"""Convert the cells of sheets to tables with column names, and cells outside tables to paragraphs."""

from __future__ import annotations

import io
import re
import zipfile
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from openpyxl.cell.rich_text import CellRichText
from openpyxl.packaging.relationship import get_dependents, get_rels_path
from openpyxl.reader.excel import ExcelReader
from openpyxl.utils.cell import coordinate_to_tuple, range_boundaries
from openpyxl.utils.escape import unescape
from python_calamine import CalamineWorkbook, PasswordError, SheetTypeEnum, SheetVisibleEnum

from retrieval.documents.extraction.archive import check_archive_safety, parse_xml
from retrieval.documents.extraction.cell_tables import HEAD, Cell, CellTable, HeaderSpan, read_table, write_table
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.grouping import group_consecutive
from retrieval.documents.extraction.number_formats import show_value
from retrieval.documents.extraction.office_xml import (
    is_blank_or_page_number,
    normalise_office_file,
    read_chart,
    write_subscript,
    write_superscript,
)
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, LeftOutParts, describe_left_out_parts, strip_title

_DEFAULT_NAME = re.compile(r"(?:Sheet|Blad|Tabelle|Feuil|Hoja|Foglio)\s?\d*", re.I)

Rows = dict[int, dict[int, Cell]]


class CellArea(NamedTuple):
    """A range of cells in a sheet. All four bounds are inclusive."""

    top: int
    left: int
    bottom: int
    right: int


@dataclass(slots=True)
class Sheet:
    """The filled cells of a sheet in a spreadsheet.

    ``rows`` maps row numbers to cells by column. ``beside`` are texts outside the cells: charts, shapes, page
    headers and footers. ``hidden`` is the number of hidden rows and columns, which are dropped.
    """

    name: str
    rows: Rows = field(default_factory=dict)
    merged: Sequence[CellArea] = ()
    notes: dict[tuple[int, int], str] = field(default_factory=dict)
    beside: list[str] = field(default_factory=list)
    hidden: int = 0

    def add(self, row: int, column: int, value: object, number_format: str = "", *, is_error: bool = False) -> None:
        if words := " ".join(make_canonical_text(show_value(value, number_format)).split()):
            self.rows.setdefault(row, {})[column] = Cell(words, is_error or not isinstance(value, str))

    def drop_hidden(self, rows: Container[int], columns: Container[int]) -> None:
        """Drop hidden rows and columns. Do not pass rows that a filter or group hides, because users can show them."""
        filled = sorted({at for cells in self.rows.values() for at in cells})
        gone_rows = [row for row in sorted(self.rows) if row in rows]
        gone_columns = [at for at in filled if at in columns]
        self.hidden = len(gone_rows) + len(gone_columns)
        if not self.hidden:
            return

        def shift_position(row: int, column: int) -> tuple[int, int]:
            return row - bisect_right(gone_rows, row), column - bisect_right(gone_columns, column)

        kept: Rows = {}
        for row, cells in self.rows.items():
            for column, cell in cells.items():
                if row not in rows and column not in columns:
                    at, across = shift_position(row, column)
                    kept.setdefault(at, {})[across] = cell
        self.rows = kept
        self.merged = [
            CellArea(*shift_position(each.top, each.left), *shift_position(each.bottom, each.right))
            for each in self.merged
        ]
        shown = {at: words for at, words in self.notes.items() if at[0] not in rows and at[1] not in columns}
        self.notes = {shift_position(*at): words for at, words in shown.items()}


class _SheetTable(NamedTuple):
    columns: list[int]
    table: CellTable


def write_sheets(
    sheets: Sequence[Sheet],
    filename: str,
    title: str,
    limits: ExtractionLimits,
    left_out: tuple[LeftOutParts, ...] = (),
) -> ExtractedText:
    writer = MarkdownWriter(filename, limits)
    shown = [sheet for sheet in sheets if sheet.rows or sheet.notes or sheet.beside]
    for sheet in shown:
        if len(shown) > 1 or not _DEFAULT_NAME.fullmatch(sheet.name):
            writer.add_heading(sheet.name, 1)
        for table in _find_tables(sheet):
            write_table(table, writer, has_decimal_points=True)
        for (row, column), words in sorted(sheet.notes.items()):
            cells = sheet.rows.get(row, {})
            label = [cells[at].text for at in dict.fromkeys((min(cells, default=0), column)) if at in cells]
            writer.add_paragraph(f"Note on {' · '.join(label) or f'row {row}'}: {' '.join(words.split())}")
        for words in sheet.beside:
            writer.add_paragraph(words)
    hidden = describe_left_out_parts("hidden_cells", (), sum(sheet.hidden for sheet in sheets))
    return writer.build_extracted_text(title, left_out=left_out + hidden, holds_records=True)


def _find_tables(sheet: Sheet) -> list[CellTable]:
    rows = _fill_merged_cells(sheet)
    found: list[_SheetTable] = []
    for area in _split_into_areas(rows, sorted(rows)):
        columns, table = _read_area(rows, area, sheet.merged)
        above = next((known for known in reversed(found) if known.table.header), None)
        if above and not above.table.totals and _is_table_continuation(table, columns, above):
            places = [columns.index(at) if at in columns else -1 for at in above.columns]
            for into, lines in ((above.table.body, table.body), (above.table.totals, table.totals)):
                into.extend([line[at] if at >= 0 else "" for at in places] for line in lines)
        else:
            found.append(_SheetTable(columns, table))
    for (_, above_it), (_, table) in pairwise(found):
        words = [*above_it.titles, *(" ".join(row) for row in above_it.body)]
        if not above_it.header and table.header and not table.titles and len(words) == 1:
            table.titles.extend(words)
            above_it.titles.clear()
            above_it.body.clear()
    return [table for _, table in found]


def _fill_merged_cells(sheet: Sheet) -> Rows:
    rows = {number: dict(cells) for number, cells in sheet.rows.items()}
    for area in sheet.merged:
        cell = rows.get(area.top, {}).get(area.left)
        if cell and area.left == area.right:
            for row in range(area.top + 1, area.bottom + 1):
                if row in rows:
                    rows[row].setdefault(area.left, cell)
    return rows


def _split_into_areas(rows: Rows, numbers: Sequence[int]) -> Iterator[CellArea]:
    for band in _group_consecutive_numbers(numbers):
        runs = _group_consecutive_numbers(sorted({at for number in band for at in rows[number]}))
        parts: list[tuple[list[int], Rows]] = []
        for run in runs if len(runs) > 1 else ():
            part = _select_cells(rows, band, set(run))
            if parts and _are_parts_of_one_table(*parts[-1], run, part):
                run = [*parts.pop()[0], *run]
                part = _select_cells(rows, band, set(run))
            parts.append((run, part))
        if len(parts) < 2:
            yield CellArea(band[0], runs[0][0], band[-1], runs[-1][-1])
        for _, part in parts if len(parts) > 1 else ():
            yield from _split_into_areas(part, sorted(part))


def _select_cells(rows: Rows, numbers: Sequence[int], columns: Set[int]) -> Rows:
    found = {number: {at: rows[number][at] for at in columns & rows[number].keys()} for number in numbers}
    return {number: cells for number, cells in found.items() if cells}


def _are_parts_of_one_table(run: list[int], part: Rows, run_after: list[int], after: Rows) -> bool:
    top = min(part)
    if top != min(after) or len(part.keys() & after.keys()) < 0.8 * len(part.keys() | after.keys()):
        return False
    names = {cell.text for cell in part[top].values()} & {cell.text for cell in after[top].values()}
    is_narrow = len(run) == 1 or len(run_after) == 1
    return not names and (is_narrow or len(part) > 2) and len(part) > 1


def _group_consecutive_numbers(numbers: Sequence[int]) -> list[list[int]]:
    return group_consecutive(numbers, lambda run, number: number == run[-1] + 1)


def _read_area(rows: Rows, area: CellArea, merged: Sequence[CellArea]) -> _SheetTable:
    inside = range(area.left, area.right + 1)
    numbers = [at for at in range(area.top, area.bottom + 1) if any(column in inside for column in rows.get(at, ()))]
    columns = sorted({at for number in numbers for at in rows[number] if at in inside})
    head = [[rows[number].get(at, Cell("", False)) for at in columns] for number in numbers[:HEAD]]
    lines = [[rows[number][at].text if at in rows[number] else "" for at in columns] for number in numbers]
    spans = [
        HeaderSpan(numbers.index(each.top), columns.index(each.left), bisect_right(columns, each.right) - 1)
        for each in merged
        if each.left < each.right and each.top in numbers[:HEAD] and each.left in columns
    ]
    return _SheetTable(columns, read_table(head, lines, spans))


def _is_table_continuation(table: CellTable, columns: list[int], above: _SheetTable) -> bool:
    is_form = not table.header and len(table.body) > 1 and all(row[0].endswith(":") for row in table.body)
    is_within = len(columns) > max(1, len(above.columns) / 2) and set(columns) <= set(above.columns)
    return is_within and table.has_no_column_names and not table.titles and not is_form


# Codes in headers and footers, such as a font or the page number.
_MARGIN_CODE = re.compile(r'&(?:K[\da-fA-F]{6}|K\d\d[+-]\d{3}|"[^"]*"|\d+#?|\[\w+\]|[A-Z])')
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_FORMULA_WITHOUT_VALUE = re.compile(rb"<f(?:\s[^<>]*)?(?:/>|>[^<]*</f>)\s*+(?:<v\s*+/>|<v></v>)?+\s*+</c>")


def extract_workbook(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive_safety(data, filename, limits, program_name="Excel")
    data = normalise_office_file(data)
    try:
        reader = ExcelReader(io.BytesIO(data), data_only=True, keep_links=False, rich_text=True)
        reader.read()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the library raises anything; the other one reads the file, and that is said
        # openpyxl fails on non-standard data of other programs.
        return extract_unformatted_workbook(data, filename, media_type, limits)
    paths = {sheet.name: relation.target for sheet, relation in reader.parser.find_sheets()}
    shown = [sheet for sheet in reader.wb.worksheets if sheet.sheet_state == "visible"]
    hidden = [make_canonical_text(each.title) for each in reader.wb._sheets if each.sheet_state != "visible"]
    charts: list[str] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [_read_sheet(sheet, archive, paths[sheet.title], charts) for sheet in shown]
        for chart_sheet in reader.wb.chartsheets:
            if chart_sheet.sheet_state == "visible":
                _read_drawings(archive, paths[chart_sheet.title], charts)
    formulas = describe_left_out_parts("formulas", (), _count_formulas(data))
    left_out = describe_left_out_parts("sheets", hidden) + formulas + describe_left_out_parts("charts", charts)
    return write_sheets(
        sheets, filename, strip_title(make_canonical_text(reader.wb.properties.title or "")), limits, left_out
    )


def _count_formulas(data: bytes) -> int:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return sum(
            len(_FORMULA_WITHOUT_VALUE.findall(archive.read(name)))
            for name in archive.namelist()
            if _SHEET.fullmatch(name)
        )


def _read_sheet(sheet: Any, archive: zipfile.ZipFile, path: str, charts: list[str]) -> Sheet:
    read = Sheet(
        make_canonical_text(sheet.title),
        merged=[CellArea(each.min_row, each.min_col, each.max_row, each.max_col) for each in sheet.merged_cells.ranges],
    )
    # `iter_rows` would create all empty cells.
    for (row, column), cell in sorted(sheet._cells.items()):
        if cell.value is not None:
            value = _read_text(cell.value) if isinstance(cell.value, (str, CellRichText)) else cell.value
            read.add(row, column, value, cell.number_format, is_error=cell.data_type == "e")
        if cell.comment:
            read.notes[row, column] = make_canonical_text(cell.comment.text)
    for _, root in _list_related(archive, path, "/threadedComment"):
        found: dict[str, list[str]] = {}
        for comment in root.iterchildren():
            found.setdefault(comment.get("ref"), []).append(" ".join(comment.itertext()))
        read.notes |= {coordinate_to_tuple(at): make_canonical_text(" / ".join(words)) for at, words in found.items()}
    read.beside = [*_read_drawings(archive, path, charts), *_read_margins(sheet)]
    filters = [each for each in (sheet.auto_filter, *(table.autoFilter for table in sheet.tables.values())) if each]
    filtered = [range_boundaries(each.ref) for each in filters if each.ref and each.filterColumn]
    rows = {
        row
        for row, about in sheet.row_dimensions.items()
        if about.hidden and not about.outlineLevel and not any(top <= row <= end for _, top, _, end in filtered)
    }
    columns = [about for about in sheet.column_dimensions.values() if about.hidden and not about.outlineLevel]
    read.drop_hidden(rows, {at for about in columns for at in range(about.min, about.max + 1)})
    return read


def _read_text(value: str | CellRichText) -> str:
    words = ""
    for piece in [value] if isinstance(value, str) else value:
        text, align = (piece, "") if isinstance(piece, str) else (piece.text, piece.font.vertAlign)
        mark = {"superscript": write_superscript, "subscript": write_subscript}.get(align)
        words += mark(words, text) if mark else text
    return str(unescape(words))


def _read_margins(sheet: Any) -> Iterator[str]:
    for margin in (sheet.firstHeader, sheet.oddHeader, sheet.firstFooter, sheet.oddFooter):
        for part in (margin.left, margin.center, margin.right):
            words = _MARGIN_CODE.sub(" ", part.text or "")
            if not is_blank_or_page_number(words):
                yield make_canonical_text(" ".join(words.split()))


def _list_related(archive: zipfile.ZipFile, path: str, kind: str) -> Iterator[tuple[str, Any]]:
    rels = get_rels_path(path)
    if rels in archive.namelist():
        for relation in get_dependents(archive, rels):
            if relation.Type.endswith(kind) and relation.target in archive.namelist():
                yield relation.target, parse_xml(archive.read(relation.target))


def _read_drawings(archive: zipfile.ZipFile, path: str, charts: list[str]) -> list[str]:
    found = []
    for drawing, root in _list_related(archive, path, "/drawing"):
        for box in root.iter("{*}txBody"):
            lines = (
                "".join(words.itertext())
                for words in box.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}p")
            )
            found.append("\n".join(filter(None, map(str.strip, lines))))
        for _, chart in _list_related(archive, drawing, "/chart"):
            title, rows = read_chart(chart)
            series = ", ".join(rows[0][1:]) if rows else ""
            charts.append(
                make_canonical_text(f"{title} ({series})" if title and series else title or series or "chart")
            )
    return found


def extract_unformatted_workbook(
    data: bytes, filename: str, media_type: str, limits: ExtractionLimits
) -> ExtractedText:
    """Return the text of an Excel workbook. Number formats are not applied.

    The library Calamine is used for .xlsb files, and for files that the usual library cannot read.
    """
    try:
        workbook = CalamineWorkbook.from_filelike(io.BytesIO(data))
    except PasswordError as error:
        raise DocumentRejected(f"{filename} is password-protected: remove the password and upload it again.") from error
    hidden, shown = [], []
    count = 0
    for about in workbook.sheets_metadata:
        if about.visible != SheetVisibleEnum.Visible:
            hidden.append(make_canonical_text(about.name))
        elif about.typ == SheetTypeEnum.WorkSheet:
            sheet = workbook.get_sheet_by_name(about.name)
            areas = [
                CellArea(top + 1, left + 1, low + 1, end + 1)
                for (top, left), (low, end) in sheet.merged_cell_ranges or ()
            ]
            read = Sheet(make_canonical_text(about.name), merged=areas)
            top, left = sheet.start or (0, 0)
            for row, values in enumerate(sheet.iter_rows() if sheet.start else (), start=top + 1):
                for column, value in enumerate(values, start=left + 1):
                    read.add(row, column, value)
                    count += isinstance(value, float)
            shown.append(read)
    left_out = describe_left_out_parts("sheets", hidden) + describe_left_out_parts("number_formats", (), count)
    return write_sheets(shown, filename, "", limits, left_out)
