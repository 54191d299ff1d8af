"""Read markup and older office formats: the engine xberg writes them as HTML, which is read as a page is.

The engine is imported here alone, so that it can be exchanged. It gets the bytes and no address, and runs without its
cache, models, recognition of pictures and more than one thread. docs/adr/0049-engine-for-formats.md says which formats.
"""

from __future__ import annotations

import asyncio
from typing import Any

import xberg

from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.markdown import with_structure
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import ExtractedText, ExtractionLimits, plain_title

_CONFIG = xberg.ExtractionConfig(
    output_format="html",
    disable_ocr=True,
    use_cache=False,
    enable_quality_processing=False,
    concurrency=xberg.ConcurrencyConfig(max_threads=1),
)


def extract_by_engine(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    """Return the text of a file that the engine reads. Raises: DocumentRejected where it cannot."""
    document = convert(data, filename, media_type)
    title = plain_title(canonical(document.metadata.title or ""))
    root = parse_html(canonical(document.content), filename)
    return with_structure(f"{convert_html(root)}\n" if root is not None else "", title)


def convert(data: bytes, filename: str, media_type: str) -> Any:
    """Return the engine's document, its content as HTML. Raises: DocumentRejected where it cannot read the file."""
    file = xberg.ExtractInput(
        kind=xberg.ExtractInputKind.BYTES, bytes=data, mime_type=media_type or None, filename=filename
    )

    async def extract() -> Any:
        return await xberg.extract(file, _CONFIG)

    result = asyncio.run(extract())
    if not result.results:
        reasons = "; ".join(str(error) for error in result.errors)[:200]
        raise DocumentRejected(f"{filename} could not be read ({reasons}): save it again in its program.")
    return result.results[0]
