"""Read workbooks of Excel 5 to 2003 (XLS), including XML workbooks."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import xlrd
from lxml import etree

from retrieval.documents.extraction.archive import parse_xml
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.markdown import build_markdown_text
from retrieval.documents.extraction.sheets import CellArea, Sheet, extract_unformatted_workbook, write_sheets
from retrieval.documents.extraction.tabular import extract_table
from retrieval.documents.formats import XML_WORKBOOK, is_text_table
from retrieval.exceptions import DocumentRejected
from retrieval.media_types import CSV, HTML
from retrieval.text.extracted import ExtractedText, ExtractionLimits, describe_left_out_parts

# Names of number formats in XML workbooks.
_NAMED_FORMATS = {
    "Fixed": "0.00",
    "Standard": "0.00",
    "Percent": "0.00%",
    "Currency": "$0.00",
    "Euro Currency": "€0.00",
}
_NAMES = re.compile(r"(?:General|Short|Medium|Long) (Date|Time)|Yes/No|True/False|On/Off|Scientific")


def extract_old_workbook(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    if data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<?xml") and XML_WORKBOOK in data:
        return _extract_xml(data, filename, limits)
    if is_text_table(data):
        if b"<table" in data.lower():
            return _extract_page(data, filename)
        return replace(extract_table(data, filename, CSV, limits), media_type=CSV)
    try:
        workbook = xlrd.open_workbook(file_contents=data, formatting_info=True, ragged_rows=True, logfile=io.StringIO())
    except MemoryError:
        raise
    # xlrd may raise any exception. Another library then reads the file.
    except Exception as error:
        if "encrypted" not in str(error):
            return extract_unformatted_workbook(data, filename, media_type, limits)
        raise DocumentRejected(
            f"{filename} is password-protected: save it as .xlsx in Excel and upload that."
        ) from error
    sheets = workbook.sheets()
    hidden = [make_canonical_text(sheet.name) for sheet in sheets if sheet.visibility]
    shown = [_read_old_sheet(sheet) for sheet in sheets if not sheet.visibility]
    return write_sheets(shown, filename, "", limits, describe_left_out_parts("sheets", hidden))


def _read_old_sheet(sheet: Any) -> Sheet:
    merged = [CellArea(top + 1, left + 1, bottom, right) for top, bottom, left, right in sheet.merged_cells]
    read = Sheet(make_canonical_text(sheet.name), merged=merged)
    for row in range(sheet.nrows):
        for column, cell in enumerate(sheet.row(row)):
            number_format = sheet.book.format_map[sheet.book.xf_list[cell.xf_index].format_key].format_str
            read.add(row + 1, column + 1, _read_old_value(cell, number_format, sheet.book.datemode), number_format)
    read.notes = {
        (row + 1, column + 1): make_canonical_text(note.text) for (row, column), note in sheet.cell_note_map.items()
    }
    rows, columns = (
        {at + 1 for at, about in found.items() if about.hidden and not about.outline_level}
        for found in (sheet.rowinfo_map, sheet.colinfo_map)
    )
    read.drop_hidden(rows, columns)
    return read


def _read_old_value(cell: Any, number_format: str, datemode: int) -> object:
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


def _extract_page(data: bytes, filename: str) -> ExtractedText:
    root = parse_html(decode(data, filename, html=True), filename)
    if root is None:
        return ExtractedText("")
    for table in root.iter("table"):
        first = next(table.iter("tr"), None)
        if first is not None and next(table.iter("th"), None) is None:
            for cell in first.iter("td"):
                cell.tag = "th"
    return build_markdown_text(f"{convert_html(root)}\n", media_type=HTML)


def _extract_xml(data: bytes, filename: str, limits: ExtractionLimits) -> ExtractedText:
    root = parse_xml(data)
    formats = {
        _get_attribute(style, "ID"): _get_attribute(each, "Format")
        for style in root.iter("{*}Style")
        for each in style.iter("{*}NumberFormat")
    }
    shown, hidden = [], []
    for sheet in root.iter("{*}Worksheet"):
        name = make_canonical_text(_get_attribute(sheet, "Name"))
        if sheet.findtext("{*}WorksheetOptions/{*}Visible") in ("SheetHidden", "SheetVeryHidden"):
            hidden.append(name)
        else:
            shown.append(_read_xml_sheet(sheet, name, formats))
    title = make_canonical_text(root.findtext("{*}DocumentProperties/{*}Title") or "")
    return write_sheets(shown, filename, title, limits, describe_left_out_parts("sheets", hidden))


def _get_attribute(element: etree._Element, name: str) -> str:
    return element.get(f"{{urn:schemas-microsoft-com:office:spreadsheet}}{name}") or ""


def _enumerate_elements(
    elements: Iterator[etree._Element], extent_attribute: str
) -> Iterator[tuple[int, etree._Element]]:
    """Yield elements, such as rows, with their numbers from 1.

    An element can cover several numbers, such as a merged cell. ``extent_attribute`` is the name of the attribute that
    counts the covered numbers after the first.
    """
    at = 0
    for element in elements:
        at = int(_get_attribute(element, "Index") or at + 1)
        yield at, element
        at += int(_get_attribute(element, extent_attribute) or 0)


def _read_xml_sheet(sheet: etree._Element, name: str, formats: dict[str, str]) -> Sheet:
    merged: list[CellArea] = []
    read = Sheet(name, merged=merged)
    hidden: set[int] = set()
    for row_at, row in _enumerate_elements(sheet.iterfind("{*}Table/{*}Row"), "Span"):
        if _get_attribute(row, "Hidden") == "1":
            hidden.add(row_at)
        for at, cell in _enumerate_elements(row.iterfind("{*}Cell"), "MergeAcross"):
            value = cell.find("{*}Data")
            kind = _get_attribute(value, "Type") if value is not None else ""
            text = "".join(value.itertext()) if value is not None else ""
            number_format = formats.get(_get_attribute(cell, "StyleID") or _get_attribute(row, "StyleID"), "")
            if named := _NAMES.fullmatch(number_format):
                number_format = "h:mm" if named[1] == "Time" else ""
            read.add(row_at, at, _read_xml_value(kind, text), _NAMED_FORMATS.get(number_format, number_format))
            for note in cell.iterfind("{*}Comment/{*}Data"):
                read.notes[row_at, at] = make_canonical_text("".join(note.itertext()))
            across, down = (int(_get_attribute(cell, f"Merge{way}") or 0) for way in ("Across", "Down"))
            if across or down:
                merged.append(CellArea(row_at, at, row_at + down, at + across))
    columns = {
        number
        for at, column in _enumerate_elements(sheet.iterfind("{*}Table/{*}Column"), "Span")
        if _get_attribute(column, "Hidden") == "1"
        for number in range(at, at + 1 + min(int(_get_attribute(column, "Span") or 0), 1_000))
    }
    read.drop_hidden(hidden, columns)
    return read


def _read_xml_value(kind: str, text: str) -> object:
    match kind:
        case "Number":
            return float(text)
        case "Boolean":
            return text == "1"
        case "DateTime":
            return datetime.fromisoformat(text)
    return text
