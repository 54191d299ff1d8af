"""The text of a document's file, with what is recognised on its pages and in its pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from django.conf import settings
from django.db.models.functions import Now

from retrieval.exceptions import DocumentRejected, LeaseLost
from retrieval.ingest.extraction.sandboxed import extract_in_sandbox, sandbox_limits
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits, leave_out
from retrieval.ingest.formats import PDF
from retrieval.ingest.turns import ReadingTurn, TurnPostponed
from retrieval.models import Document, RecognisedPage
from retrieval.recognition.pages import TurnOver, recognise_pages, to_words, why_not
from retrieval.sandbox import JobCancelled

# Of the progress of a scan; the rest is for its passages.
RECOGNITION_PERCENT = 90
_WORD = re.compile(r"\w")

Recognised = tuple[int, float | None]


def read_document(document: Document, turn: ReadingTurn) -> tuple[ExtractedText, list[Recognised]]:
    """The text of the document's file, and its pages that are pictures with the confidence of each; they, and the
    pictures inside of the document, are recognised where that is installed.

    Raises: DocumentRejected, TurnPostponed.
    """
    with document.file.open("rb") as file:
        data = file.read()
    limits = ExtractionLimits(max_bytes=settings.DOCUMENT_MAX_BYTES)
    within = sandbox_limits(settings.EXTRACTION_MEMORY_MIB, settings.EXTRACTION_SECONDS, limits, len(data))
    read = partial(extract_in_sandbox, limits=limits, within=within, still_wanted=turn.is_wanted)
    try:
        extracted = read(data, document.source)
        if not extracted.unread_pages and not extracted.pictures:
            return extracted, []
        numbers = extracted.unread_pages
        pages: list[RecognisedPage] = []
        missing = why_not()
        if not missing:
            turn.take()
            pages = _recognise(document, data, extracted, turn)
            words = [to_words(page) for page in pages if not page.failure]
            extracted = read(data, document.source, recognised=words)
        elif extracted.pictures:
            extracted = _tell_unread_pictures(extracted)
    except JobCancelled as error:
        raise TurnPostponed(f"Document {document.pk} waits for its turn.") from error
    if not _WORD.search(extracted.text):
        raise DocumentRejected(f"{document.source} holds pictures of pages but no text. {_why_no_text(missing, pages)}")
    sure = {page.number: page.confidence for page in pages}
    return extracted, [(number, sure.get(number)) for number in numbers]


def _tell_unread_pictures(extracted: ExtractedText) -> ExtractedText:
    kind = "pictures without engine" if settings.OCR_LANGUAGES else "pictures turned off"
    left_out = leave_out(kind, (), len(extracted.pictures))
    return replace(extracted, left_out=(*extracted.left_out, *left_out))


def _why_no_text(missing: str, pages: Sequence[RecognisedPage]) -> str:
    if missing:
        return f"Here, {missing}."
    failures = [f"page {page.number} {page.failure}" for page in pages if page.failure]
    return f"Text recognition (OCR) found none{': ' + failures[0] if failures else ''}."


def _recognise(document: Document, data: bytes, extracted: ExtractedText, turn: ReadingTurn) -> list[RecognisedPage]:
    """The pages of the file that are pictures, then the pictures inside of it."""
    pictures = {picture.number: picture.data for picture in extracted.pictures}
    numbers = [*extracted.unread_pages, *pictures]

    def load(number: int) -> tuple[bytes, int]:
        return (pictures[number], 1) if number in pictures else (data, number)

    try:
        return recognise_pages(
            document,
            numbers,
            load,
            is_picture=lambda number: number in pictures or extracted.media_type != PDF,
            told=_tell_progress(document),
            seconds=settings.OCR_TURN_SECONDS if turn.ends else None,
        )
    except TurnOver as error:
        raise TurnPostponed(str(error)) from error


def _tell_progress(document: Document) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        percent = RECOGNITION_PERCENT * done // total
        if not document.write(progress_percent=percent, heartbeat_at=Now()):
            raise LeaseLost(f"{document.job_name} is no longer leased to this process.")

    return tell
