"""Extract the text of PDF files and pictures, with headings from bookmarks or font sizes."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c
from PIL import Image

from retrieval.documents.extraction.archive import MemberCollector
from retrieval.documents.extraction.completeness import find_lost_words
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.pdf_added import AddedPdfContent
from retrieval.documents.extraction.pdf_page import find_ruled_lines, needs_ocr, read_page
from retrieval.documents.extraction.printed import PrintedLine, PrintedPage, order_lines
from retrieval.documents.extraction.printed_tables import join_tables, replace_by_tables
from retrieval.documents.extraction.printed_text import find_largest_heading, join_printed_lines
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Page,
    Section,
    build_too_much_text_error,
    describe_left_out_parts,
    read_declared_title,
    strip_title,
)

_EDGE_LINES = 2
_FEWEST_PAGES = 4
_SHARE = 0.6
_PLACE_SHARE = 0.4
_MOST_CHARACTERS = 120
# Vertical positions are rounded to this many points, to find lines at the same position of several pages.
_PLACE = 4.0
_NUMBER = re.compile(r"\d{1,9}")
_ROMAN = re.compile(r"(?<!\w)[ivxlc]{1,7}$", re.I)
_MOST_NUMBERS = 5

_Shape = tuple[str, str]


def drop_running_headers(pages: Sequence[PrintedPage]) -> None:
    """Remove running headers and footers from ``pages``."""
    if len(pages) < _FEWEST_PAGES:
        return
    seen: Counter[_Shape] = Counter()
    places: Counter[tuple[str, int]] = Counter()
    edges = [_find_edge_lines(page, index) for index, page in enumerate(pages)]
    for found in edges:
        seen.update({shape for _, shapes, _ in found for shape in shapes})
        places.update({place for _, _, place in found if place})
    written = sum(bool(page.lines) for page in pages)
    most = max(3, _SHARE * written)
    for page, found in zip(pages, edges, strict=True):
        dropped = [
            line
            for line, shapes, place in found
            if any(
                seen[shape] >= most
                or (seen[shape] >= 2 and place and places[place] >= max(_FEWEST_PAGES, _PLACE_SHARE * written))
                for shape in shapes
            )
        ]
        left = [line for line in page.lines if not any(line is gone for gone in dropped)]
        page.lines = left or page.lines


def _find_edge_lines(page: PrintedPage, index: int) -> list[tuple[PrintedLine, list[_Shape], tuple[str, int] | None]]:
    """Return the two highest and two lowest lines of a page, each with its variants and its position.

    A position is the edge ("top" or "bottom") and the line's distance from the top of the page, in steps of _PLACE
    points. It is None, except for an outermost line whose middle is more than 1.5 font sizes from the middle of the
    next line. Lines at the same height count as one.
    """
    rows = sorted(page.lines, key=lambda line: line.middle_y)
    found = []
    for edge, outer, step in (("top", 0, 1), ("bottom", len(rows) - 1, -1)):
        at, levels = outer, 0
        previous: PrintedLine | None = None
        while 0 <= at < len(rows):
            line = rows[at]
            is_new = previous is None or abs(line.middle_y - previous.middle_y) > 0.5 * line.size
            levels += is_new
            if levels > _EDGE_LINES:
                break
            inner = next(
                (other for other in rows[at + step :: step] if abs(other.middle_y - line.middle_y) > 0.5 * line.size),
                None,
            )
            is_apart = levels == 1 and inner is not None and abs(inner.middle_y - line.middle_y) > 1.5 * line.size
            place = (edge, round(line.middle_y / _PLACE)) if is_apart else None
            found.append((line, list(_list_page_number_variants(edge, line.text, index)), place))
            previous = line
            at += step
    return found


def _list_page_number_variants(edge: str, text: str, index: int) -> list[_Shape]:
    """Return the line, and for each number in it, a variant with the number's difference from ``index``.

    Running titles with page numbers share a variant, because the number and ``index`` grow together.
    """
    line = " ".join(text.split())
    if len(line) > _MOST_CHARACTERS:
        return []
    shapes = [(edge, f"={line}")]
    for number in islice(_NUMBER.finditer(line), _MOST_NUMBERS):
        rest = f"{line[: number.start()]}#{line[number.end() :]}"
        shapes.append((edge, f"{rest}+{int(number[0]) - index}"))
    if roman := _ROMAN.search(line):
        shapes.append((edge, f"{line[: roman.start()]}roman"))
    return shapes


# If there are fewer bookmarks, headings in the text are preferred.
_FEWEST_BOOKMARKS = 3

_Outline = list[tuple[int, str, int]]


def extract_pdf(
    data: bytes,
    filename: str,
    media_type: str,
    limits: ExtractionLimits,
    recognised: Mapping[int, PrintedPage],
) -> ExtractedText:
    """Return the text of a PDF. For pages in ``recognised``, OCR's text replaces the file's own.

    Raises: DocumentRejected if the file is protected, damaged or too long.
    """
    with _open(data, filename, limits) as document:
        members = MemberCollector(filename, limits)
        added = AddedPdfContent(document, data, members)
        added.read_attachments()
        pages, unread, written = _read_pages(document, added, filename, limits, recognised)
        outline, declared = _read_outline(document), document.get_metadata_value("Title")
        left_out = (
            *members.left_out_parts,
            *describe_left_out_parts("comments", (), added.comments),
            *added.hidden_layers,
            *describe_left_out_parts("form", (), int(added.is_xfa_form())),
        )
    lines = [line for page in pages for line in page.lines]
    drop_running_headers(pages)
    join_tables(pages)
    text, places, headings = join_printed_lines(pages)
    kept = {id(line) for page in pages for line in page.lines}
    dropped = [line.text for line in lines if id(line) not in kept]
    lost = find_lost_words("\n".join([*written, *added.texts]), "\n".join([text, *dropped]))
    bookmarks = _locate_sections(text, places, outline)
    title = read_declared_title(make_canonical_text(declared))
    return ExtractedText(
        text,
        title=title or find_largest_heading(pages),
        unread_pages=unread,
        sections=bookmarks if len(bookmarks) >= _FEWEST_BOOKMARKS or not headings else headings,
        pages=places,
        members=members.member_files,
        left_out=(*left_out, *describe_left_out_parts("words", lost)),
    )


@contextmanager
def _open(data: bytes, filename: str, limits: ExtractionLimits) -> Iterator[Any]:
    """Open a PDF file for a `with` block. Use it in one thread only, because pdfium is not thread-safe."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise DocumentRejected(
                f"{filename} is password-protected: remove the password and upload it again."
            ) from error
        raise DocumentRejected(
            f"{filename} is a damaged PDF: print or save it as PDF again and upload that."
        ) from error
    try:
        _check_count(len(document), filename, limits)
        yield document
    finally:
        document.close()


