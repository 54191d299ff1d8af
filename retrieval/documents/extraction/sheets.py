"""Sheets of cells as text: each table's rows as lines that name their columns, what stands around them as paragraphs.

XLSX and XLS are read here, ODS in :mod:`retrieval.documents.extraction.opendocument_sheet`; :func:`write_sheets`
does the rest.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import openpyxl
import xlrd
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.documents.extraction.archive import check_archive
from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, LeftOut, leave_out, plain_title

_MOST_COLUMNS = 1_000
_LONGEST_NAME = 80
_MOST_TITLES = 3
_DEFAULT_NAME = re.compile(r"(?:Sheet|Blad|Tabelle|Feuil|Hoja|Foglio)\s?\d*", re.I)
_TOTAL = re.compile(
    r"(?:grand[ -]|sub[ -]?|eind)?(?:totals?|totaal|totalen|sum|som|average|gemiddelde)(?: (?:ex|in)c.{0,20})?:?", re.I
)
_YEAR = re.compile(r"(?:19|20)\d\d")


class Cell(NamedTuple):
    """``is_value`` is false for text."""

    text: str
    is_value: bool


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


@dataclass(slots=True)
class _Table:
    """``totals`` are rows that sum up the others; ``header`` is empty for words that stand in cells."""

    titles: list[str]
    area: Area
    header: list[str]
    body: list[list[str]]
    totals: list[list[str]]


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
            _write_table(table, writer)
    return writer.finish(title, left_out=left_out, holds_records=True)


def _write_table(table: _Table, writer: MarkdownWriter) -> None:
    *before, last = table.titles or [""]
    for words in before:
        writer.add_paragraph(words)
    if not table.header:
        for words in (last, *(" ".join(filter(None, row)) for row in table.body)):
            writer.add_paragraph(words)
        return
    writer.add_heading(last, 2)
    writer.add_rows(table.header, table.body, has_decimal_points=True)
    for row in table.totals:
        first, *others = (at for at, words in enumerate(row) if words)
        writer.add_paragraph(" · ".join([row[first].rstrip(":"), *(f"{table.header[at]} {row[at]}" for at in others)]))


def show_number(value: float) -> str:
    """At most fifteen digits, as spreadsheets keep them."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return str(int(value))
    words = f"{value:.15g}"
    return f"{value:.15f}".rstrip("0") if "e-0" in words else words


# Tables on a sheet ---------------------------------------------------------------------------------------------------


def _find_tables(sheet: Sheet) -> Iterator[_Table]:
    """The tables and the words around them, from top to bottom."""
    rows = _fill_merged(sheet)
    found: list[_Table] = []
    for area in _cut_areas(rows, sorted(rows)):
        table = _read_table(rows, area, sheet.merged)
        above = next((known for known in reversed(found) if known.header), None)
        if above and not above.totals and _continues(table, above):
            above.body += [[""] * (table.area.left - above.area.left) + row for row in table.body]
            above.totals += [[""] * (table.area.left - above.area.left) + row for row in table.totals]
        else:
            found.append(table)
    # The words right above a table name it.
    for above, table in pairwise(found):
        if not above.header and table.header and not table.titles and len(above.titles) + len(above.body) == 1:
            table.titles, above.titles, above.body = [*above.titles, *(" ".join(row) for row in above.body)], [], []
    yield from found


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
    """The ranges of cells that empty rows or empty columns separate."""
    for band in _runs(numbers):
        columns = _runs(sorted({at for number in band for at in rows[number]}))
        if len(columns) == 1:
            yield Area(band[0], columns[0][0], band[-1], columns[0][-1])
            continue
        for run in columns:
            chosen = set(run)
            part = {number: {at: rows[number][at] for at in chosen & rows[number].keys()} for number in band}
            part = {number: cells for number, cells in part.items() if cells}
            yield from _cut_areas(part, sorted(part))


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _read_table(rows: Rows, area: Area, merged: Sequence[Area]) -> _Table:
    numbers = [number for number in range(area.top, area.bottom + 1) if _cells(rows, number, area)]
    titles: list[str] = []
    while len(numbers) > 1 and len(titles) < _MOST_TITLES and area.left < area.right:
        cells = _cells(rows, numbers[0], area)
        if len(cells) > 1 or any(cell.is_value for cell in cells.values()):
            break
        titles += (cell.text for cell in cells.values())
        del numbers[0]
    header, taken = _read_header(rows, numbers, area, merged)
    lines = [
        [cells[at].text if at in cells else "" for at in range(area.left, area.right + 1)]
        for cells in (_cells(rows, number, area) for number in numbers[taken:])
    ]
    if not header:
        return _Table(titles, area, [], lines, [])
    body = [line for line in lines if not _is_total(line)]
    return _Table(titles, area, header, body, [line for line in lines if _is_total(line)])


def _cells(rows: Rows, number: int, area: Area) -> dict[int, Cell]:
    return {at: cell for at, cell in rows.get(number, {}).items() if area.left <= at <= area.right}


