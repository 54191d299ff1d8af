"""Open OpenDocument files, and extract the tables of spreadsheets (ODS)."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator

from lxml import etree

from retrieval.documents.extraction.archive import ENTITY, check_archive_safety, parse_xml
from retrieval.documents.extraction.cell_tables import Cell
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.number_formats import show_value
from retrieval.documents.extraction.sheets import CellArea, Sheet, write_sheets
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, describe_left_out_parts, strip_title

Element = etree._Element

NAMESPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
    "form": "urn:oasis:names:tc:opendocument:xmlns:form:1.0",
    "math": "http://www.w3.org/1998/Math/MathML",
    "xlink": "http://www.w3.org/1999/xlink",
    "xml": "http://www.w3.org/XML/1998/namespace",
}
_MOST_COLUMNS = 16_384
_SPACES = re.compile(" {2,}")
_SPACE = re.compile(r"[ \t\n]+")


def qualify_name(prefixed: str) -> str:
    prefix, _, local = prefixed.partition(":")
    return f"{{{NAMESPACES[prefix]}}}{local}"


# Skipped elements: comments, tracked deletions and descriptions of pictures.
_NOT_READ = frozenset(
    map(
        qualify_name,
        ("office:annotation", "text:tracked-changes", "text:note-citation", "svg:title", "svg:desc", "table:table"),
    )
)


def load_content(data: bytes, filename: str, limits: ExtractionLimits) -> tuple[Element, str]:
    """Return the root element and the title of an OpenDocument file.

    Raises: DocumentRejected if it is encrypted or too large.
    """
    check_archive_safety(data, filename, limits, refused_declaration=ENTITY)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise DocumentRejected(f"{filename} is password-protected: remove the password and upload it again.")
        root = parse_xml(archive.read("content.xml"))
        meta = parse_xml(archive.read("meta.xml")) if "meta.xml" in names else None
    title = meta.find(f".//{qualify_name('dc:title')}") if meta is not None else None
    return root, strip_title(make_canonical_text(title.text or "")) if title is not None else ""


def find_styles(root: Element, properties: str, attribute: str, value: str) -> set[str | None]:
    return {
        style.get(qualify_name("style:name"))
        for style in root.iter(qualify_name("style:style"))
        if (found := style.find(qualify_name(properties))) is not None and found.get(qualify_name(attribute)) == value
    }


def read_words(element: Element) -> str:
    """Return the element's text, with footnotes in parentheses."""
    return _SPACES.sub(" ", make_canonical_text("".join(_read_pieces(element)))).strip()


def _read_pieces(element: Element) -> Iterator[str]:
    if element.text:
        yield _SPACE.sub(" ", element.text)
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _NOT_READ:
            if child.tag == qualify_name("text:s"):
                yield " "
            elif child.tag == qualify_name("text:note"):
                yield f" ({' '.join(read_words(child).split())})"
            elif child.tag in (qualify_name("draw:frame"), qualify_name("text:p")):
                yield " "
                yield from _read_pieces(child)
                yield " "
            elif child.tag == qualify_name("text:tab"):
                yield "\t"
            elif child.tag == qualify_name("text:line-break"):
                yield "\n"
            else:
                yield from _read_pieces(child)
        if child.tail:
            yield _SPACE.sub(" ", child.tail)


def list_rows(table: Element) -> Iterator[Element]:
    """Return the table's rows, without the rows of tables in its cells."""
    rows = table.iter(qualify_name("table:table-row"))
    return (row for row in rows if next(row.iterancestors(qualify_name("table:table"))) is table)


def read_number(element: Element, what: str) -> int:
    return int(element.get(qualify_name(f"table:number-{what}")) or 1)


# More repeated cells than this are an attack.
_MOST_CELLS = 1_000_000
_CHART = re.compile(r"Object [^/]*/content\.xml")
_SHOWN_NUMBER = re.compile(r"\d+(?:[.,'’ \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?|[.,]\d+")
_SHOWN_TIME = re.compile(r"\d{1,2}:\d{2}.*")


