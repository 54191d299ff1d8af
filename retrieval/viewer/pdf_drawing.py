"""Draws a page of a PDF file, and finds words on it. Runs in the sandbox: it opens files that are not to be trusted."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_double, c_int
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium_c

WIDTH_PIXELS = 1400
# A page may be as tall as a wall: what is drawn stays below 40 MB in memory.
MOST_PIXELS = 10_000_000
UNITS = 10_000
MOST_BOXES = 500

FoundBox = tuple[int, int, int, int]


class CannotDraw(Exception):
    """The file cannot be opened, or has no such page."""


def draw(file: BinaryIO, number: int) -> tuple[None, bytes]:
    """The picture of page ``number`` (from 1) as WebP. Raises: CannotDraw."""
    with _page(file, number) as page:
        _width, _height, scale = _picture_size(page)
        bitmap = page.render(scale=scale, may_draw_forms=False)
        image = bitmap.to_pil().convert("RGB")
    out = io.BytesIO()
    image.save(out, "WEBP", quality=80, method=2)
    return None, out.getvalue()


def measure(file: BinaryIO, number: int, words: str, expected: int) -> tuple[dict[str, Any], bytes]:
    """The size of the page's picture in pixels, and boxes around ``words``; of several occurrences, the one with about
    ``expected`` letters and digits before it. Raises: CannotDraw.
    """
    with _page(file, number) as page:
        width, height, _scale = _picture_size(page)
        boxes: list[FoundBox] = []
        for box in _find_boxes(page, words, expected) if words.strip() else ():
            boxes.append(box)
            if len(boxes) == MOST_BOXES:
                break
        return {"width": width, "height": height, "boxes": boxes}, b""


@contextmanager
def _page(file: BinaryIO, number: int) -> Iterator[Any]:
    try:
        document = pypdfium2.PdfDocument(file)
        if not 1 <= number <= len(document):
            raise CannotDraw(f"There is no page {number} among {len(document)}.")
    except pypdfium2.PdfiumError as error:
        raise CannotDraw(f"The file cannot be opened: {error}") from error
    try:
        yield document[number - 1]
    except pypdfium2.PdfiumError as error:
        raise CannotDraw(f"Page {number} cannot be read: {error}") from error


def _picture_size(page: Any) -> tuple[int, int, float]:
    """Width and height of the picture in pixels, and pixels for each point."""
    width, height = (max(float(side), 1.0) for side in page.get_size())
    scale = min(WIDTH_PIXELS / width, (MOST_PIXELS / (width * height)) ** 0.5)
    return max(1, round(width * scale)), max(1, round(height * scale)), scale


def _find_boxes(page: Any, words: str, expected: int) -> Iterator[FoundBox]:
    """One box for each line of the words, or fewer where the file writes lines together."""
    textpage = page.get_textpage()
    count = pdfium_c.FPDFText_CountChars(textpage)
    characters = [chr(pdfium_c.FPDFText_GetUnicode(textpage, index)) for index in range(max(count, 0))]
    found = find_words(characters, words, expected)
    if found is None:
        return
    first, last = found
    for index in range(pdfium_c.FPDFText_CountRects(textpage, first, last - first)):
        sides = [c_double() for _side in range(4)]
        if pdfium_c.FPDFText_GetRect(textpage, index, *map(byref, sides)):
            yield _to_device(page, *(side.value for side in sides))


def _to_device(page: Any, left: float, top: float, right: float, bottom: float) -> FoundBox:
    corners = []
    for x, y in ((left, top), (right, bottom)):
        at = c_int(), c_int()
        pdfium_c.FPDF_PageToDevice(page, 0, 0, UNITS, UNITS, 0, x, y, *map(byref, at))
        corners.append((at[0].value, at[1].value))
    (x1, y1), (x2, y2) = corners
    # On a page that is turned, the corners change places.
    x, y, width, height = min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)
    # pdfium's boxes end where the ink does.
    margin = max(1, min(width, height) // 6)
    return x - margin, y - margin, width + 2 * margin, height + 2 * margin


def find_words(characters: Sequence[str], words: str, expected: int = 0) -> tuple[int, int] | None:
    """Where in ``characters`` the words stand, as first and one behind last; of several places the one nearest to
    where ``expected`` letters and digits end. None when they stand nowhere.

    Only letters and digits count, in one case and form, because the text of a document is written otherwise than its
    file: words are joined at line ends, ligatures taken apart.
    """
    letters = keep_letters(words)
    page: list[str] = []
    origins: list[int] = []
    for index, character in enumerate(characters):
        for letter in keep_letters(character):
            page.append(letter)
            origins.append(index)
    text = "".join(page)
    best = None
    at = text.find(letters) if letters else -1
    while at >= 0 and (best is None or abs(at - expected) < abs(best - expected)):
        best = at
        at = text.find(letters, at + 1)
    if best is None:
        return None
    return origins[best], origins[best + len(letters) - 1] + 1


def keep_letters(text: str) -> str:
    """The letters and digits of ``text``, in one case and form."""
    return "".join(
        part for character in text for part in unicodedata.normalize("NFKD", character).casefold() if part.isalnum()
    )
