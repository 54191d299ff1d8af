"""Convert an uploaded file to text, with the offsets of headings, pages and blocks."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from retrieval.documents import formats
from retrieval.documents.extraction.container import find_left_out_content
from retrieval.documents.extraction.printed import PrintedPage
from retrieval.documents.formats import Format
from retrieval.exceptions import DocumentRejected
from retrieval.media_types import DOCX, EPUB, ODP, ODT, PPTX, XLSX
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Page,
    Section,
    Span,
    build_too_much_text_error,
    derive_title,
)

__all__ = ["ExtractedText", "ExtractionLimits", "Page", "Section", "Span", "extract"]

_DEFAULT_LIMITS = ExtractionLimits()
# libxml2's error code for exhausted memory.
_XML_NO_MEMORY = 2
# Formats whose text is compared with the XML of the file, to find lost words.
_CONTAINERS = frozenset({DOCX, PPTX, ODT, ODP, EPUB, XLSX})
_WORD = re.compile(r"\w")


def extract(
    data: bytes,
    filename: str,
    *,
    limits: ExtractionLimits = _DEFAULT_LIMITS,
    recognised: Mapping[int, PrintedPage] | None = None,
) -> ExtractedText:
    """Return the text and the structure of a file.

    ``recognised`` maps numbers of pages to the text from OCR. For untrusted files, use
    :func:`retrieval.documents.extraction.sandboxed.extract_in_sandbox`. Raises: DocumentRejected if the file has no
    searchable text or exceeds ``limits``.
    """
    name = printable_name(filename)
    if not data:
        raise DocumentRejected(f"{name} is empty: check the file and upload it again.")
    if len(data) > limits.max_bytes:
        raise DocumentRejected(
            f"{name} is larger than {limits.max_bytes // 1_000_000} MB: split it into smaller files and upload those."
        )
    detected = formats.detect_format(data, name)
    extracted = _parse(detected, data, name, limits, recognised or {})
    if not _WORD.search(extracted.text) and not extracted.unread_pages:
        raise DocumentRejected(f"{name} holds no text: check the file and upload it again.")
    if len(extracted.text) > limits.max_text_chars:
        raise build_too_much_text_error(name, limits)
    if detected.media_type in _CONTAINERS:
        known = {each.kind for each in extracted.left_out}
        unread = (each for each in find_left_out_content(data, extracted) if each.kind not in known)
        extracted = replace(extracted, left_out=(*extracted.left_out, *unread))
    return replace(
        extracted,
        media_type=extracted.media_type or detected.media_type,
        title=extracted.title or derive_title(name),
        sections=sorted(
            (section for section in extracted.sections if section.title), key=lambda section: section.start
        ),
        protected=sorted(extracted.protected, key=lambda span: span.start),
    )


def _parse(
    detected: Format, data: bytes, name: str, limits: ExtractionLimits, recognised: Mapping[int, PrintedPage]
) -> ExtractedText:
    module, _, function = detected.extractor.partition(":")
    parser = getattr(importlib.import_module(module), function)
    more = {"recognised": recognised} if detected.may_be_scanned else {}
    try:
        return parser(data, name, detected.media_type, limits, **more)  # type: ignore[no-any-return]
    except (DocumentRejected, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentRejected(
            f"{name} is nested more deeply than {detected.kind} can be read: "
            "save it again in its program and upload that."
        ) from error
    except Exception as error:
        if getattr(error, "code", None) == _XML_NO_MEMORY and type(error).__name__ == "XMLSyntaxError":
            raise MemoryError from error
        # Parsers of untrusted files may raise any exception.
        raise DocumentRejected(
            f"{name} could not be read as {detected.kind} ({type(error).__name__}): "
            "save it again in its program and upload that."
        ) from error


def printable_name(filename: str) -> str:
    name = PurePosixPath(filename.replace("\\", "/")).name
    return "".join(char for char in name if char.isprintable())[:150] or "The file"
