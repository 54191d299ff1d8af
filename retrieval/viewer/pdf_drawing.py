"""Draw a page of a PDF file, and find words on it. Runs in the sandbox process."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import pypdfium2
from PIL import Image, ImageOps

from retrieval.documents.extraction.pdf_added import AddedPdfContent
from retrieval.documents.extraction.pdf_page import find_ruled_lines, read_page
from retrieval.documents.extraction.printed import Box, PrintedPage, find_surrounding_box, order_lines, turn_box
from retrieval.documents.extraction.printed_tables import replace_by_tables

WIDTH_PIXELS = 1400
# A picture of this size takes 40 MB of memory. Larger pages are drawn smaller.
MOST_PIXELS = 10_000_000
UNITS = 10_000
MOST_BOXES = 500

FoundBox = tuple[int, int, int, int]


class CannotDraw(Exception):
    """An error: the file cannot be opened, or does not have this page."""


def draw(file: BinaryIO, number: int) -> tuple[None, bytes]:
    if not _is_pdf(file):
        image = _open_picture(file, number)
        width, height, _scale = _compute_scaled_size(*image.size)
        return None, _encode_picture(image.convert("RGB").resize((width, height)))
    with _open_page(file, number) as page:
        _width, _height, scale = _compute_picture_size(page)
        bitmap = page.render(scale=scale)
        image = bitmap.to_pil().convert("RGB")
    return None, _encode_picture(image)


def _is_pdf(file: BinaryIO) -> bool:
    beginning = file.read(1024)
    file.seek(0)
    return b"%PDF-" in beginning


def _open_picture(file: BinaryIO, number: int) -> Image.Image:
    try:
        image: Image.Image = Image.open(file)
        image.seek(number - 1)
        return ImageOps.exif_transpose(image)
    except (OSError, EOFError, ValueError) as error:
        raise CannotDraw(f"Page {number} of the picture cannot be read: {error}") from error


def _encode_picture(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "WEBP", quality=80, method=2)
    return out.getvalue()


def measure_page_picture(
    file: BinaryIO, number: int, words: str, letters_before: int
) -> tuple[dict[str, object], bytes]:
    """Return the picture's size in pixels, and the boxes around ``words``. Raises: CannotDraw.

    If the page contains the words several times, ``letters_before`` decides which of them are meant. It is roughly the
    number of letters and digits before the words.
    """
    boxes: list[FoundBox] = []
    if not _is_pdf(file):
        width, height, _scale = _compute_scaled_size(*_open_picture(file, number).size)
        return {"width": width, "height": height, "boxes": boxes}, b""
    with _open_page(file, number) as page:
        width, height, _scale = _compute_picture_size(page)
        if words.strip():
            added = AddedPdfContent(page.pdf)
            added.hide_undrawn_layers(page)
            printed = read_page(page)
            added.read_annotations(page, printed)
            printed.lines = replace_by_tables(printed.lines, find_ruled_lines(page, printed))
            boxes = find_boxes(printed, words, letters_before)
        return {"width": width, "height": height, "boxes": boxes}, b""


@contextmanager
def _open_page(file: BinaryIO, number: int) -> Iterator[Any]:
    try:
        document = pypdfium2.PdfDocument(file)
        if not 1 <= number <= len(document):
            raise CannotDraw(f"There is no page {number} among {len(document)}.")
        document.init_forms()
    except pypdfium2.PdfiumError as error:
        raise CannotDraw(f"The file cannot be opened: {error}") from error
    try:
        yield document[number - 1]
    except pypdfium2.PdfiumError as error:
        raise CannotDraw(f"Page {number} cannot be read: {error}") from error


def _compute_picture_size(page: Any) -> tuple[int, int, float]:
    return _compute_scaled_size(*(max(float(side), 1.0) for side in page.get_size()))


def _compute_scaled_size(width: float, height: float) -> tuple[int, int, float]:
    scale = min(WIDTH_PIXELS / width, (MOST_PIXELS / (width * height)) ** 0.5)
    return max(1, round(width * scale)), max(1, round(height * scale)), scale


def find_boxes(page: PrintedPage, words: str, letters_before: int) -> list[FoundBox]:
    page.lines = order_lines(page.lines, page.height)
    first, last = find_word_range("".join(line.text for line in page.lines), words, letters_before) or (0, 0)
    start = 0
    found = []
    for line in page.lines:
        if boxes := line.boxes[max(0, first - start) : max(0, last - start)]:
            found.append(_scale_box(find_surrounding_box(boxes), page))
        start += len(line.text)
    return found[:MOST_BOXES]


def _scale_box(box: Box, page: PrintedPage) -> FoundBox:
    width, height = (page.height, page.width) if page.turned in (90, 270) else (page.width, page.height)
    left, top, right, bottom = turn_box(box, page.turned, width, height)
    x, y = round(left * UNITS / width), round(top * UNITS / height)
    return x, y, max(1, round(right * UNITS / width) - x), max(1, round(bottom * UNITS / height) - y)


def find_word_range(characters: Sequence[str], words: str, letters_before: int = 0) -> tuple[int, int] | None:
    """Return start and end of ``words`` in ``characters``; None if they are not there.

    Only letters and digits are compared.
    """
    letters = extract_letters_and_digits(words)
    page: list[str] = []
    origins: list[int] = []
    for index, character in enumerate(characters):
        for letter in extract_letters_and_digits(character):
            page.append(letter)
            origins.append(index)
    text = "".join(page)
    best = None
    at = text.find(letters) if letters else -1
    while at >= 0 and (best is None or abs(at - letters_before) < abs(best - letters_before)):
        best = at
        at = text.find(letters, at + 1)
    if best is None:
        return None
    return origins[best], origins[best + len(letters) - 1] + 1


def extract_letters_and_digits(text: str) -> str:
    return "".join(
        part for character in text for part in unicodedata.normalize("NFKD", character).casefold() if part.isalnum()
    )
