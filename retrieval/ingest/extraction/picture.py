"""Pictures as documents: a photo of a page, a scan of several. All of their text is recognised."""

from __future__ import annotations

import io
from collections.abc import Mapping

from PIL import Image

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.lines import derive_title
from retrieval.ingest.extraction.pdf.printed import PrintedPage
from retrieval.ingest.extraction.pdf.reading_order import order_lines
from retrieval.ingest.extraction.pdf.text import compose
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits

_MOST_PIXELS = 150_000_000


def extract_picture(
    data: bytes,
    filename: str,
    media_type: str,
    limits: ExtractionLimits,
    recognised: Mapping[int, PrintedPage],
) -> ExtractedText:
    """The text of the pages that are ``recognised``; a GIF has one page, a TIFF as many as it holds."""
    with Image.open(io.BytesIO(data)) as image:
        if image.width * image.height > _MOST_PIXELS:
            raise DocumentRejected(
                f"{filename} has more than {_MOST_PIXELS // 10**6} million pixels: save it smaller and upload that."
            )
        count = getattr(image, "n_frames", 1) if media_type == "image/tiff" else 1
    if count > limits.max_pages:
        raise DocumentRejected(
            f"{filename} has more than {limits.max_pages:,} pages: split it into smaller files and upload those."
        )
    printed = [recognised.get(number) or PrintedPage(1.0, 1.0, []) for number in range(1, count + 1)]
    for page in printed:
        page.lines = order_lines(page.lines, page.height)
    text, pages, sections = compose(printed)
    return ExtractedText(
        text=text,
        media_type=media_type,
        title=sections[0].title if sections else derive_title(filename),
        sections=tuple(sections),
        pages=tuple(pages),
        unread_pages=tuple(number for number in range(1, count + 1) if number not in recognised),
    )
