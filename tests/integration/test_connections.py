"""Commits that wait for the disk."""

import pytest
from django.db import connection, transaction

from core.database import IS_NOT_WAITING, commit_without_waiting
from retrieval.models import Collection

pytestmark = pytest.mark.django_db(transaction=True)


def test_one_commit_does_not_wait_for_the_disk_and_the_next_does():
    Collection.objects.create(name="Manuals", slug="manuals")

    def setting():
        with connection.cursor() as cursor:
            cursor.execute("SHOW synchronous_commit")
            return str(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        # The tests' own server waits for no disk.
        cursor.execute("SET synchronous_commit = on")
    with transaction.atomic():
        assert Collection.objects.filter(IS_NOT_WAITING, slug="manuals").update(name="Guides") == 1
        assert setting() == "off"
    with commit_without_waiting():
        assert setting() == "off"
    assert setting() == "on"
    connection.close()
