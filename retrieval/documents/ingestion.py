"""Convert uploaded files to searchable passages.

A document's row is its job (see `core.jobs`). The last transaction checks that this worker still has the lease.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from core import disk
from core.database import is_node_lost
from core.exceptions import DiskFull, FilesUnavailable, LeaseLost, RagsiteError
from core.job_queue import enqueue
from core.jobs import acquire_lease, heartbeat
from retrieval import backends
from retrieval.documents import formats, reading_turns
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.documents.members import delete_missing_member_files, submit_member_files
from retrieval.documents.reading_turns import ReadingTurn, ReadingTurnPostponed
from retrieval.documents.recognition.pages import find_reason_for_missing_ocr, forget_pages, recognise_pages
from retrieval.documents.sandbox import JobCancelled
from retrieval.documents.submission import compute_fingerprint
from retrieval.exceptions import DocumentRejected, EmbedderMisconfigured
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import NewChunk, replace_chunks
from retrieval.media_types import PDF
from retrieval.models import Document, DocumentText, Embedder, RecognisedPage
from retrieval.tables.stored_tables import replace_tables
from retrieval.tables.table_reading import read_tables
from retrieval.text import chunking
from retrieval.text.block import find_overlapping_rows
from retrieval.text.blocks import find_blocks
from retrieval.text.chunking import drop_repeated_title
from retrieval.text.extracted import ExtractedText, ExtractionLimits
from retrieval.text.instructions import MOST_SHOWN, find_instructions
from retrieval.text.language import identify_language

if TYPE_CHECKING:
    from retrieval.types import Vectors

# The progress of a scanned document after OCR, in percent.
RECOGNITION_PERCENT = 90
_WORD = re.compile(r"\w")

Recognised = tuple[int, float | None]


def extract_document_text(document: Document, turn: ReadingTurn) -> tuple[ExtractedText, list[Recognised]]:
    """Return the text of the document's file, and OCR's confidence for each scanned page.

    Raises: DocumentRejected, ReadingTurnPostponed.
    """
    with document.file.open("rb") as file:
        data = file.read()
    limits = ExtractionLimits(max_bytes=settings.DOCUMENT_MAX_BYTES)
    job_limits = build_sandbox_limits(settings.EXTRACTION_MEMORY_MIB, settings.EXTRACTION_SECONDS, limits, len(data))
    read = partial(extract_in_sandbox, limits=limits, job_limits=job_limits, still_wanted=turn.may_continue_reading)
    try:
        extracted = read(data, document.source)
        if not extracted.unread_pages:
            return extracted, []
        numbers = extracted.unread_pages
        pages: list[RecognisedPage] = []
        missing = find_reason_for_missing_ocr()
        if not missing:
            turn.take()
            pages = recognise_pages(
                document,
                data,
                numbers,
                is_picture=extracted.media_type != PDF,
                on_progress=lambda done, total: _store_progress(document, RECOGNITION_PERCENT * done // total),
                seconds=settings.OCR_TURN_SECONDS if turn.ends else None,
            )
            read_pages = [
                (page.number, page.width, page.height, page.turned, page.words) for page in pages if not page.failure
            ]
            extracted = read(data, document.source, recognised=read_pages)
    except JobCancelled as error:
        raise ReadingTurnPostponed(f"Document {document.pk} waits for its turn: {error}") from error
    if not _WORD.search(extracted.text):
        failed = next((f": page {page.number} {page.failure}" for page in pages if page.failure), "")
        reason = f"Here, {missing}." if missing else f"Text recognition (OCR) found none{failed}."
        raise DocumentRejected(f"{document.source} holds pictures of pages but no text. {reason}")
    sure = {page.number: page.confidence for page in pages}
    return extracted, [(number, sure.get(number)) for number in numbers]


def _store_progress(document: Document, percent: int) -> None:
    if not document.write_under_lease(progress_percent=percent, heartbeat_at=Now()):
        raise LeaseLost(f"{document.job_name} is no longer leased to this process.")


logger = logging.getLogger(__name__)

# Delay before the next attempt if disk, file storage, embedder or database failed.
SITE_AWAITED = timedelta(minutes=1)
# Number of texts that are embedded between two heartbeats.
EMBEDDING_BATCH = 64
# Larger passages have several topics, and their vectors match none of them well.
LARGEST_CHUNK_TOKENS = 350
# Limits above which a document is slow: reading it takes more than a second or two.
QUICK_CHARACTERS = 100_000
QUICK_PASSAGES = 64


# Called with the numbers of embedded passages and of all passages.
Progress = Callable[[int, int], None]


def ingest_document(
    document_id: int, progress: Progress | None = None, *, takes_turns: bool = False
) -> Document | None:
    """Read the document and make its passages searchable; return None if another process has the lease.

    Errors are stored in the row, with status FAILED, or PENDING for another attempt. The old passages stay searchable
    until the document is read. A slow document may have to wait if ``takes_turns`` is set.
    """
    document = _acquire_document_lease(document_id)
    if document is None:
        return None
    try:
        with heartbeat(document), disk.guard_against_full_disk():
            _process_document(document, ReadingTurn(document, takes_turns=takes_turns), progress)
    except ReadingTurnPostponed:
        document.hand_back(reading_turns.WAITING, reading_turns.ASKED_AGAIN_AFTER, is_slow=True)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except DocumentRejected as error:
        document.end(Document.FAILED, str(error))
    except (DiskFull, FilesUnavailable, EmbedderMisconfigured) as error:
        logger.error("Document %s (%s) waits: %s", document.pk, document.source, error)
        document.hand_back(f"Will be tried again. {error}", SITE_AWAITED)
    except Exception as error:
        if is_node_lost(error):
            logger.error("Document %s (%s) waits for a node of the database: %s", document.pk, document.source, error)
            document.hand_back("Will be tried again when all of the database answers.", SITE_AWAITED)
        else:
            logger.exception("Document %s (%s) could not be ingested.", document.pk, document.source)
            reason = str(error) if isinstance(error, RagsiteError) else f"{type(error).__name__}: {error}"
            if document.is_last_attempt:
                document.end(Document.FAILED, f"Failed {document.attempts} times, last with: {reason}")
            else:
                document.postpone(f"Will be tried again. {reason}")
    document.refresh_from_db()
    if (
        document.is_slow
        and document.error != reading_turns.WAITING
        and (waiting := reading_turns.find_next_slow_document()) is not None
    ):
        enqueue(Document, [waiting])
    return document


def _acquire_document_lease(document_id: int) -> Document | None:
    return acquire_lease(
        Document.unfinished().select_related("collection"),
        document_id,
        status=Document.RUNNING,
        progress_percent=0,
        error="",
        updated_at=timezone.now(),
    )


def _process_document(document: Document, turn: ReadingTurn, progress: Progress | None) -> None:
    embedder_row = active_embedder()
    extracted, recognised = extract_document_text(document, turn)
    if len(extracted.text) > QUICK_CHARACTERS:
        turn.take()
    extracted_title = (extracted.title or document.source.replace("\\", "/").rsplit("/", 1)[-1])[:500]
    title = extracted_title if document.title in ("", document.extracted_title) else document.title
    language = document.language = document.language or identify_language(extracted.text)
    extracted = replace(extracted, title=title)
    text_chunks = _split_into_passages(document, extracted)
    fingerprint = compute_fingerprint(document, title, embedder_row)
    keep = DocumentText.objects.filter(pk=document.pk, recipe=fingerprint).exists()
    hashes = [chunking.hash_content(chunk.text, chunk.heading_path) for chunk in text_chunks]
    fresh = _find_passages_to_embed(document, hashes, embedder_row, keep=keep)
    if len(fresh) > QUICK_PASSAGES:
        turn.take()
    texts = [
        chunking.build_embedding_text(title, text_chunks[index].heading_path, text_chunks[index].text)
        for index in fresh
    ]
    vectors = _embed(document, texts, progress)
    chunks = _make_chunks(extracted, text_chunks, hashes, language, fresh, vectors)
    submit_member_files(document, extracted.members)
    before = DocumentText.objects.filter(pk=document.pk).values_list("content_hash", flat=True).first()
    tables = read_tables(extracted)
    instructions = find_instructions(extracted.text)
    with transaction.atomic():
        current = document.lock()
        current.title, current.extracted_title = title, extracted_title
        current.language, current.media_type = language, extracted.media_type
        replace_chunks(current, chunks, embedder_row, keep=keep)
        replace_tables(current, tables)
        delete_missing_member_files(current, extracted.members)
        DocumentText.objects.update_or_create(
            document=current,
            defaults={
                "content_hash": current.content_hash,
                "recipe": fingerprint,
                "text": extracted.text,
                "pages": extracted.pages,
                "sections": [[section.start, section.level, section.title] for section in extracted.sections],
                "recognised": recognised,
                "instructions": instructions[:MOST_SHOWN],
            },
        )
        current.instruction_count = len(instructions)
        current.left_out = [[each.kind, each.names, each.count] for each in extracted.left_out]
        current.become_ready(len(chunks))
        current.save()
        if before not in (None, current.content_hash):
            forget_pages([before])


def _split_into_passages(document: Document, extracted: ExtractedText) -> list[chunking.TextChunk]:
    embedder = embedder_choice.get_embedder()
    text_chunks = chunking.split_into_chunks(
        extracted, embedder.count_tokens, min(embedder.max_tokens, LARGEST_CHUNK_TOKENS)
    )
    if not text_chunks:
        raise DocumentRejected(f"{document.source} holds no text: if it is a scan, run text recognition (OCR) first.")
    if len(text_chunks) > settings.DOCUMENT_MAX_PASSAGES:
        raise DocumentRejected(
            f"{document.source} would be cut into {len(text_chunks):,} passages, and "
            f"{settings.DOCUMENT_MAX_PASSAGES:,} is the most: split it into smaller files."
        )
    return text_chunks


def _find_passages_to_embed(document: Document, hashes: Sequence[str], embedder: Embedder, *, keep: bool) -> list[int]:
    """Return the indexes of the passages that need a new vector, because no stored passage has their hash."""
    reusable = Counter[str]()
    if keep:
        kept = document.chunks.filter(embeddings__document=document, embeddings__embedder=embedder)
        reusable.update(kept.values_list("content_hash", flat=True))
    fresh: list[int] = []
    for index, content_hash in enumerate(hashes):
        if reusable[content_hash]:
            reusable[content_hash] -= 1
        else:
            fresh.append(index)
    return fresh


def _make_chunks(
    extracted: ExtractedText,
    text_chunks: Sequence[chunking.TextChunk],
    hashes: Sequence[str],
    language: str,
    fresh: Sequence[int],
    vectors: Sequence[Vectors],
) -> list[NewChunk]:
    """Return the passages to store. ``fresh`` are the indexes of the passages to which ``vectors`` belong."""
    tokens = embedder_choice.get_embedder().count_tokens([chunk.text for chunk in text_chunks])
    questions = backends.get_question_generator()
    headings = [(section.start, section.title) for section in extracted.sections]
    blocks = find_blocks(extracted.text, headings, is_code=formats.is_code(extracted.media_type))
    block_rows = find_overlapping_rows(blocks, [(chunk.start, chunk.end) for chunk in text_chunks])
    is_fresh = set(fresh)
    vector_of = dict(zip(fresh, vectors, strict=True))
    return [
        NewChunk(
            start=chunk.start,
            end=chunk.end,
            page=chunk.page,
            heading_path=drop_repeated_title(extracted.title, chunk.heading_path),
            content=chunk.text,
            content_hash=hashes[index],
            token_count=tokens[index],
            questions=tuple(questions.generate(chunk.text, chunk.heading_path, language))
            if questions and index in is_fresh
            else (),
            vector=vector_of.get(index),
            blocks=block_rows[index],
        )
        for index, chunk in enumerate(text_chunks)
    ]


def _embed(document: Document, texts: list[str], progress: Progress | None) -> list[Vectors]:
    embedder = embedder_choice.get_embedder()
    vectors: list[Vectors] = []
    for start in range(0, len(texts), EMBEDDING_BATCH):
        vectors.extend(embedder.embed_documents(texts[start : start + EMBEDDING_BATCH]))
        if progress is not None:
            progress(len(vectors), len(texts))
        _store_progress(document, max(document.progress_percent, 99 * len(vectors) // len(texts)))
    return vectors
