"""PDF: the text of its pages, with the headings that its bookmarks name or its fonts show."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pypdfium2
import pypdfium2.raw as pdfium_c

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.embedded import EmbeddedPictures
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.pdf.furniture import drop_furniture
from retrieval.ingest.extraction.pdf.page import find_rules, is_picture, read_page
from retrieval.ingest.extraction.pdf.pictures import add_pictures
from retrieval.ingest.extraction.pdf.printed import PrintedLine, PrintedPage
from retrieval.ingest.extraction.pdf.reading_order import order_lines
from retrieval.ingest.extraction.pdf.tables import join_tables, set_tables
from retrieval.ingest.extraction.pdf.text import compose, largest_heading
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, Page, Section, too_much_text

# What programs write where nobody gave a title.
_NO_TITLE = re.compile(
    r"(?:untitled|microsoft \w+ - .*|.*\.(?:docx?|odt|tex|dvi|ps|indd|qxd|pdf|rtf|pptx?|xlsx?))", re.I
)
_FEWEST_BOOKMARKS = 3

_Outline = list[tuple[int, str, int]]


def extract_pdf(
    data: bytes,
    filename: str,
    media_type: str,
    limits: ExtractionLimits,
    recognised: Mapping[int, PrintedPage],
    pictures: EmbeddedPictures,
) -> ExtractedText:
    """Pages that are ``recognised`` have the text that was recognised, whatever else the file says of them."""
    read, scans, outline, metadata = _read(data, filename, limits, pictures)
    for number, page in recognised.items():
        if 1 <= number <= len(read):
            page.lines = _order(page)
            read[number - 1] = page
    drop_furniture(read)
    join_tables(read)
    text, pages, headings = compose(read)
    bookmarks = _locate_sections(text, pages, outline)
    return ExtractedText(
        text=text,
        media_type=media_type,
        title=_find_title(canonical(metadata.get("Title", "")), read) or derive_title(filename),
        # Bookmarks are what the author calls headings; what the fonts show is a guess.
        unread_pages=tuple(number for number in scans if number not in recognised),
        sections=tuple(bookmarks if len(bookmarks) >= _FEWEST_BOOKMARKS or not headings else headings),
        pages=tuple(pages),
        metadata={
            key.lower(): canonical(value)
            for key, value in metadata.items()
            if value and key in {"Author", "Subject", "Keywords"}
        },
    )


def _read(
    data: bytes, filename: str, limits: ExtractionLimits, pictures: EmbeddedPictures
) -> tuple[list[PrintedPage], list[int], _Outline, dict[str, str]]:
    """The pages, the numbers of those that are pictures, the bookmarks and the file's own description.

    pdfium is not thread-safe: this is for a process of one thread.
    """
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
        if len(document) > limits.max_pages:
            raise DocumentRejected(
                f"{filename} has more than {limits.max_pages:,} pages: split it into smaller files and upload those."
            )
        pages: list[PrintedPage] = []
        scans: list[int] = []
        total = 0
        for number in range(len(document)):
            page = document[number]
            printed = read_page(page)
            is_scan = is_picture(page, printed)
            if is_scan:
                scans.append(number + 1)
            printed.lines = set_tables(printed.lines, find_rules(page, printed))
            printed.lines = _order(printed)
            if not is_scan:
                add_pictures(page, printed, pictures)
            page.close()
            total += sum(len(line.text) for line in printed.lines)
            pages.append(printed)
            if total > limits.max_text_chars:
                raise too_much_text(filename, limits)
        return pages, scans, _read_outline(document), document.get_metadata_dict(skip_empty=True)
    finally:
        document.close()


def _order(page: PrintedPage) -> list[PrintedLine]:
    lines = order_lines(page.lines, page.height)
    for line in lines:
        line.boxes = []
    return lines


def _find_title(declared: str, pages: list[PrintedPage]) -> str:
    title = plain_title(declared)
    return title if title and not _NO_TITLE.fullmatch(title) else largest_heading(pages)


def _read_outline(document: pypdfium2.PdfDocument) -> _Outline:
    """The bookmarks as (level from 1, title, page index from 0)."""
    found: _Outline = []
    for bookmark in document.get_toc(max_depth=6):
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = plain_title(canonical(bookmark.get_title() or ""))
        if index is not None and title:
            found.append((bookmark.level + 1, title, index))
        if len(found) >= 10_000:
            break
    return found


def _locate_sections(text: str, pages: list[Page], outline: _Outline) -> list[Section]:
    """The bookmarks whose words stand on the page they point to, as headings there; the others are left out."""
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
