"""From the bytes of an uploaded file to canonical text with headings, pages and blocks at exact offsets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction import detection
from retrieval.ingest.extraction.limits import ExtractionLimits, too_much_text
from retrieval.ingest.extraction.types import ExtractedText, Page, Section, Span

__all__ = ["ExtractedText", "ExtractionLimits", "Page", "Section", "Span", "extract"]

_DEFAULT_LIMITS = ExtractionLimits()
_WORD = re.compile(r"\w")


def extract(
    data: bytes, filename: str, declared_media_type: str = "", *, limits: ExtractionLimits = _DEFAULT_LIMITS
) -> ExtractedText:
    """The text of ``data`` and its structure.

    ``filename`` decides between text formats and names the file in messages; binary formats are told by their content,
    and ``declared_media_type`` counts only for a name without a known extension.

    Raises: DocumentRejected when there is no text in it that can be searched, or the file is past ``limits``.
    """
    name = _printable(filename)
    if not data:
        raise DocumentRejected(f"{name} is empty: check the file and upload it again.")
    if len(data) > limits.max_bytes:
        raise DocumentRejected(
            f"{name} is larger than {limits.max_bytes // 1_000_000} MB: split it into smaller files and upload those."
        )
    media_type = detection.detect(data, name, declared_media_type)
    extractor, kind = _extractor(media_type)
    try:
        extracted = extractor(data, name, media_type, limits)
    except DocumentRejected:
        raise
    except Exception as error:  # Parsers of untrusted files raise anything; each such file is one rejected file.
        raise DocumentRejected(
            f"{name} could not be read as {kind} ({type(error).__name__}): save it anew in its program and upload that."
        ) from error
    if not _WORD.search(extracted.text):
        raise DocumentRejected(f"{name} holds no text: check the file and upload it again.")
    if len(extracted.text) > limits.max_text_chars:
        raise too_much_text(name, limits)
    return _in_order(extracted)


_Extractor = Callable[[bytes, str, str, ExtractionLimits], ExtractedText]


def _extractor(media_type: str) -> tuple[_Extractor, str]:
    """The function that reads ``media_type``, and the format's name. Parsers are imported when first needed: they are
    slow to load.
    """
    match media_type:
        case detection.PDF:
            from retrieval.ingest.extraction.pdf import extract_pdf

            return extract_pdf, "PDF"
        case detection.DOCX:
            from retrieval.ingest.extraction.word import extract_docx

            return extract_docx, "a Word document"
        case detection.HTML:
            from retrieval.ingest.extraction.html import extract_html

            return extract_html, "HTML"
        case detection.MARKDOWN:
            from retrieval.ingest.extraction.markdown import extract_markdown

            return extract_markdown, "Markdown"
        case detection.CSV | detection.TSV:
            from retrieval.ingest.extraction.tabular import extract_table

            return extract_table, "a table"
        case detection.PLAIN | detection.RST:
            from retrieval.ingest.extraction.plain import extract_plain

            return extract_plain, "text"
        case _:
            from retrieval.ingest.extraction.source_code import extract_source

            return extract_source, "source code"


def _printable(filename: str) -> str:
    name = PurePosixPath(filename.replace("\\", "/")).name
    return "".join(char for char in name if char.isprintable())[:150] or "The file"


def _in_order(extracted: ExtractedText) -> ExtractedText:
    """``extracted`` with its marks sorted and headings without words dropped."""
    sections = sorted((section for section in extracted.sections if section.title), key=lambda section: section.start)
    protected = sorted(extracted.protected, key=lambda span: span.start)
    return replace(extracted, sections=tuple(sections), protected=tuple(protected))
