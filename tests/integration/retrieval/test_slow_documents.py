"""Slow documents take turns; a file past its limits is rejected at the first attempt."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from core import job_queue
from retrieval.documents import ingestion, reading_turns, submission
from retrieval.models import Document
from tests.support import bombs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def small_limits(settings):
    settings.EXTRACTION_SECONDS = 1.0
    settings.EXTRACTION_MEMORY_MIB = 256
    settings.QUICK_SECONDS = 0.3


def submit(collection, name, data):
    return submission.submit(collection, name, data).document


def read(document):
    ingestion.ingest_document(document.pk, takes_turns=True)
    document.refresh_from_db()
    return document


def another_is_slow(collection, **heartbeat):
    """Return a slow document that another worker is reading."""
    other = submit(collection, "other.md", b"# Other\n\nWords.")
    Document.objects.filter(pk=other.pk).update(
        status=Document.Status.PROCESSING, is_slow=True, heartbeat_at=timezone.now() - timedelta(**heartbeat)
    )
    return other


def test_a_file_past_its_time_is_rejected_at_the_first_attempt(collection):
    document = read(submit(collection, "bomb.pdf", bombs.pdf_endless()))
    assert (document.status, document.attempts, document.is_slow) == (Document.Status.FAILED, 1, True)
    assert document.error.startswith(("bomb.pdf needed more than 1 s", "bomb.pdf took longer"))


def test_a_file_past_its_memory_is_rejected_at_the_first_attempt(collection, settings):
    settings.EXTRACTION_SECONDS = 20.0
    settings.EXTRACTION_MEMORY_MIB = 20
    document = read(submit(collection, "bomb.docx", bombs.docx_empty_paragraphs()))
    assert (document.status, document.attempts) == (Document.Status.FAILED, 1)
    assert document.error.startswith("bomb.docx needed more than 20 MiB of memory to be read")


def test_a_slow_file_waits_while_another_is_read(collection):
    other = another_is_slow(collection, seconds=1)
    started = time.monotonic()
    document = read(submit(collection, "bomb.pdf", bombs.pdf_endless()))
    assert (document.status, document.attempts, document.lease) == (Document.Status.PENDING, 0, None)
    assert document.error == reading_turns.WAITING
    assert document.is_slow
    assert document.retry_at is not None
    # It is known as slow now, and does not take a worker's time again only to wait once more.
    started = time.process_time()
    assert read(document).status == Document.Status.PENDING
    assert time.process_time() - started < 1
    # A quick one is read meanwhile.
    assert read(submit(collection, "quick.md", b"# Quick\n\nWords.")).status == Document.Status.READY
    Document.objects.filter(pk=other.pk).update(status=Document.Status.READY)
    assert read(document).status == Document.Status.FAILED


def test_a_dead_worker_keeps_no_turn(collection):
    another_is_slow(collection, minutes=1)
    assert read(submit(collection, "bomb.pdf", bombs.pdf_endless())).status == Document.Status.FAILED


def test_the_end_of_a_turn_calls_the_next(collection, monkeypatch):
    told = []
    monkeypatch.setattr(job_queue, "send_job", lambda _task, pk: told.append(pk))
    waiting = submit(collection, "waiting.md", b"# Waiting\n\nWords.")
    Document.objects.filter(pk=waiting.pk).update(is_slow=True, retry_at=timezone.now())
    read(submit(collection, "bomb.pdf", bombs.pdf_endless()))
    assert told == [waiting.pk]


def test_much_text_takes_a_turn_too(collection, monkeypatch):
    monkeypatch.setattr(ingestion, "QUICK_CHARACTERS", 100)
    other = another_is_slow(collection, seconds=1)
    document = read(submit(collection, "long.txt", b"Many words stand here. " * 10))
    assert (document.status, document.error) == (Document.Status.PENDING, reading_turns.WAITING)
    other.delete()
    assert read(document).status == Document.Status.READY


def test_a_file_of_too_many_passages_is_rejected(collection, settings):
    settings.DOCUMENT_MAX_PASSAGES = 2
    document = read(submit(collection, "long.md", b"# A\n\n" + b"Many words stand here. " * 300))
    assert document.status == Document.Status.FAILED
    assert "passages, and 2 is the most" in document.error
