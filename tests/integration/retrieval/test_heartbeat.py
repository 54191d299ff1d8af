"""A worker's sign of life goes on through a database that is away for a moment, and ends with the claim."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils import timezone

from retrieval.jobs import heartbeat as beats
from retrieval.jobs.heartbeat import heartbeat
from retrieval.models import Collection, Document

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def claimed(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.setattr(beats, "HEARTBEAT_SECONDS", 0.02)
    return Document.objects.create(
        collection=collection,
        source="pump.md",
        status=Document.Status.PROCESSING,
        claim=uuid.uuid4(),
        heartbeat_at=timezone.now() - timedelta(hours=1),
    )


def held(document: Document) -> QuerySet[Document]:
    return Document.objects.filter(pk=document.pk, claim=document.claim)


def is_fresh(document: Document) -> bool:
    document.refresh_from_db()
    return document.heartbeat_at is not None and document.heartbeat_at > timezone.now() - timedelta(minutes=1)


def test_it_beats_until_the_work_ends(claimed: Document) -> None:
    with heartbeat(held(claimed), "document 1"):
        for _attempt in range(3000):
            if is_fresh(claimed):
                break
            threading.Event().wait(0.02)
    assert is_fresh(claimed)
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat of document 1"]


def test_a_database_that_is_away_for_a_moment_does_not_stop_it(
    claimed: Document, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    update = QuerySet.update
    away = iter([True, True])
    beaten = threading.Event()

    def failing_at_first(queryset: QuerySet[Document], **values: object) -> int:
        if next(away, False):
            raise OperationalError("server closed the connection unexpectedly")
        done = update(queryset, **values)
        beaten.set()
        return done

    monkeypatch.setattr(QuerySet, "update", failing_at_first)
    with heartbeat(held(claimed), "document 1"):
        assert beaten.wait(60), "It never beat again."
    assert is_fresh(claimed)
    assert caplog.text.count("The heartbeat of document 1 was not stored.") == 2


def test_a_claim_that_was_lost_is_not_kept_alive(claimed: Document) -> None:
    mine = held(claimed)
    Document.objects.update(claim=uuid.uuid4())
    with heartbeat(mine, "document 1"):
        threading.Event().wait(0.3)
    assert not is_fresh(claimed)
