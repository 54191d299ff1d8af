"""A worker's sign of life goes on through a database that is away for a moment, and ends with the lease."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import QuerySet
from django.utils import timezone

from retrieval.infrastructure import jobs as heartbeats
from retrieval.infrastructure.jobs import heartbeat
from retrieval.models import Collection, Document

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def leased(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0.02)
    return Document.objects.create(
        collection=collection,
        source="pump.md",
        status=Document.Status.PROCESSING,
        lease=uuid.uuid4(),
        heartbeat_at=timezone.now() - timedelta(hours=1),
    )


def is_fresh(document: Document) -> bool:
    document.refresh_from_db()
    return document.heartbeat_at is not None and document.heartbeat_at > timezone.now() - timedelta(minutes=1)


def test_it_goes_on_until_the_work_ends(leased: Document) -> None:
    with heartbeat(leased):
        for _attempt in range(3000):
            if is_fresh(leased):
                break
            threading.Event().wait(0.02)
    assert is_fresh(leased)
    assert not [thread for thread in threading.enumerate() if thread.name == f"heartbeat of document {leased.pk}"]


def test_a_database_that_is_away_for_a_moment_does_not_stop_it(
    leased: Document, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    update = QuerySet.update
    away = iter([True, True])
    stored = threading.Event()

    def failing_at_first(queryset: QuerySet[Document], **values: object) -> int:
        if next(away, False):
            raise OperationalError("server closed the connection unexpectedly")
        done = update(queryset, **values)
        stored.set()
        return done

    monkeypatch.setattr(QuerySet, "update", failing_at_first)
    with heartbeat(leased):
        assert stored.wait(60), "It was never stored again."
    assert is_fresh(leased)
    assert caplog.text.count(f"The heartbeat of document {leased.pk} was not stored.") == 2


def test_a_lease_that_was_lost_is_not_kept_alive(leased: Document) -> None:
    Document.objects.update(lease=uuid.uuid4())
    with heartbeat(leased):
        threading.Event().wait(0.3)
    assert not is_fresh(leased)
