"""ODT and ODP: headings, paragraphs, lists and tables in their order; of a presentation a page a slide."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from retrieval.ingest.extraction.embedded import EmbeddedPictures
from retrieval.ingest.extraction.lines import derive_title
from retrieval.ingest.extraction.merged_cells import TableCell, spread
from retrieval.ingest.extraction.office.opendocument import (
    Element,
    find_properties,
    load_content,
    name,
    read_words,
)
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, leave_out
from retrieval.ingest.extraction.writer import MarkdownWriter

# What repeats the headings, and what was struck out.
_PASSED_OVER = frozenset(
    map(
        name,
        (
            "text:table-of-content",
            "text:alphabetical-index",
            "text:tracked-changes",
            "text:sequence-decls",
            "office:forms",
        ),
    )
)
_MOST_COLUMNS = 1_000
_MOST_STYLES_ABOVE = 10


def extract_opendocument_text(
    data: bytes, filename: str, media_type: str, limits: ExtractionLimits, pictures: EmbeddedPictures
) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    writer = MarkdownWriter(filename, limits)
    body = root.find(f".//{name('office:text')}")
    if body is not None:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            _Body(root, writer, archive, pictures).write(body)
    title = title or next((section.title for section in writer.sections if section.level == 1), "")
    return writer.finish(media_type=media_type, title=title or derive_title(filename))


def extract_opendocument_slides(
    data: bytes, filename: str, media_type: str, limits: ExtractionLimits, pictures: EmbeddedPictures
) -> ExtractedText:
    root, title = load_content(data, filename, limits)
    writer = MarkdownWriter(filename, limits)
    styles = find_properties(root, "drawing-page", "style:drawing-page-properties")
    body = _Body(root, writer, zipfile.ZipFile(io.BytesIO(data)), pictures)
    hidden = []
    for number, page in enumerate(root.iter(name("draw:page")), start=1):
        writer.begin_page()
        style = styles.get(page.get(name("draw:style-name")) or "", {})
        if style.get(name("presentation:visibility")) == "hidden":
            hidden.append(number)
        else:
            _write_slide(page, number, body, writer)
    title = title or (writer.sections[0].title if writer.sections else "")
    return writer.finish(
        media_type=media_type,
        title=title or derive_title(filename),
        left_out=leave_out("slides", [str(number) for number in hidden]),
    )


def _write_slide(page: Element, number: int, body: _Body, writer: MarkdownWriter) -> None:
    frames = list(page.iter(name("draw:frame")))
    titles = [frame for frame in frames if frame.get(name("presentation:class")) == "title"]
    words = " ".join(read_words(titles[0]).split()) if titles else ""
    writer.add_heading(words or f"Slide {number}", 1)
    notes = page.find(name("presentation:notes"))
    of_notes = set(notes.iter(name("draw:frame"))) if notes is not None else set()
    for frame in frames:
        if frame not in titles and frame not in of_notes:
            body.write(frame)
    for shape in page.iter(name("draw:custom-shape")):
        body.write(shape)
    for frame in of_notes:
        if frame.get(name("presentation:class")) == "notes":
            writer.add_notes(read_words(words) for words in frame.iter(name("text:p")))


class _Body:
    def __init__(
        self, root: Element, writer: MarkdownWriter, archive: zipfile.ZipFile, pictures: EmbeddedPictures
    ) -> None:
        self._writer = writer
        self._archive = archive
        self._pictures = pictures
        self._names = frozenset(archive.namelist())
        self._parents = {
            style.get(name("style:name")): style.get(name("style:parent-style-name"))
            for style in root.iter(name("style:style"))
        }
        self._numbered = {
            (style.get(name("style:name")), level.get(name("text:level")))
            for style in root.iter(name("text:list-style"))
            for level in style.iterchildren(name("text:list-level-style-number"))
            if level.get(name("style:num-format"))
        }
        self._has_title = any(self._is_title(words) for words in root.iter(name("text:p")))

    def write(self, element: Element) -> None:
        for child in element:
            if not isinstance(child.tag, str) or child.tag in _PASSED_OVER:
                continue
            if child.tag == name("text:h"):
                level = child.get(name("text:outline-level")) or "1"
                self._writer.add_heading(read_words(child), self._has_title + int(level))
            elif child.tag == name("text:p"):
                self._write_paragraph(child)
            elif child.tag == name("text:list"):
                self._write_list(child, 0, child.get(name("text:style-name")) or "")
            elif child.tag == name("table:table"):
                self._writer.add_table(_read_rows(child))
                self._write_pictures(child)
            elif child.tag == name("draw:image"):
                self._write_picture(child)
            else:
                self.write(child)

    def _write_pictures(self, element: Element) -> None:
        for image in element.iter(name("draw:image")):
            self._write_picture(image)

    def _write_picture(self, image: Element) -> None:
        path = (image.get(name("xlink:href")) or "").removeprefix("./")
        if path in self._names:
            self._writer.add_paragraph(self._pictures.read(self._archive.read(path)))

    def _write_paragraph(self, paragraph: Element) -> None:
        words = read_words(paragraph)
        if self._is_title(paragraph):
            self._writer.add_heading(words, 1)
        elif words:
            self._writer.add_paragraph(words)
        for table in paragraph.iter(name("table:table")):
            self._writer.add_table(_read_rows(table))
        self._write_pictures(paragraph)

    def _is_title(self, paragraph: Element) -> bool:
        style = paragraph.get(name("text:style-name"))
        for _ in range(_MOST_STYLES_ABOVE):
            if style is None or style == "Title":
                break
            style = self._parents.get(style)
        return style == "Title"

    def _write_list(self, element: Element, level: int, style: str) -> None:
        is_numbered = (style, str(level + 1)) in self._numbered
        for item in element:
            if item.tag not in (name("text:list-item"), name("text:list-header")):
                continue
            for child in item:
                if child.tag == name("text:list"):
                    self._write_list(child, level + 1, child.get(name("text:style-name")) or style)
                elif child.tag == name("text:h"):
                    outline = child.get(name("text:outline-level")) or "1"
                    self._writer.add_heading(read_words(child), self._has_title + int(outline))
                elif child.tag == name("text:p"):
                    self._writer.add_item(read_words(child), level, is_numbered=is_numbered)


def _read_rows(table: Element) -> list[list[str]]:
    rows = table.iter(name("table:table-row"))
    return spread([list(_read_cells(row)) for row in rows if next(row.iterancestors(name("table:table"))) is table])


def _read_cells(row: Element) -> Iterator[TableCell]:
    """The cells of a row but for those that merged ones cover."""
    count = 0
    for cell in row:
        if cell.tag == name("table:table-cell"):
            times = max(1, min(_read_count(cell, "columns-repeated"), _MOST_COLUMNS - count))
            count += times
            text = " ".join(read_words(words) for words in cell.iter(name("text:p")))
            yield from [
                TableCell(text, _read_count(cell, "columns-spanned"), _read_count(cell, "rows-spanned"))
            ] * times


def _read_count(cell: Element, what: str) -> int:
    return int(cell.get(name(f"table:number-{what}")) or 1)
