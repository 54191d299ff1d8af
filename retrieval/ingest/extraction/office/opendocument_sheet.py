"""ODS: the tables of each sheet, with the values that its formulas had when it was saved."""

from __future__ import annotations

from collections.abc import Iterator

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.lines import derive_title
from retrieval.ingest.extraction.office.opendocument import Element, find_properties, load_content, name, read_words
from retrieval.ingest.extraction.office.sheets import Area, Cell, Sheet, show_number, write_sheets
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, leave_out

_ROW_GROUPS = tuple(map(name, ("table:table-row-group", "table:table-header-rows", "table:table-rows")))
_SYMBOLS = {"EUR": "€", "USD": "$", "GBP": "£"}
# A cell or a row with words may say that it is repeated; so often it never is.
_MOST_CELLS = 1_000_000


def extract_opendocument_sheet(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    display = find_properties(root, "table", "style:table-properties")
    shown, hidden = [], []
    for table in root.iter(name("table:table")):
        if display.get(table.get(name("table:style-name")) or "", {}).get(name("table:display")) == "false":
            hidden.append(table.get(name("table:name")) or "")
        else:
            shown.append(_read_sheet(table, filename))
    return write_sheets(
        shown,
        filename,
        media_type,
        title or derive_title(filename),
        limits,
        leave_out("sheets", [canonical(name) for name in hidden]),
    )


def _read_sheet(table: Element, filename: str) -> Sheet:
    merged: list[Area] = []
    sheet = Sheet(canonical(table.get(name("table:name")) or ""), merged=merged)
    count = 0
    row_at = 1
    for row in _rows(table):
        repeated = _repeats(row, "table:number-rows-repeated")
        cells: dict[int, Cell] = {}
        at = 1
        for element in row:
            if element.tag not in (name("table:table-cell"), name("table:covered-table-cell")):
                continue
            times = _repeats(element, "table:number-columns-repeated")
            words = " ".join(_read_value(element).split()) if element.tag == name("table:table-cell") else ""
            if words:
                count += times * repeated
                if count > _MOST_CELLS:
                    raise DocumentRejected(
                        f"{filename} holds more than {_MOST_CELLS:,} cells: split it into smaller files."
                    )
                kind = element.get(name("office:value-type"))
                cells |= dict.fromkeys(range(at, at + times), Cell(words, kind not in (None, "string")))
                rows, columns = (
                    int(element.get(name(f"table:number-{of}-spanned")) or 1) for of in ("rows", "columns")
                )
                if rows > 1 or columns > 1:
                    merged.append(Area(row_at, at, row_at + rows - 1, at + columns - 1))
            at += times
        if cells:
            sheet.rows |= dict.fromkeys(range(row_at, row_at + repeated), cells)
        row_at += repeated
    return sheet


def _rows(table: Element) -> Iterator[Element]:
    """The rows, also those in groups, but none of a table inside of a cell."""
    for child in table:
        if child.tag == name("table:table-row"):
            yield child
        elif child.tag in _ROW_GROUPS:
            yield from _rows(child)


def _repeats(element: Element, attribute: str) -> int:
    return max(1, int(element.get(name(attribute)) or 1))


def _read_value(cell: Element) -> str:
    kind = cell.get(name("office:value-type"))
    if kind == "date":
        day, _, time = (cell.get(name("office:date-value")) or "").partition("T")
        return day if time in ("", "00:00:00") else f"{day} {time[:5]}"
    words = " ".join(read_words(paragraph) for paragraph in cell.iterchildren(name("text:p")))
    if kind not in ("float", "currency", "percentage"):
        return words
    value = float(cell.get(name("office:value")) or "nan")
    if value != value:
        return words
    if kind == "currency":
        unit = cell.get(name("office:currency")) or ""
        return f"{_SYMBOLS.get(unit, unit)} {value:.2f}".strip()
    if kind == "percentage":
        return f"{show_number(round(value * 100, 10))}%"
    return show_number(value)