def _read_header(rows: Rows, numbers: Sequence[int], area: Area, merged: Iterable[Area]) -> tuple[list[str], int]:
    """The names of the columns, and how many rows hold them; none for what is no table."""
    width = area.right - area.left + 1
    # In a form of two columns the first ones end in a colon.
    labels = [cells.get(area.left) for cells in (_cells(rows, number, area) for number in numbers)]
    is_form = width == 2 and all(label is None or label.text.endswith(":") for label in labels)
    if not 2 <= width <= _MOST_COLUMNS or len(numbers) < 2 or is_form:
        return [], 0
    first = _cells(rows, numbers[0], area)
    if not _may_be_header(first, width):
        return [f"column {at + 1}" for at in range(width)], 0
    above = {at: cell.text for at, cell in first.items()}
    wide = [each for each in merged if each.top == numbers[0] and each.left < each.right and each.left in first]
    taken = 1
    if wide and len(numbers) > 2 and not any(c.is_value for c in _cells(rows, numbers[1], area).values()):
        for each in wide:
            above |= dict.fromkeys(range(each.left, each.right + 1), first[each.left].text)
        below = {at: cell.text for at, cell in _cells(rows, numbers[1], area).items()}
        taken = 2
    else:
        below = {}
    names: list[str] = []
    for at in range(area.left, area.right + 1):
        name = " ".join(dict.fromkeys(part for part in (above.get(at, ""), below.get(at, "")) if part))
        name = name or f"column {at - area.left + 1}"
        names.append(f"{name} ({names.count(name) + 1})" if name in names else name)
    return names, taken


def _may_be_header(cells: dict[int, Cell], width: int) -> bool:
    return (
        len(cells) >= max(2, 0.6 * width)
        and all(not cell.is_value or _YEAR.fullmatch(cell.text) for cell in cells.values())
        and any(not cell.is_value for cell in cells.values())
        and all(len(cell.text) <= _LONGEST_NAME for cell in cells.values())
    )


def _continues(table: _Table, above: _Table) -> bool:
    """Whether these rows go on below an empty row: they stand in the columns of the table, and have no names of their
    own."""
    is_within = above.area.left <= table.area.left and table.area.right <= above.area.right
    is_nameless = table.header[:1] == ["column 1"] or (not table.header and len(table.body) == 1)
    return is_within and is_nameless and not table.titles and table.area.left < table.area.right


def _is_total(row: Sequence[str]) -> bool:
    filled = [words for words in row if words]
    return bool(filled and _TOTAL.fullmatch(filled[0]))


_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_FORMULA_WITHOUT_VALUE = re.compile(rb"<f(?:\s[^<>]*)?(?:/>|>[^<]*</f>)\s*+(?:<v\s*+/>|<v></v>)?+\s*+</c>")
# What stands before and behind the digits of a number's format: quoted words, a currency, single signs.
_QUOTED = re.compile(r'"([^"]{0,80})"|\[\$([^\]-]{0,20})[^\]]{0,20}\]|\\(.)|([€$£¥])')
_DIGITS = re.compile(r"[#0?](?:[#0?,. ]*[#0?])?")
_MOST_DECIMALS = 10


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


def show_value(value: object, number_format: str = "General") -> str:
    """A cell's value: days in ISO form, numbers with a decimal point and the unit, the decimals and the percent sign of
    their format."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return value.isoformat("auto" if value.second else "minutes")
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02d}" + (f":{seconds:02d}" if seconds else "")
    if isinstance(value, (int, float)):
        return _show_number(value, number_format)
    return str(value)


def _show_number(value: float, number_format: str) -> str:
    # Behind the first semicolon stands how negative numbers look.
    pattern = number_format.split(";", 1)[0]
    digits = _DIGITS.search(_QUOTED.sub(lambda match: "\x01" * len(match[0]), pattern))
    if number_format in ("General", "@", "") or digits is None:
        return show_number(value)
    if "E" in pattern or "/" in pattern:
        return show_number(value)
    is_share = "%" in pattern
    decimals = len(re.sub("[^0?#]", "", digits[0].partition(".")[2]))
    scaled = value * 100 if is_share else value
    # Zeros are shown, numbers are not rounded: the file knows better than its looks.
    words = f"{scaled:.{decimals}f}" if decimals <= _MOST_DECIMALS else show_number(scaled)
    if abs(float(words) - scaled) > 1e-9 * max(1, abs(scaled)):
        words = show_number(scaled)
    before, behind = (_unit(part) for part in (pattern[: digits.start()], pattern[digits.end() :]))
    return f"{before}{' ' * bool(before)}{words}{'%' if is_share else ''}{' ' * bool(behind)}{behind}"


def _unit(pattern: str) -> str:
    return " ".join("".join(next(filter(None, match.groups()), "") for match in _QUOTED.finditer(pattern)).split())
