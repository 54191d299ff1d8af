"""Statements of a search are prepared once a connection."""

import psycopg
import pytest
from django.db import OperationalError, connection

from core.database import fetch_rows
from retrieval.models import Document
from retrieval.search.pipeline import search
from retrieval.types import SearchFilters
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

library = library_of({"zoo.md": "# Zoo\n\nThe zoo is open every day."})


def list_prepared():
    return [name for (name,) in fetch_rows("SELECT statement FROM pg_prepared_statements ORDER BY statement")]


def test_a_statement_is_prepared_at_its_first_use_and_used_again(library):
    connection.close()
    for number in (1, 2, 3):
        assert fetch_rows("SELECT %s::int + 1", [number]) == [(number + 1,)]
    assert [text for text in list_prepared() if "+ 1" in text] == ["SELECT $1::int + 1"]


def test_statements_of_a_search_are_prepared_and_those_of_django_are_not(library):
    connection.close()
    found = search("When is the zoo open?", SearchFilters(collections=(library.pk,), readers=()))
    assert [hit.passage.document_title for hit in found.hits] == [str(Document.objects.get())]
    prepared = list_prepared()
    assert any("retrieval_chunk AS chunk" in text or "FROM retrieval_chunk" in text for text in prepared)
    assert not [text for text in prepared if '"retrieval_document"' in text]


def test_a_statement_that_failed_can_be_used_again(library):
    with pytest.raises(Exception, match="division by zero"):
        fetch_rows("SELECT 1 / %s::int", [0])
    assert fetch_rows("SELECT 1 / %s::int", [1]) == [(1,)]


def test_a_prepared_statement_follows_a_change_of_its_table(library):
    """Old processes run on while a new release migrates."""
    sql = "SELECT source FROM retrieval_document"
    for _ in range(7):
        assert fetch_rows(sql) == [("zoo.md",)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE retrieval_document ADD COLUMN later int DEFAULT 3")
        try:
            assert fetch_rows(sql) == [("zoo.md",)]
        finally:
            cursor.execute("ALTER TABLE retrieval_document DROP COLUMN later")
    assert fetch_rows(sql) == [("zoo.md",)]


@pytest.mark.parametrize("ending", ["by the server", "by a failed query", "by this process"])
def test_a_connection_that_ended_is_replaced(library, ending):
    connection.ensure_connection()
    lost = connection.connection
    if ending == "by this process":
        lost.close()
    else:
        with psycopg.connect(**{**lost.info.get_parameters(), "password": lost.info.password}) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [lost.info.backend_pid])
    if ending == "by a failed query":
        with pytest.raises(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    assert not connection.is_usable()
    connection.close_if_unusable_or_obsolete()
    connection.health_check_done = False
    assert fetch_rows("SELECT 1") == [(1,)]
