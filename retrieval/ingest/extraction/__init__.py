"""From the bytes of an uploaded file to canonical text with headings, pages and blocks at exact offsets."""

from __future__ import annotations

import importlib
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
# How libxml2 says it; lxml makes an error of syntax of it.
_XML_NO_MEMORY = 2
_WORD = re.compile(r"\w")


def extract(
    data: bytes, filename: str, declared_media_type: str = "", *, limits: ExtractionLimits = _DEFAULT_LIMITS
) -> ExtractedText:
    """The text of ``data`` and its structure.

    ``filename`` decides between text formats and names the file in messages; binary formats are told by their content,
    and ``declared_media_type`` counts only for a name without a known extension.

    Parsers run in this process and may take any time and memory: for files of others there is
    :func:`retrieval.ingest.extraction.sandboxed.extract_in_sandbox`.

    Raises: DocumentRejected when there is no text in it that can be searched, or the file is past ``limits``.
    """
    name = printable_name(filename)
    if not data:
        raise DocumentRejected(f"{name} is empty: check the file and upload it again.")
    if len(data) > limits.max_bytes:
        raise DocumentRejected(
            f"{name} is larger than {limits.max_bytes // 1_000_000} MB: split it into smaller files and upload those."
        )
    media_type = detection.detect(data, name, declared_media_type)
    reader, kind = _reader(media_type)
    try:
        extracted = reader(data, name, media_type, limits)
    except (DocumentRejected, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentRejected(
            f"{name} is nested more deeply than {kind} can be read: save it again in its program and upload that."
        ) from error
    except Exception as error:
        if getattr(error, "code", None) == _XML_NO_MEMORY and type(error).__name__ == "XMLSyntaxError":
            raise MemoryError from error
        # Parsers of untrusted files raise anything; each such file is one rejected file.
        raise DocumentRejected(
            f"{name} could not be read as {kind} ({type(error).__name__}): "
            "save it again in its program and upload that."
        ) from error
    if not _WORD.search(extracted.text):
        raise DocumentRejected(f"{name} holds no text: check the file and upload it again.")
    if len(extracted.text) > limits.max_text_chars:
        raise too_much_text(name, limits)
    return _in_order(extracted)


_Extractor = Callable[[bytes, str, str, ExtractionLimits], ExtractedText]

# The module and the function that read a media type, and the format's name; whatever is not here is source code.
_READERS = {
    detection.PDF: ("pdf", "extract_pdf", "PDF"),
    detection.DOCX: ("word", "extract_docx", "a Word document"),
    detection.HTML: ("html", "extract_html", "HTML"),
    detection.MARKDOWN: ("markdown", "extract_markdown", "Markdown"),
    detection.CSV: ("tabular", "extract_table", "a table"),
    detection.TSV: ("tabular", "extract_table", "a table"),
    detection.PLAIN: ("plain", "extract_plain", "text"),
    detection.RST: ("plain", "extract_plain", "text"),
}
_SOURCE_CODE = ("source_code", "extract_source", "source code")


def reader_module(media_type: str) -> str:
    """The name of the module that reads ``media_type``. Parsers are imported when first needed: they load slowly."""
    return f"{__name__}.{_READERS.get(media_type, _SOURCE_CODE)[0]}"


def _reader(media_type: str) -> tuple[_Extractor, str]:
    """The function that reads ``media_type``, and the format's name."""
    _, function, kind = _READERS.get(media_type, _SOURCE_CODE)
    return getattr(importlib.import_module(reader_module(media_type)), function), kind


def printable_name(filename: str) -> str:
    """The last part of ``filename`` as it stands in messages."""
    name = PurePosixPath(filename.replace("\\", "/")).name
    return "".join(char for char in name if char.isprintable())[:150] or "The file"


def _in_order(extracted: ExtractedText) -> ExtractedText:
    """``extracted`` with its marks sorted and headings without words dropped."""
    sections = sorted((section for section in extracted.sections if section.title), key=lambda section: section.start)
    protected = sorted(extracted.protected, key=lambda span: span.start)
    return replace(extracted, sections=tuple(sections), protected=tuple(protected))
