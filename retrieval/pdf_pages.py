"""Pages of PDF files as pictures, and where on them a passage stands. Imports no Django."""

from __future__ import annotations

import io
import os
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_double, c_int
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium_c

# pdfium keeps global state: whoever reads a file and whoever draws a page take turns.
from retrieval.ingest.extraction.pdf import PDFIUM_LOCK

WIDTH_PIXELS = 1400
# A page may be as tall as a wall: what is drawn stays below 40 MB in memory.
_MOST_PIXELS = 10_000_000
_MOST_PICTURES = 2_000
_UNITS = 10_000


Source = Path | bytes
"""A PDF file, or its bytes where the storage has no files."""


class PageNotDrawn(Exception):
    """The page has no picture: the file is gone, is damaged, or has no such page. For the log, not for readers."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, from its upper left corner, in ten thousandths of the page's width and height."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The size of a page's picture in pixels, and the boxes of the words that are to be shown on it.

    ``boxes`` is empty when none were asked for or their words were not found on the page.
    """

    width: int
    height: int
    boxes: tuple[Box, ...] = ()


def layout(source: Source, number: int, words: str = "", before: str = "") -> PageLayout:
    """How page ``number`` (from 1) looks, with boxes around ``words``; of several occurrences, the one that has about
    as much text in front of it as ``before`` is long. Raises: PageNotDrawn.
    """
    with _page(source, number) as page:
        width, height, _scale = _size(page)
        return PageLayout(width, height, tuple(_boxes(page, words, before)) if words.strip() else ())


def picture(source: Source, number: int, cache: Path, content_hash: str) -> bytes:
    """The picture of page ``number`` (from 1) as WebP, kept in the folder ``cache`` for the next visitor.

    Raises: PageNotDrawn.
    """
    kept = cache / f"{content_hash}-{number}.webp"
    try:
        data = kept.read_bytes()
        os.utime(kept)
    except FileNotFoundError:
        data = _draw(source, number)
        _keep(kept, data)
    return data


def forget(cache: Path, content_hash: str) -> None:
    """Removes the pictures of a file that is no longer to be read."""
    for kept in cache.glob(f"{content_hash}-*.webp"):
        kept.unlink(missing_ok=True)


def _keep(kept: Path, data: bytes) -> None:
    """Writes the picture so that a reader sees it whole or not at all, and drops those that were not asked for lately
    when there are too many."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".part", delete=False) as file:
        file.write(data)
    os.replace(file.name, kept)
    found = [entry for entry in os.scandir(kept.parent) if entry.name.endswith(".webp")]
    if len(found) > _MOST_PICTURES:
        found.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in found[: len(found) - _MOST_PICTURES * 9 // 10]:
            Path(entry.path).unlink(missing_ok=True)


# Drawing -------------------------------------------------------------------------------------------------------------


@contextmanager
def _page(source: Source, number: int) -> Iterator[Any]:
    with PDFIUM_LOCK:
        try:
            document = pypdfium2.PdfDocument(source)
        except (pypdfium2.PdfiumError, OSError) as error:
            raise PageNotDrawn(f"The file cannot be opened: {error}") from error
        try:
            if not 1 <= number <= len(document):
                raise PageNotDrawn(f"There is no page {number} among {len(document)}.")
            page = document[number - 1]
            try:
                yield page
            finally:
                page.close()
        except pypdfium2.PdfiumError as error:
            raise PageNotDrawn(f"Page {number} cannot be read: {error}") from error
        finally:
            document.close()


def _size(page: Any) -> tuple[int, int, float]:
    """Width and height of the picture in pixels, and pixels for each point."""
    width, height = (max(float(side), 1.0) for side in page.get_size())
    scale = min(WIDTH_PIXELS / width, (_MOST_PIXELS / (width * height)) ** 0.5)
    return max(1, round(width * scale)), max(1, round(height * scale)), scale


def _draw(source: Source, number: int) -> bytes:
    with _page(source, number) as page:
        _width, _height, scale = _size(page)
        bitmap = page.render(scale=scale, may_draw_forms=False)
        # A copy: the bitmap's memory goes with it.
        image = bitmap.to_pil().convert("RGB")
        bitmap.close()
    file = io.BytesIO()
    image.save(file, "WEBP", quality=80, method=2)
    return file.getvalue()


# Finding words -------------------------------------------------------------------------------------------------------


def _boxes(page: Any, words: str, before: str) -> Iterator[Box]:
    """One box for each line of the words, or fewer where the file writes lines together."""
    textpage = page.get_textpage()
    try:
        count = pdfium_c.FPDFText_CountChars(textpage)
        characters = [chr(pdfium_c.FPDFText_GetUnicode(textpage, index)) for index in range(max(count, 0))]
        found = find(characters, words, before)
        if found is None:
            return
        first, last = found
        for index in range(pdfium_c.FPDFText_CountRects(textpage, first, last - first)):
            sides = [c_double() for _side in range(4)]
            if pdfium_c.FPDFText_GetRect(textpage, index, *map(byref, sides)):
                yield _box(page, *(side.value for side in sides))
    finally:
        textpage.close()


def _box(page: Any, left: float, top: float, right: float, bottom: float) -> Box:
    corners = []
    for x, y in ((left, top), (right, bottom)):
        at = c_int(), c_int()
        pdfium_c.FPDF_PageToDevice(page, 0, 0, _UNITS, _UNITS, 0, x, y, *map(byref, at))
        corners.append((at[0].value, at[1].value))
    (x1, y1), (x2, y2) = corners
    # On a page that is turned, the corners change places.
    x, y, width, height = min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)
    # pdfium's boxes end where the ink does.
    margin = max(1, min(width, height) // 6)
    return Box(x - margin, y - margin, width + 2 * margin, height + 2 * margin)


def find(characters: Sequence[str], words: str, before: str = "") -> tuple[int, int] | None:
    """Where in ``characters`` the words stand, as first and one behind last; of several places the one nearest to
    where ``before`` ends. None when they stand nowhere.

    Only letters and digits count, in one case and form, because the text of a document is written otherwise than its
    file: words are mended at line ends, ligatures taken apart.
    """
    wanted = "".join(map(_plain, words))
    page: list[str] = []
    origins: list[int] = []
    for index, character in enumerate(characters):
        for plain in _plain(character):
            page.append(plain)
            origins.append(index)
    text = "".join(page)
    expected = sum(len(_plain(character)) for character in before)
    places = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        places.append(at)
        at = text.find(wanted, at + 1)
    if not places:
        return None
    best = min(places, key=lambda place: abs(place - expected))
    return origins[best], origins[best + len(wanted) - 1] + 1


def _plain(character: str) -> str:
    return "".join(part for part in unicodedata.normalize("NFKD", character).casefold() if part.isalnum())
