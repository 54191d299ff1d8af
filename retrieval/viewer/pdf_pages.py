"""Pages of PDF files as pictures, and where on them a passage stands. PURE.

Drawn in the sandbox, within limits of pixels, memory and time, one at a time on a machine; a page that could not be
drawn is not tried again for a while.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from core.recent import Recent, write_whole
from core.slots import Slots
from retrieval.documents import sandbox
from retrieval.metrics import PAGES_NOT_DRAWN

logger = logging.getLogger(__name__)

_MOST_PICTURES = 2_000
_FAILURE_REMEMBERED_SECONDS = 600.0
_LONGEST_WORDS = 8_000
_DRAWING = "retrieval.viewer.pdf_drawing"
_PRELOADED = (_DRAWING, "PIL.WebPImagePlugin", "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.TiffImagePlugin")
# How long a page waits for its turn, and how many may wait in one process.
WAITING_SECONDS = 5.0
MOST_WAITING = 8

Source = sandbox.Source
"""A PDF file, or its bytes where the storage has no files."""
Box = tuple[int, int, int, int]
"""Left, top, width and height on a page, in ten thousandths of the page's."""

# A reader waits for the layout, so it has slots of its own beside the drawing.
LAYOUT_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=3.0, output_bytes=1_000_000)
DRAWING_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=10.0, output_bytes=20_000_000)


class PageNotDrawn(Exception):
    """The page has no picture: the file is gone, is damaged, or has no such page. For the log, not for readers."""


class PageBusy(PageNotDrawn):
    """Too many pages are being drawn: ask again in a few seconds."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The size of a page's picture in pixels, and the boxes of the words that are to be shown on it.

    ``boxes`` is empty when none were asked for or their words were not found on the page.
    """

    width: int
    height: int
    boxes: tuple[Box, ...] = ()


_layouts: Recent[tuple[str, int, str, int], PageLayout] = Recent(2_000)
_failures: Recent[tuple[str, int], tuple[float, str]] = Recent(5_000)
# Made before the web server forks: all its processes share the turns.
_measuring_slots, _drawing_slots = Slots(2), Slots(1)
_waiting = BoundedSemaphore(MOST_WAITING)


def measure_page(source: Source, number: int, words: str = "", before: str = "", content_hash: str = "") -> PageLayout:
    """The layout of page ``number`` (from 1), with boxes around ``words``; of several occurrences, the one that follows
    a text about as long as ``before``.

    With a ``content_hash``, the result is cached. Raises: PageNotDrawn, PageBusy.
    """
    key = (content_hash, number, words, len(before))
    if content_hash and (known := _layouts.get(key)) is not None:
        return known
    # Counted here, where the text is: it may be longer than what can be sent.
    arguments = {"number": number, "words": words[:_LONGEST_WORDS], "expected": sum(map(str.isalnum, before))}
    value, _ = _run_in_sandbox("measure", source, arguments, content_hash)
    try:
        boxes = tuple((int(x), int(y), int(width), int(height)) for x, y, width, height in value["boxes"][:500])
        found = PageLayout(_check_pixels(value["width"]), _check_pixels(value["height"]), boxes)
    except (ValueError, TypeError, KeyError) as error:
        raise _not_drawn(content_hash, number, f"The page's size came back damaged: {error}") from error
    if content_hash:
        _layouts.put(key, found)
    return found


def load_kept_picture(number: int, cache: Path, content_hash: str) -> bytes | None:
    """The picture, if it was drawn before. Raises: PageNotDrawn if it could not be drawn lately."""
    kept = cache / f"{content_hash}-{number}.webp"
    try:
        data = kept.read_bytes()
        os.utime(kept)
    except FileNotFoundError:
        _check_failures(content_hash, number)
        return None
    return data


def draw_picture(source: Source, number: int, cache: Path, content_hash: str) -> bytes:
    """The picture as WebP, which is kept for the next reader. Raises: PageNotDrawn, PageBusy."""
    _, data = _run_in_sandbox("draw", source, {"number": number}, content_hash)
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        raise _not_drawn(content_hash, number, "What was drawn is no picture.")
    try:
        _keep_picture(cache / f"{content_hash}-{number}.webp", data)
    except OSError as error:
        logger.warning("A page's picture is not kept: %s", error)
    return data


def _keep_picture(kept: Path, data: bytes) -> None:
    """Writes the picture, and drops those that were not asked for lately when there are too many. Raises: OSError."""
    write_whole(kept, data)
    found = [entry for entry in os.scandir(kept.parent) if entry.name.endswith(".webp")]
    if len(found) > _MOST_PICTURES:
        found.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in found[: len(found) - _MOST_PICTURES * 9 // 10]:
            Path(entry.path).unlink(missing_ok=True)


def _run_in_sandbox(function: str, source: Source, arguments: dict[str, Any], content_hash: str) -> tuple[Any, bytes]:
    """Raises: PageNotDrawn, PageBusy."""
    number = arguments["number"]
    _check_failures(content_hash, number)
    limits, slots = (LAYOUT_LIMITS, _measuring_slots) if function == "measure" else (DRAWING_LIMITS, _drawing_slots)
    if not _waiting.acquire(blocking=False):
        raise PageBusy(f"{MOST_WAITING} wait already.")
    try:
        with slots.take(lambda waited: waited < WAITING_SECONDS):
            # It may have failed for another request meanwhile.
            _check_failures(content_hash, number)
            return sandbox.run(f"{_DRAWING}:{function}", source, arguments, limits, preload=_PRELOADED)
    except TimeoutError as error:
        raise PageBusy(str(error)) from error
    except (OSError, sandbox.SandboxUnavailable) as error:
        # The next attempt may succeed.
        raise PageNotDrawn(str(error)) from error
    except sandbox.SandboxError as error:
        raise _not_drawn(content_hash, number, f"Page {number}: {error}") from error
    finally:
        _waiting.release()


def _not_drawn(content_hash: str, number: int, sentence: str) -> PageNotDrawn:
    """The error, which is remembered for a while."""
    PAGES_NOT_DRAWN.inc()
    if content_hash:
        _failures.put((content_hash, number), (time.monotonic() + _FAILURE_REMEMBERED_SECONDS, sentence))
    return PageNotDrawn(sentence)


def _check_failures(content_hash: str, number: int) -> None:
    """Raises: PageNotDrawn when the page could not be drawn lately."""
    if content_hash and (failure := _failures.get((content_hash, number))) is not None:
        until, sentence = failure
        if time.monotonic() < until:
            raise PageNotDrawn(sentence)


def _check_pixels(value: Any) -> int:
    if not isinstance(value, int) or not 0 < value <= 10_000_000:
        raise ValueError("the size of a page")
    return value
