"""Commands before the site was started for the first time."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from retrieval.models import Document
from tests.support.databases import create_database, database, url_of


@pytest.fixture
def empty_database(django_db_setup: None, django_db_blocker: object) -> Iterator[None]:
    """An embedded database without a table, as before the first `make run`."""
    create_database("before_the_first_run", "template1")
    try:
        with django_db_blocker.unblock(), database("before_the_first_run"):  # type: ignore[attr-defined]
            yield
    finally:
        with psycopg.connect(url_of("postgres"), autocommit=True) as server:
            server.execute("DROP DATABASE before_the_first_run WITH (FORCE)")


def test_the_embedded_database_is_prepared_with_one_line(
    empty_database: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: LazySettings
) -> None:
    (tmp_path / "pump.md").write_text("# Pump\n\nIt weighs 3450 grams.")
    settings.EMBEDDED_POSTGRES.acquire()
    settings.MEDIA_ROOT = tmp_path / "media"
    before, found = settings.EMBEDDED_POSTGRES, StringIO()
    # Of a database of one's own the site does not change the tables unasked.
    settings.EMBEDDED_POSTGRES = None
    with pytest.raises(CommandError, match=r"\d+ migrations are not applied .* `manage.py migrate`"):
        call_command("ingest", str(tmp_path / "pump.md"))
    settings.EMBEDDED_POSTGRES = before
    call_command("ingest", str(tmp_path / "pump.md"), stdout=found)
    assert capsys.readouterr().err.count("Preparing the database …\n") == 1
    assert "1 added" in found.getvalue()
    assert Document.objects.count() == 1
    call_command("search", "How heavy is the pump?", stdout=found)
    assert "Preparing" not in capsys.readouterr().err
    assert "3450 grams" in found.getvalue()
