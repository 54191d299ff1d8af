"""Pages of PDF files as pictures, and where on them a passage stands. PURE.

Drawn in the sandbox, within limits of pixels, memory and time; a page that many ask for is drawn once; a page that
nobody waits for any more is not drawn to its end; a page that could not be drawn is not tried again for a while.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from retrieval.documents import sandbox
from retrieval.infrastructure.metrics import PAGES_NOT_DRAWN
from retrieval.infrastructure.slots import Slots

Result = TypeVar("Result")
IsWanted = Callable[[float], bool]


class TooMuchWork(Exception):
    """So much waits to be done already that nothing is added."""


@dataclass(slots=True)
class _Work(Generic[Result]):
    waiting: int = 0
    future: Future[Result] = field(default_factory=Future)


class SharedWork(Generic[Result]):
    """At most ``threads`` pieces are done at once; ``longest_queue`` more and ``most_waiting`` callers may wait."""

    def __init__(self, threads: int, longest_queue: int, most_waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="shared-work")
        self._most_pieces = threads + longest_queue
        self._most_waiting = most_waiting
        self._pieces: dict[Hashable, _Work[Result]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def join_work(self, key: Hashable, function: Callable[[IsWanted], Result]) -> Iterator[Future[Result]]:
        """What ``function`` will return, or what it returns to another who asked for ``key`` and still waits.

        It is called with a function that says whether anybody is in this context still; before it is begun, it is
        dropped when nobody is. Raises: TooMuchWork.
        """
        with self._lock:
            if sum(other.waiting for other in self._pieces.values()) >= self._most_waiting:
                raise TooMuchWork(f"{self._most_waiting} wait already.")
            piece = self._pieces.get(key)
            if piece is None:
                if len(self._pieces) >= self._most_pieces:
                    raise TooMuchWork(f"{len(self._pieces)} pieces of work wait already.")
                piece = self._pieces[key] = _Work()
                self._executor.submit(self._do, key, piece, function)
            piece.waiting += 1
        try:
            yield piece.future
        finally:
            with self._lock:
                piece.waiting -= 1
                if not piece.waiting and self._pieces.get(key) is piece:
                    # Whoever asks from now on is not to join work that is being given up.
                    del self._pieces[key]

    def _do(self, key: Hashable, piece: _Work[Result], function: Callable[[IsWanted], Result]) -> None:
        # The lock makes sure that who caused this is counted.
        with self._lock:
            is_wanted = piece.waiting > 0
        if not is_wanted or not piece.future.set_running_or_notify_cancel():
            return
        try:
            piece.future.set_result(function(lambda _elapsed: piece.waiting > 0))
        except BaseException as error:  # noqa: BLE001 - whoever waits is to have it
            piece.future.set_exception(error)
        finally:
            with self._lock:
                if self._pieces.get(key) is piece:
                    del self._pieces[key]


logger = logging.getLogger(__name__)

_MOST_PICTURES = 2_000
_MOST_LAYOUTS = 2_000
_MOST_FAILURES = 5_000
_FAILURE_REMEMBERED_SECONDS = 600.0
_LONGEST_QUEUE = 16
_MOST_WAITING = 100
_LARGEST_PICTURE_BYTES = 20_000_000
_LONGEST_WORDS = 8_000
_LAYOUTS_AT_ONCE = 2
Value = TypeVar("Value")
_DRAWING = "retrieval.viewer.pdf_drawing"
_PRELOADED = (_DRAWING, "PIL.WebPImagePlugin", "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.TiffImagePlugin")

Source = sandbox.Source
"""A PDF file, or its bytes where the storage has no files."""

# Finding a page's size is quick, whatever is drawn meanwhile: a reader waits for it.
LAYOUT_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=3.0, output_bytes=1_000_000)
DRAWING_LIMITS = sandbox.JobLimits(memory_mib=512, seconds=10.0, output_bytes=_LARGEST_PICTURE_BYTES)


class PageNotDrawn(Exception):
    """The page has no picture: the file is gone, is damaged, or has no such page. For the log, not for readers."""


class PageBusy(PageNotDrawn):
    """So many pages are being drawn that this one has to wait: it may be asked for again in a few seconds."""


@dataclass(frozen=True, slots=True)
class WordBox:
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
    boxes: tuple[WordBox, ...] = ()


class _Newest(Generic[Value]):
    """The newest values by key, at most so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[Any, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> Value | None:
        with self._lock:
            return self._values.get(key)

    def put(self, key: Any, value: Value) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)


_layouts: _Newest[PageLayout] = _Newest(_MOST_LAYOUTS)
_failures: _Newest[tuple[float, str]] = _Newest(_MOST_FAILURES)
_measuring: SharedWork[PageLayout] = SharedWork(_LAYOUTS_AT_ONCE, _LONGEST_QUEUE, _MOST_WAITING)
_drawing: SharedWork[bytes] = SharedWork(1, _LONGEST_QUEUE, _MOST_WAITING)
# Each process of the web server has its own queue; what drawing takes is bounded for all of them.
_measuring_slots, _drawing_slots = Slots(_LAYOUTS_AT_ONCE), Slots(1)


