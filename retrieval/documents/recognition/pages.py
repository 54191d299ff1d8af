"""Run OCR on scanned pages, and store the result of each page as soon as it is ready."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Collection, Sequence

from django.conf import settings

from retrieval.documents import sandbox
from retrieval.documents.extraction.printed import PrintedPage
from retrieval.documents.recognition import tesseract
from retrieval.documents.recognition.recognised_words import build_page, check_recognised_page
from retrieval.metrics import PAGES_RECOGNISED
from retrieval.models import Document, DocumentText, RecognisedPage

logger = logging.getLogger(__name__)

_TARGET = "retrieval.documents.recognition.tesseract"
_PRELOADED = (_TARGET, "PIL.PngImagePlugin", "PIL.JpegImagePlugin", "PIL.TiffImagePlugin", "PIL.WebPImagePlugin")
_OUTPUT_BYTES = 10_000_000
# Limits of OCR for one page. A page of A3 at 300 dpi needs half of them.
MEMORY_MIB = 1024
PAGE_SECONDS = 60.0
# Below this mean confidence of OCR, readers and curators see a warning.
LOW_CONFIDENCE = 70
NOT_INSTALLED = (
    "text recognition (OCR) is not installed: install Tesseract (on Debian and Ubuntu: apt-get install tesseract-ocr "
    "tesseract-ocr-nld; on macOS: brew install tesseract tesseract-lang), restart, and have the document read again"
)
TURNED_OFF = "text recognition (OCR) is turned off here (OCR_LANGUAGES): run it on the file and upload the result"


def list_configured_languages() -> list[str]:
    return [name for name in settings.OCR_LANGUAGES if name in _list_installed_languages()]


@functools.cache
def _list_installed_languages() -> tuple[str, ...]:
    try:
        tesseract.load_library()
        return tuple(tesseract.list_languages())
    except tesseract.EngineMissing:
        return ()


def find_reason_for_missing_ocr() -> str:
    if not settings.OCR_LANGUAGES:
        return TURNED_OFF
    return "" if list_configured_languages() else NOT_INSTALLED


def recognise_pages(
    document: Document,
    data: bytes,
    numbers: Sequence[int],
    *,
    is_picture: bool,
    on_progress: Callable[[int, int], None],
    seconds: float | None = None,
) -> list[RecognisedPage]:
    """Return the pages ``numbers`` of the document's file, with the words that OCR found.

    ``on_progress`` gets how many pages are finished and how many there are. It may raise an exception to stop. A page
    that fails has a ``failure``. Raises: JobCancelled if pages remain after ``seconds``; SandboxUnavailable.
    """
    # If Tesseract's version or the languages change, stored pages are read again.
    fingerprint = f"tesseract {tesseract.read_version()} {'+'.join(list_configured_languages())}"[:200]
    kept = RecognisedPage.objects.filter(content_hash=document.content_hash, recipe=fingerprint, number__in=numbers)
    done = {page.number: page for page in kept}
    started = time.monotonic()
    for number in numbers:
        if number in done:
            continue
        on_progress(len(done), len(numbers))
        if seconds is not None and time.monotonic() - started > seconds:
            raise sandbox.JobCancelled(f"{len(done)} of {len(numbers)} pages are recognised.")
        done[number] = _recognise_page(document.content_hash, data, number, fingerprint, is_picture=is_picture)
    on_progress(len(done), len(numbers))
    return [done[number] for number in numbers]


def _recognise_page(
    content_hash: str, data: bytes, number: int, fingerprint: str, *, is_picture: bool
) -> RecognisedPage:
    arguments = {
        "number": number,
        "languages": list_configured_languages(),
        "is_picture": is_picture,
        "finds_orientation": tesseract.has_orientation_data(),
    }
    limits = sandbox.JobLimits(MEMORY_MIB, PAGE_SECONDS, _OUTPUT_BYTES)
    values: dict[str, object]
    try:
        value, _ = sandbox.run(f"{_TARGET}:recognise", data, arguments, limits, preload=_PRELOADED)
        values = check_recognised_page(value)
        PAGES_RECOGNISED.labels(result="recognised").inc()
    except (sandbox.LimitExceeded, sandbox.JobCrashed, sandbox.JobFailed, ValueError, TypeError, KeyError) as error:
        PAGES_RECOGNISED.labels(result="failed").inc()
        logger.warning("Page %d of a scan was not recognised: %s", number, error)
        values = {"failure": str(error)[:300]}
    recognised, _ = RecognisedPage.objects.update_or_create(
        content_hash=content_hash, number=number, recipe=fingerprint, defaults=values
    )
    return recognised


def find_page(content_hash: str, number: int) -> PrintedPage | None:
    pages = RecognisedPage.objects.filter(content_hash=content_hash, number=number, failure="")
    page = pages.order_by("-pk").first()
    return build_page(page.width, page.height, page.turned, page.words) if page and page.width else None


def forget_pages(hashes: Collection[str]) -> None:
    """Delete the stored OCR results of these files, except files that a document still has."""
    kept = set(Document.objects.filter(content_hash__in=hashes).values_list("content_hash", flat=True))
    kept |= set(DocumentText.objects.filter(content_hash__in=hashes).values_list("content_hash", flat=True))
    RecognisedPage.objects.filter(content_hash__in=set(hashes) - kept).delete()
