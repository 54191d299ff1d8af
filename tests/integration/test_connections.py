"""What is asked of the database beside the statements themselves: whether it is there, and to wait for the disk."""

from __future__ import annotations

import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction
from psycopg_pool import ConnectionPool

from ragsite.postgres.backend import base
from retrieval.infrastructure.database import NotWaiting, not_waiting
from retrieval.models import Collection

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_pooled_connection_is_asked_again_only_when_it_may_have_been_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    ask = ConnectionPool.check_connection
    monkeypatch.setattr(ConnectionPool, "check_connection", lambda each: (asked.append(each), ask(each)))
    assert settings.EMBEDDED_POSTGRES is not None
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True, "cursor_factory": None}) as pooled:
        base.check(pooled)
        base.check(pooled)
        assert asked == [pooled]
        monkeypatch.setattr(base, "TRUSTED_SECONDS", 0.0)
        base.check(pooled)
        assert asked == [pooled, pooled]
        monkeypatch.setattr(base, "TRUSTED_SECONDS", 60.0)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pooled.info.backend_pid])
        with pytest.raises(psycopg.OperationalError):
            base.check(pooled)


def test_one_commit_does_not_wait_for_the_disk_and_the_next_does() -> None:
    Collection.objects.create(name="Manuals", slug="manuals")

    def setting() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            return str(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        # The tests' own server waits for no disk.
        cursor.execute("SET synchronous_commit = on")
    with transaction.atomic():
        assert Collection.objects.filter(NotWaiting(), slug="manuals").update(name="Guides") == 1
        assert setting() == "off"
    with not_waiting():
        assert setting() == "off"
    assert setting() == "on"
    connection.close()
