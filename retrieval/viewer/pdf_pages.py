"""Get pictures of PDF pages, and the positions of passages on them."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, NotRequired, TypedDict

from core.recent import LruCache, write_file_atomically
from core.slots import ProcessSemaphore
from retrieval.documents import sandbox
from retrieval.metrics import PAGES_NOT_DRAWN

logger = logging.getLogger(__name__)

_MOST_PICTURES = 2_000
_FAILURE_REMEMBERED_SECONDS = 600.0
_LONGEST_WORDS = 8_000
_DRAWING = "retrieval.viewer.pdf_drawing"
_PRELOADED = (_DRAWING, "PIL.WebPImagePlugin", "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.TiffImagePlugin")
# How long a request for a picture waits, and how many requests of a process may wait.
WAITING_SECONDS = 5.0
MOST_WAITING = 8

Source = sandbox.Source
"""A PDF file, or its bytes if the storage has no files."""
Box = tuple[int, int, int, int]
"""Left, top, width and height on a page, in 1/10,000 of the page."""

# Measuring a page is fast, so it does not wait for slots of drawing.
LAYOUT_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=3.0, output_bytes=1_000_000)
DRAWING_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=10.0, output_bytes=20_000_000)


class PageNotDrawn(Exception):
    """An error: the file is missing or damaged, or does not have this page. The message is for the log."""


class TooManyDrawings(PageNotDrawn):
    """An error: too many pages are being drawn."""


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The size of a page's picture in pixels, and boxes around the searched words (empty: not found)."""

    width: int
    height: int
    boxes: tuple[Box, ...] = ()


class DrawingArguments(TypedDict):
    """The arguments of a function in `pdf_drawing`.

    ``number`` is the page. ``words`` and ``letters_before`` say which words are marked: see
    :func:`pdf_drawing.measure_page_picture`.
    """

    number: int
    words: NotRequired[str]
    letters_before: NotRequired[int]


_layouts: LruCache[tuple[str, int, str, int], PageLayout] = LruCache(2_000)
_failures: LruCache[tuple[str, int], tuple[float, str]] = LruCache(5_000)
# Created before the web server forks, so that its processes share them.
_measuring_slots, _drawing_slots = ProcessSemaphore(2), ProcessSemaphore(1)
_waiting = BoundedSemaphore(MOST_WAITING)


def measure_page_layout(
    source: Source, number: int, words: str = "", before: str = "", content_hash: str = ""
) -> PageLayout:
    """Return the size of page ``number`` (from 1), and boxes around ``words``.

    ``before`` is the text before the words. The result is cached by ``content_hash``.

    Raises: PageNotDrawn, TooManyDrawings.
    """
    key = (content_hash, number, words, len(before))
    if content_hash and (known := _layouts.get(key)) is not None:
        return known
    # ``before`` may be too long for a message to the sandbox, so only its number of letters and digits is sent.
    arguments: DrawingArguments = {
        "number": number,
        "words": words[:_LONGEST_WORDS],
        "letters_before": sum(map(str.isalnum, before)),
    }
    value, _ = _run_in_sandbox("measure_page_picture", source, arguments, content_hash)
    try:
        boxes = tuple((int(x), int(y), int(width), int(height)) for x, y, width, height in value["boxes"][:500])
        found = PageLayout(_check_pixel_count(value["width"]), _check_pixel_count(value["height"]), boxes)
    except (ValueError, TypeError, KeyError) as error:
        raise _record_failure(content_hash, number, f"The page's size came back damaged: {error}") from error
    if content_hash:
        _layouts.put(key, found)
    return found


def load_kept_picture(number: int, cache: Path, content_hash: str) -> bytes | None:
    """Return the page's cached picture; None without one. Raises: PageNotDrawn if drawing failed recently."""
    kept = cache / f"{content_hash}-{number}.webp"
    try:
        data = kept.read_bytes()
        os.utime(kept)
    except FileNotFoundError:
        _raise_if_recently_failed(content_hash, number)
        return None
    return data


def draw_picture(source: Source, number: int, cache: Path, content_hash: str) -> bytes:
    """Draw the page, cache its picture (WebP) and return it. Raises: PageNotDrawn, TooManyDrawings."""
    _, data = _run_in_sandbox("draw", source, {"number": number}, content_hash)
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        raise _record_failure(content_hash, number, "What was drawn is no picture.")
    try:
        _cache_picture(cache / f"{content_hash}-{number}.webp", data)
    except OSError as error:
        logger.warning("A page's picture is not kept: %s", error)
    return data


def _cache_picture(kept: Path, data: bytes) -> None:
    write_file_atomically(kept, data)
    found = [entry for entry in os.scandir(kept.parent) if entry.name.endswith(".webp")]
    if len(found) > _MOST_PICTURES:
        found.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in found[: len(found) - _MOST_PICTURES * 9 // 10]:
            Path(entry.path).unlink(missing_ok=True)


def _run_in_sandbox(function: str, source: Source, arguments: DrawingArguments, content_hash: str) -> tuple[Any, bytes]:
    number = arguments["number"]
    _raise_if_recently_failed(content_hash, number)
    limits, slots = (
        (LAYOUT_LIMITS, _measuring_slots) if function == "measure_page_picture" else (DRAWING_LIMITS, _drawing_slots)
    )
    if not _waiting.acquire(blocking=False):
        raise TooManyDrawings(f"{MOST_WAITING} wait already.")
    try:
        with slots.take(lambda waited: waited < WAITING_SECONDS):
            _raise_if_recently_failed(content_hash, number)
            return sandbox.run(f"{_DRAWING}:{function}", source, arguments, limits, preload=_PRELOADED)
    except TimeoutError as error:
        raise TooManyDrawings(str(error)) from error
    except (OSError, sandbox.SandboxUnavailable) as error:
        # This failure is not remembered, because the file did not cause it.
        raise PageNotDrawn(str(error)) from error
    except sandbox.SandboxError as error:
        raise _record_failure(content_hash, number, f"Page {number}: {error}") from error
    finally:
        _waiting.release()


def _record_failure(content_hash: str, number: int, sentence: str) -> PageNotDrawn:
    PAGES_NOT_DRAWN.inc()
    if content_hash:
        _failures.put((content_hash, number), (time.monotonic() + _FAILURE_REMEMBERED_SECONDS, sentence))
    return PageNotDrawn(sentence)


def _raise_if_recently_failed(content_hash: str, number: int) -> None:
    if content_hash and (failure := _failures.get((content_hash, number))) is not None:
        until, sentence = failure
        if time.monotonic() < until:
            raise PageNotDrawn(sentence)


def _check_pixel_count(value: Any) -> int:
    if not isinstance(value, int) or not 0 < value <= 10_000_000:
        raise ValueError("the size of a page")
    return value
