"""XLSX: the tables of each sheet, with the values that its formulas had when it was saved."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import date, datetime, time, timedelta
from typing import Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.office.sheets import Area, Cell, Sheet, show_number, write_sheets
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, leave_out
from retrieval.ingest.extraction.unpacking import check_archive

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
        media_type,
        plain_title(canonical(properties.title or "")) or derive_title(filename),
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