def configure(*, at_once: int, memory_mib: int, seconds: float) -> None:
    """How much drawing may take in this process and its forks; called once, before anything is drawn."""
    global DRAWING_LIMITS, LAYOUT_LIMITS, _drawing, _drawing_slots
    DRAWING_LIMITS = replace(DRAWING_LIMITS, memory_mib=memory_mib, seconds=seconds)
    LAYOUT_LIMITS = replace(LAYOUT_LIMITS, memory_mib=memory_mib, seconds=min(seconds, LAYOUT_LIMITS.seconds))
    _drawing, _drawing_slots = SharedWork(at_once, _LONGEST_QUEUE, _MOST_WAITING), Slots(at_once)


def measure_page(source: Source, number: int, words: str = "", before: str = "", content_hash: str = "") -> PageLayout:
    """How page ``number`` (from 1) looks, with boxes around ``words``; of several occurrences, the one that has about
    as much text in front of it as ``before`` is long.

    What was found is kept by ``content_hash``, where one is given. Raises: PageNotDrawn, PageBusy.
    """
    key = (content_hash, number, words, len(before))
    if content_hash and (known := _layouts.get(key)) is not None:
        return known
    _check_failures(content_hash, number)

    def measure(still_wanted: sandbox.StillWanted) -> PageLayout:
        arguments = {
            "number": number,
            "words": words[:_LONGEST_WORDS],
            # Written out here, where the text is: it may be longer than what can be sent.
            "expected": sum(map(str.isalnum, before)),
        }
        value, _ = _run_in_sandbox("measure", source, arguments, LAYOUT_LIMITS, content_hash, number, still_wanted)
        try:
            found = PageLayout(
                _check_pixels(value["width"]),
                _check_pixels(value["height"]),
                tuple(WordBox(*(int(side) for side in sides)) for sides in value["boxes"][:500]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise _remember_failure(
                content_hash, number, "damaged", f"The page's size came back damaged: {error}"
            ) from error
        if content_hash:
            _layouts.put(key, found)
        return found

    with _join(_measuring, key if content_hash else object(), measure) as future:
        return future.result()


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


@contextlib.contextmanager
def draw_picture(source: Source, number: int, cache: Path, content_hash: str) -> Iterator[Future[bytes]]:
    """The picture that is being drawn, for as long as somebody is in this context. Raises: PageBusy."""

    def draw(still_wanted: sandbox.StillWanted) -> bytes:
        arguments = {"number": number}
        _, data = _run_in_sandbox("draw", source, arguments, DRAWING_LIMITS, content_hash, number, still_wanted)
        if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
            raise _remember_failure(content_hash, number, "damaged", "What was drawn is no picture.")
        try:
            _keep_picture(cache / f"{content_hash}-{number}.webp", data)
        except OSError as error:
            logger.warning("A page's picture is not kept: %s", error)
        return data

    with _join(_drawing, (content_hash, number), draw) as future:
        yield future


def _keep_picture(kept: Path, data: bytes) -> None:
    """Writes the picture so that a reader sees it whole or not at all, and drops those that were not asked for lately
    when there are too many. Raises: OSError."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=kept.parent, suffix=".part", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.replace(file.name, kept)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
            raise
    found = [entry for entry in os.scandir(kept.parent) if entry.name.endswith(".webp")]
    if len(found) > _MOST_PICTURES:
        found.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in found[: len(found) - _MOST_PICTURES * 9 // 10]:
            Path(entry.path).unlink(missing_ok=True)


# The work ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _join(work: SharedWork[Result], key: Any, function: Any) -> Iterator[Future[Result]]:
    try:
        with work.join_work(key, function) as future:
            yield future
    except TooMuchWork as error:
        PAGES_NOT_DRAWN.labels(reason="busy").inc()
        raise PageBusy(str(error)) from error


def _run_in_sandbox(
    function: str,
    source: Source,
    arguments: dict[str, Any],
    limits: sandbox.JobLimits,
    content_hash: str,
    number: int,
    still_wanted: sandbox.StillWanted,
) -> tuple[Any, bytes]:
    """Raises: PageNotDrawn."""
    # Another who waited in the queue for the same page may have found out.
    _check_failures(content_hash, number)
    slots = _measuring_slots if limits is LAYOUT_LIMITS else _drawing_slots
    try:
        with slots.take(still_wanted):
            return sandbox.run(
                f"{_DRAWING}:{function}", source, arguments, limits, preload=_PRELOADED, still_wanted=still_wanted
            )
    except TimeoutError as error:
        PAGES_NOT_DRAWN.labels(reason="cancelled").inc()
        raise PageNotDrawn(str(error)) from error
    except sandbox.LimitExceeded as error:
        raise _remember_failure(content_hash, number, error.limit, f"Page {number} {error} to be drawn.") from error
    except sandbox.JobCrashed as error:
        raise _remember_failure(content_hash, number, "crash", f"Drawing page {number} {error}.") from error
    except sandbox.JobFailed as error:
        sentence = str(error) if error.kind == "CannotDraw" else f"{error.kind}: {error}"
        raise _remember_failure(content_hash, number, "damaged", sentence) from error
    except OSError as error:
        raise _remember_failure("", number, "file", f"The file cannot be opened: {error}") from error
    except sandbox.JobCancelled as error:
        PAGES_NOT_DRAWN.labels(reason="cancelled").inc()
        raise PageNotDrawn(str(error)) from error
    except sandbox.SandboxUnavailable as error:
        raise _remember_failure("", number, "sandbox", str(error)) from error


def _remember_failure(content_hash: str, number: int, reason: str, sentence: str) -> PageNotDrawn:
    """Remembers that the page cannot be drawn, unless that may change with the next attempt (no ``content_hash``)."""
    PAGES_NOT_DRAWN.labels(reason=reason).inc()
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
