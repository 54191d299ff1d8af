"""Convert OpenDocument texts (ODT) and presentations (ODP) to Markdown."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from retrieval.documents.extraction.archive import parse_xml
from retrieval.documents.extraction.office_xml import is_blank_or_page_number
from retrieval.documents.extraction.opendocument_parts import OpenDocumentNumbering, add_generated_text
from retrieval.documents.extraction.opendocument_sheet import (
    NAMESPACES,
    Element,
    find_styles,
    list_rows,
    load_content,
    qualify_name,
    read_number,
    read_words,
)
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread_merged_cells
from retrieval.text.extracted import ExtractedText, ExtractionLimits, describe_left_out_parts

# Skipped elements repeat headings, or contain deleted text, comments or notes of a slide.
_PASSED_OVER = frozenset(
    map(
        qualify_name,
        (
            "text:table-of-content",
            "text:alphabetical-index",
            "text:tracked-changes",
            "text:sequence-decls",
            "office:forms",
            "office:annotation",
            "presentation:notes",
        ),
    )
)
_MOST_COLUMNS = 1_000
_MOST_STYLES_ABOVE = 10


def extract_opendocument_text(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    writer = MarkdownWriter(filename, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        styles = _read_part(archive, "styles.xml")
        add_generated_text(root, archive)
    body = root.find(f".//{qualify_name('office:text')}")
    if body is not None:
        _Body(root, writer, styles).write(body)
    for words in _read_margins(styles):
        writer.add_paragraph(words)
    return writer.build_extracted_text(title or writer.first_title)


def extract_opendocument_slides(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    writer = MarkdownWriter(filename, limits)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        body = _Body(root, writer, _read_part(archive, "styles.xml"))
        add_generated_text(root, archive)
    not_shown = find_styles(root, "style:drawing-page-properties", "presentation:visibility", "hidden")
    hidden = []
    for number, page in enumerate(root.findall(".//draw:page", NAMESPACES), start=1):
        writer.begin_page()
        if page.get(qualify_name("draw:style-name")) in not_shown:
            hidden.append(str(number))
        else:
            _write_slide(page, number, body, writer)
    return writer.build_extracted_text(title or writer.first_title, left_out=describe_left_out_parts("slides", hidden))


def _read_part(archive: zipfile.ZipFile, path: str) -> Element | None:
    return parse_xml(archive.read(path)) if path in archive.namelist() else None


def _read_margins(styles: Element | None) -> Iterator[str]:
    seen: set[str] = set()
    for page in styles.iter(qualify_name("style:master-page")) if styles is not None else ():
        for paragraph in page.iter(qualify_name("text:p")):
            words = read_words(paragraph)
            if words not in seen and not is_blank_or_page_number(words):
                seen.add(words)
                yield words


def _write_slide(page: Element, number: int, body: _Body, writer: MarkdownWriter) -> None:
    heading = page.find(".//draw:frame[@presentation:class='title']", NAMESPACES)
    writer.add_heading((read_words(heading) if heading is not None else "") or f"Slide {number}", 1)
    if heading is not None:
        heading.clear()
    body.write(page)
    for notes in page.findall("presentation:notes/draw:frame[@presentation:class='notes']", NAMESPACES):
        writer.add_notes(read_words(paragraph) for paragraph in notes.iter(qualify_name("text:p")))


class _Body:
    def __init__(self, root: Element, writer: MarkdownWriter, styles: Element | None) -> None:
        self._writer = writer
        self._numbers = OpenDocumentNumbering([root] if styles is None else [root, styles])
        self._parents = {
            style.get(qualify_name("style:name")): style.get(qualify_name("style:parent-style-name"))
            for style in root.iter(qualify_name("style:style"))
        }
        self._has_title = any(self._is_title(words) for words in root.iter(qualify_name("text:p")))

    def write(self, element: Element) -> None:
        for child in element:
            if not isinstance(child.tag, str) or child.tag in _PASSED_OVER:
                continue
            if child.tag == qualify_name("text:h"):
                self._write_heading(child)
            elif child.tag == qualify_name("text:p"):
                self._write_paragraph(child)
            elif child.tag == qualify_name("text:list"):
                self._write_list(child, 0, child.get(qualify_name("text:style-name")) or "")
            elif child.tag == qualify_name("table:table"):
                self._writer.add_table(_read_rows(child))
            else:
                self.write(child)

    def _write_heading(self, heading: Element) -> None:
        level = heading.get(qualify_name("text:outline-level")) or "1"
        number = (
            self._numbers.count_heading(int(level))
            if heading.get(qualify_name("text:is-list-header")) != "true"
            else ""
        )
        self._writer.add_heading(f"{number} {read_words(heading)}".strip(), self._has_title + int(level))

    def _write_paragraph(self, paragraph: Element) -> None:
        words = read_words(paragraph)
        if self._is_title(paragraph):
            self._writer.add_heading(words, 1)
        elif words:
            self._writer.add_paragraph(words)
        for table in paragraph.iter(qualify_name("table:table")):
            self._writer.add_table(_read_rows(table))

    def _is_title(self, paragraph: Element) -> bool:
        style = paragraph.get(qualify_name("text:style-name"))
        for _ in range(_MOST_STYLES_ABOVE):
            if style is None or style == "Title":
                break
            style = self._parents.get(style)
        return style == "Title"

    def _write_list(self, element: Element, level: int, style: str) -> None:
        if (
            level == 0
            and element.get(qualify_name("text:continue-numbering")) != "true"
            and not _continues_list(element)
        ):
            self._numbers.restart_numbering(style)
        for item in element:
            if item.tag not in (qualify_name("text:list-item"), qualify_name("text:list-header")):
                continue
            is_counted = item.tag == qualify_name("text:list-item")
            for child in item:
                if child.tag == qualify_name("text:list"):
                    self._write_list(child, level + 1, child.get(qualify_name("text:style-name")) or style)
                elif child.tag == qualify_name("text:h"):
                    self._write_heading(child)
                elif child.tag == qualify_name("text:p"):
                    start = item.get(qualify_name("text:start-value")) if is_counted else None
                    number = self._numbers.count(style, level + 1, start) if is_counted else ""
                    self._writer.add_item(read_words(child), level, number=number)
                    is_counted = False


def _continues_list(element: Element) -> bool:
    return element.get(qualify_name("text:continue-list")) is not None


def _read_rows(table: Element) -> list[list[str]]:
    return spread_merged_cells([list(_read_cells(row)) for row in list_rows(table)])


def _read_cells(row: Element) -> Iterator[TableCell]:
    count = 0
    for cell in row:
        if cell.tag == qualify_name("table:table-cell"):
            times = max(1, min(read_number(cell, "columns-repeated"), _MOST_COLUMNS - count))
            count += times
            text = " ".join(read_words(words) for words in cell.iter(qualify_name("text:p")))
            yield from [
                TableCell(text, read_number(cell, "columns-spanned"), read_number(cell, "rows-spanned"))
            ] * times