def _check_count(pages: int, filename: str, limits: ExtractionLimits) -> None:
    if pages > limits.max_pages:
        raise DocumentRejected(
            f"{filename} has more than {limits.max_pages:,} pages: split it into smaller files and upload those."
        )


def _read_pages(
    document: Any,
    added: AddedPdfContent,
    filename: str,
    limits: ExtractionLimits,
    recognised: Mapping[int, PrintedPage],
) -> tuple[list[PrintedPage], list[int], list[str]]:
    pages: list[PrintedPage] = []
    unread: list[int] = []
    written: list[str] = []
    total = 0
    for number in range(1, len(document) + 1):
        page = document[number - 1]
        added.hide_undrawn_layers(page)
        printed = recognised.get(number) or read_page(page)
        is_read = number not in recognised and not needs_ocr(page, printed)
        if is_read:
            written.append(printed.words)
        elif number not in recognised:
            unread.append(number)
        added.read_annotations(page, printed)
        if number not in recognised:
            printed.lines = replace_by_tables(printed.lines, find_ruled_lines(page, printed))
        printed.lines = order_lines(printed.lines, printed.height)
        for line in printed.lines:
            line.boxes = []
        page.close()
        total += sum(len(line.text) for line in [*printed.lines, *printed.aside])
        pages.append(printed)
        if total > limits.max_text_chars:
            raise build_too_much_text_error(filename, limits)
    return pages, unread, written


def _read_outline(document: pypdfium2.PdfDocument) -> _Outline:
    found: _Outline = []
    for bookmark in document.get_toc(max_depth=6):
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = strip_title(make_canonical_text(bookmark.get_title() or ""))
        if index is not None and title:
            found.append((bookmark.level + 1, title, index))
        if len(found) >= 10_000:
            break
    return found


def _locate_sections(text: str, pages: list[Page], outline: _Outline) -> list[Section]:
    sections: list[Section] = []
    after = 0
    for level, title, index in outline:
        if not 0 <= index < len(pages):
            continue
        page = pages[index]
        pattern = re.compile(
            r"^[ \t]*+(?:[\dA-Z][\d.]*+\s++)?" + r"\s++".join(map(re.escape, title.split())), re.M | re.I
        )
        match = pattern.search(text, max(page.start, after), page.end)
        if match:
            sections.append(Section(match.start(), level, title))
            after = match.end()
    return sections


_PICTURE_MOST_PIXELS = 150_000_000


def extract_picture(
    data: bytes,
    filename: str,
    media_type: str,
    limits: ExtractionLimits,
    recognised: Mapping[int, PrintedPage],
) -> ExtractedText:
    """Return the text that OCR recognised in an image file. Only a TIFF file can have several pages.

    ``recognised`` maps page numbers to pages. Raises: DocumentRejected for too many pixels or pages.
    """
    with Image.open(io.BytesIO(data)) as image:
        if image.width * image.height > _PICTURE_MOST_PIXELS:
            raise DocumentRejected(
                f"{filename} has more than {_PICTURE_MOST_PIXELS // 10**6} million pixels: "
                "save it smaller and upload that."
            )
        count = getattr(image, "n_frames", 1) if media_type == "image/tiff" else 1
    _check_count(count, filename, limits)
    printed = [recognised.get(number) or PrintedPage(1.0, 1.0, []) for number in range(1, count + 1)]
    for page in printed:
        page.lines = order_lines(page.lines, page.height)
    text, pages, sections = join_printed_lines(printed)
    title = sections[0].title if sections else ""
    unread = [number for number in range(1, count + 1) if number not in recognised]
    return ExtractedText(text, title=title, sections=sections, pages=pages, unread_pages=unread)
