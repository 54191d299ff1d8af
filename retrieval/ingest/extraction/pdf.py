"""PDF: the text of each page, in reading order, with words joined that a line end had cut."""

from __future__ import annotations

import re
from collections import Counter

import pypdfium2
import pypdfium2.raw as pdfium_c

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.lines import derive_title, plain_title
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, Page, Section, too_much_text

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xa0": " "})
# pdfium writes U+FFFE or U+0002 where it recognised a hyphen at a line end.
_MARKED_HYPHEN = re.compile("[\x02\ufffe](?:\r?\n)?")
_CUT_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]++)-\n([^\W\d_A-Z]\w*)")
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff]")
_EDGE_LINES = 2
_MIN_PAGES_FOR_FURNITURE = 4
_FURNITURE_SHARE = 0.6
_MAX_FURNITURE_CHARS = 120

_Outline = list[tuple[int, str, int]]


def extract_pdf(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    raw_pages, outline, metadata = _read(data, filename, limits)
    visible = "".join(raw_pages)
    if not re.search(r"\w", visible):
        raise DocumentRejected(
            f"{filename} holds pictures of pages but no text: run text recognition (OCR) on it and upload the result."
        )
    if len(_UNREADABLE.findall(visible)) * 2 > len(re.findall(r"\S", visible)):
        raise DocumentRejected(
            f"{filename} has fonts whose text cannot be read: run text recognition (OCR) on it and upload the result."
        )
    pages_text = _drop_furniture([_clean_page(page) for page in raw_pages])
    compounds = set(re.findall(r"(?<![^\W\d_])[^\W\d_]++-[^\W\d_]\w*+", "\n".join(pages_text)))
    text, pages = _join_pages([_CUT_WORD.sub(lambda match: _mend_word(match, compounds), page) for page in pages_text])
    return ExtractedText(
        text=text,
        media_type=media_type,
        title=plain_title(canonical(metadata.get("Title", ""))) or derive_title(filename),
        sections=tuple(_locate_sections(text, pages, outline)),
        pages=tuple(pages),
        metadata={
            key.lower(): canonical(value)
            for key, value in metadata.items()
            if value and key in {"Author", "Subject", "Keywords"}
        },
    )


def _read(data: bytes, filename: str, limits: ExtractionLimits) -> tuple[list[str], _Outline, dict[str, str]]:
    """What pdfium makes of the file. pdfium is not thread-safe: this is for a process of one thread."""
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
        pages: list[str] = []
        total = 0
        for number in range(len(document)):
            page = document[number]
            textpage = page.get_textpage()
            pages.append(textpage.get_text_bounded())
            textpage.close()
            page.close()
            total += len(pages[-1])
            if total > limits.max_text_chars:
                raise too_much_text(filename, limits)
        return pages, _read_outline(document), document.get_metadata_dict(skip_empty=True)
    finally:
        document.close()


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


def _clean_page(page: str) -> str:
    text = canonical(_MARKED_HYPHEN.sub("-\n", page)).translate(_LIGATURES)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _mend_word(match: re.Match[str], compounds: set[str]) -> str:
    """A word cut at a line end, in one piece: with its hyphen when the file writes it so elsewhere, without
    otherwise.
    """
    whole = f"{match[1]}-{match[2]}"
    return whole if whole in compounds else match[1] + match[2]


def _drop_furniture(pages: list[str]) -> list[str]:
    """``pages`` without running headers and footers.

    A line is one when it is among the first or last two of its page and comes back, but for a number that counts with
    the pages, on most pages of the file. Nothing is dropped from files of fewer than four pages, nor from a page that
    would be left empty.
    """
    if len(pages) < _MIN_PAGES_FOR_FURNITURE:
        return pages
    seen: Counter[tuple[str, str]] = Counter()
    for index, page in enumerate(pages):
        seen.update({shape for _, shape in _find_edges(page.split("\n"), index)})
    written = sum(bool(page) for page in pages)
    furniture = {shape for shape, count in seen.items() if count >= max(3, _FURNITURE_SHARE * written)}
    kept = []
    for index, page in enumerate(pages):
        lines = page.split("\n")
        dropped = {at for at, shape in _find_edges(lines, index) if shape in furniture}
        left = "\n".join(line for at, line in enumerate(lines) if at not in dropped).strip("\n")
        kept.append(left or page)
    return kept


def _find_edges(lines: list[str], page_index: int) -> list[tuple[int, tuple[str, str]]]:
    """Position and shape of the outer lines: their words, and what their last number is beyond the page's index."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    places = [("top", at) for at in filled[:_EDGE_LINES]] + [("bottom", at) for at in filled[-_EDGE_LINES:]]
    edges = []
    for place, at in places:
        line = " ".join(lines[at].split())
        numbers = re.findall(r"\d{1,9}", line)
        if len(line) > _MAX_FURNITURE_CHARS:
            continue
        edges.append((at, (place, f"={line}")))
        for which in {0, len(numbers) - 1} if numbers else ():
            counted = iter(range(len(numbers)))
            shape = re.sub(r"\d{1,9}", lambda m, c=counted, w=which: "#" if next(c) == w else m[0], line)  # type: ignore[misc]
            edges.append((at, (place, f"{shape}+{int(numbers[which]) - page_index}")))
    return edges


def _join_pages(pages_text: list[str]) -> tuple[str, list[Page]]:
    pages: list[Page] = []
    start = 0
    for number, page in enumerate(pages_text, start=1):
        pages.append(Page(number, start, start + len(page)))
        start += len(page) + 2
    return "\n\n".join(pages_text) + "\n", pages


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
