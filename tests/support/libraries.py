"""Documents that a fixture has ingested, kept for later tests: rows are copied back in milliseconds."""

import copy
import functools

import pytest
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, models
from psycopg import sql

from retrieval.models import Document


def remembered(build):
    """Return a fixture that fills only the tables of documents, and fills them the same every time.

    It is run once for each embedder. Afterwards those tables are emptied and filled with their first content, ids
    included, the files of the documents are restored, and the models among its arguments become the first time's
    models::

        @pytest.fixture
        @remembered
        def library(collection, ingest):
            ingest(collection, "pump.md", "The pump is blue.")
            return collection
    """
    first = {}

    @functools.wraps(build)
    def fixture(**arguments):
        rows = {name: value for name, value in arguments.items() if isinstance(value, models.Model)}
        # The rows name the embedder that made their vectors.
        embedder = repr(settings.EMBEDDER)
        if embedder not in first:
            returned = build(**arguments)
            states = {name: dict(row.__dict__) for name, row in rows.items()}
            first[embedder] = _copy_out(), _read_files(), states, copy.copy(returned)
            return returned
        tables, files, states, returned = first[embedder]
        _copy_in(tables)
        _write_files(files)
        for name, row in rows.items():
            row.__dict__.update(copy.deepcopy(states[name]))
            if isinstance(returned, models.Model) and returned.pk == row.pk and type(returned) is type(row):
                return row
        if isinstance(returned, models.Model):
            # Not a copy: two share the objects of their files, and a test may have given one another file.
            return type(returned)._base_manager.get(pk=returned.pk)
        return copy.copy(returned)

    return fixture


def _read_files():
    return {name: default_storage.open(name).read() for name in Document.objects.values_list("file", flat=True) if name}


def _write_files(files):
    for name, content in files.items():
        if not default_storage.exists(name) or default_storage.open(name).read() != content:
            default_storage.delete(name)
            assert default_storage.save(name, ContentFile(content)) == name


def _tables():
    return [name for name in connection.introspection.table_names() if name.startswith("retrieval_")]


def _copy_out():
    """Return the tables that have rows, each in PostgreSQL's binary form."""
    connection.ensure_connection()
    held = {}
    with connection.connection.cursor() as cursor:
        for table in _tables():
            with cursor.copy(sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(sql.Identifier(table))) as data:
                held[table] = b"".join(bytes(block) for block in data)
            if cursor.rowcount == 0:
                del held[table]
    return held


def _copy_in(held):
    connection.ensure_connection()
    with connection.connection.transaction(), connection.connection.cursor() as cursor:
        for table in held:
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for table, rows in held.items():
            with cursor.copy(sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table))) as data:
                data.write(rows)


def library_of(texts, **metadata):
    """Return the fixture `library`: a collection of these texts or bytes, by their sources.

    ``metadata`` has the metadata of documents, by the name before the dot of their sources.
    """
    assert set(metadata) <= {source.partition(".")[0] for source in texts}

    @pytest.fixture(name="library")
    @remembered
    def library(collection, ingest):
        for source, text in texts.items():
            ingest(collection, source, text, metadata=metadata.get(source.partition(".")[0], {}))
        return collection

    return library