def extract_opendocument_sheet(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    not_shown = find_styles(root, "style:table-properties", "table:display", "false")
    shown, hidden = [], []
    for table in root.iter(qualify_name("table:table")):
        if table.get(qualify_name("table:style-name")) in not_shown:
            hidden.append(make_canonical_text(table.get(qualify_name("table:name")) or ""))
        else:
            shown.append(_read_sheet(table, filename))
    left_out = describe_left_out_parts("sheets", hidden) + describe_left_out_parts("charts", list(_list_charts(data)))
    return write_sheets(shown, filename, title, limits, left_out)


def _list_charts(data: bytes) -> Iterator[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in filter(_CHART.fullmatch, archive.namelist()):
            for chart in parse_xml(archive.read(entry)).iter("{*}chart"):
                title = chart.find("{*}title")
                yield (read_words(title) if title is not None else "") or "chart"


def _read_sheet(table: Element, filename: str) -> Sheet:
    merged: list[CellArea] = []
    sheet = Sheet(make_canonical_text(table.get(qualify_name("table:name")) or ""), merged=merged)
    count = 0
    row_at = 1
    hidden: list[range] = []
    for row in list_rows(table):
        repeated = max(1, read_number(row, "rows-repeated"))
        if _is_hidden(row, "table:table-row-group"):
            hidden.append(range(row_at, row_at + repeated))
        cells: dict[int, Cell] = {}
        at = 1
        for element in row:
            if element.tag not in (qualify_name("table:table-cell"), qualify_name("table:covered-table-cell")):
                continue
            times = max(1, read_number(element, "columns-repeated"))
            words = " ".join(_read_value(element).split()) if element.tag == qualify_name("table:table-cell") else ""
            if words:
                count += times * repeated
                if count > _MOST_CELLS:
                    raise DocumentRejected(
                        f"{filename} holds more than {_MOST_CELLS:,} cells: split it into smaller files."
                    )
                kind = element.get(qualify_name("office:value-type"))
                cells |= dict.fromkeys(range(at, at + times), Cell(words, kind not in (None, "string")))
                rows, columns = (read_number(element, f"{of}-spanned") for of in ("rows", "columns"))
                if rows > 1 or columns > 1:
                    merged.append(CellArea(row_at, at, row_at + rows - 1, at + columns - 1))
            for note in element.iterchildren(qualify_name("office:annotation")):
                sheet.notes[row_at, at] = " ".join(map(read_words, note.iter(qualify_name("text:p"))))
            at += times
        if cells:
            sheet.rows |= dict.fromkeys(range(row_at, row_at + repeated), cells)
        row_at += repeated
    drawn = f"{{{NAMESPACES['draw']}}}"
    for shape in table.iter(f"{drawn}*"):
        sheet.beside.append("\n".join(map(read_words, shape.iterchildren(qualify_name("text:p")))))
    sheet.drop_hidden(
        {at for rows in hidden for at in rows if at in sheet.rows},
        {at for at in _list_hidden_columns(table) if at <= _MOST_COLUMNS},
    )
    return sheet


def _is_hidden(element: Element, group: str) -> bool:
    is_collapsed = element.get(qualify_name("table:visibility")) == "collapse"
    return is_collapsed and next(element.iterancestors(qualify_name(group)), None) is None


def _list_hidden_columns(table: Element) -> Iterator[int]:
    at = 1
    for column in table.iter(qualify_name("table:table-column")):
        repeated = read_number(column, "columns-repeated")
        if _is_hidden(column, "table:table-column-group"):
            yield from range(at, min(at + repeated, _MOST_COLUMNS))
        at += repeated


def _read_value(cell: Element) -> str:
    words = " ".join(read_words(paragraph) for paragraph in cell.iterchildren(qualify_name("text:p")))
    kind = cell.get(qualify_name("office:value-type"))
    if kind == "date":
        return _format_date(words, cell.get(qualify_name("office:date-value")) or "")
    if kind not in ("float", "currency", "percentage"):
        return words or make_canonical_text(cell.get(qualify_name("office:string-value")) or "")
    value = float(cell.get(qualify_name("office:value")) or "nan")
    if value != value:
        return words
    if not words or (value == 0 and not any(map(str.isalnum, words))):
        return show_value(value, "0.##########%" if kind == "percentage" else "General")
    shown = _SHOWN_NUMBER.search(words)
    plain = _parse_shown_number(shown[0], abs(value)) if shown else ""
    if not shown or not plain:
        return words
    before, behind = words[: shown.start()], words[shown.end() :]
    if value < 0 and "-" not in before and "−" not in before:
        before, behind = f"-{before.replace('(', '')}", behind.replace(")", "")
    return f"{before}{plain}{behind}"


def _parse_shown_number(shown: str, value: float) -> str:
    """Return the number in ``shown`` with a decimal point; empty if the number does not equal ``value``.

    ``shown`` may be rounded, and be in percent, thousands or millions.
    """
    for scaled in (value, value * 100, value / 1e3, value / 1e6):
        for place in {len(shown), shown.rfind("."), shown.rfind(",")} - {-1}:
            whole, decimals = re.sub(r"\D", "", shown[:place]), shown[place + 1 :]
            if decimals.isdigit() or not decimals:
                plain = f"{whole}.{decimals}" if decimals else whole
                if abs(float(plain) - scaled) <= 0.51 * 10 ** -len(decimals):
                    return plain
    return ""


def _format_date(words: str, value: str) -> str:
    day, _, time = value.partition("T")
    numbers = re.findall(r"\d+", words)
    is_whole = len(numbers) > 2 or (len(numbers) == 2 and re.search(r"[^\W\d]{3}", words))
    if not is_whole and words:
        return words
    clock = _SHOWN_TIME.search(words)
    return f"{day} {clock[0] if clock else '' if words else time[:5]}".strip()
