"""Pictures on pages of a PDF file that have text of their own: their words where they stand. In the sandbox."""

from __future__ import annotations

import io
from itertools import islice
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

from retrieval.ingest.extraction.embedded import EmbeddedPictures
from retrieval.ingest.extraction.pdf.printed import Box, PrintedLine, PrintedPage, turn_box

_MOST_ON_PAGE = 20
_LEAST_SHARE = 0.03
_MOST_PIXELS = 24_000_000
# With so many letters printed on it, it is a background, or was recognised by another program.
_MOST_LETTERS = 20
# Set off from the lines beside it as a paragraph of its own.
_SIZE = 0.8


def add_pictures(page: Any, printed: PrintedPage, pictures: EmbeddedPictures) -> None:
    """Adds the words of the page's pictures to its lines, each behind the last line above it."""
    left, _bottom, _right, top = page.get_bbox()
    turned = (page.get_rotation() - printed.turned) % 360
    usual = sorted(line.size for line in printed.lines)[len(printed.lines) // 2] if printed.lines else 10.0
    for found in islice(page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE], max_depth=3), _MOST_ON_PAGE):
        x1, y1, x2, y2 = found.get_bounds()
        box = turn_box((x1 - left, top - y2, x2 - left, top - y1), turned, printed.width, printed.height)
        if _is_part_of_page(box, printed) and (words := pictures.read(_save(found))):
            above = [
                at for at, line in enumerate(printed.lines) if line.bottom <= box[1] + usual and line.left < box[2]
            ]
            at = above[-1] + 1 if above else 0
            printed.lines.insert(at, PrintedLine(words, box, round(_SIZE * usual, 1)))


def _is_part_of_page(box: Box, printed: PrintedPage) -> bool:
    if (box[2] - box[0]) * (box[3] - box[1]) < _LEAST_SHARE * printed.width * printed.height:
        return False
    on_it = [
        line
        for line in printed.lines
        if box[0] < (line.left + line.right) / 2 < box[2] and box[1] < line.middle < box[3]
    ]
    return sum(len(line.text) for line in on_it) <= _MOST_LETTERS


def _save(found: Any) -> bytes | None:
    """The picture as a file; None for one that is too large, or cannot be read."""
    try:
        width, height = found.get_px_size()
        if width * height > _MOST_PIXELS:
            return None
        image = found.get_bitmap().to_pil().convert("RGB")
    except (pypdfium2.PdfiumError, ValueError, MemoryError):
        return None
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return out.getvalue()
