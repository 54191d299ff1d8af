"""`manage.py sync` ended by kill -9 while it saves a document: none is lost or doubled, and its report is true."""

from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from core.job_queue import enqueue_forgotten_jobs
from retrieval.models import Document, SourceItem, SourceRun
from retrieval.sources.states import SourceState, find_source_status
from retrieval.sources.sync_runs import SourceRunRefused, attempt_source_run, request_run
from tests.support.site import SiteProcess, database_url, wait_until
from tests.support.sources import make_source, names, numbers, remote_of, run_once

pytestmark = pytest.mark.django_db(transaction=True)
SAVED = 3
_LOCK = 40_917


@contextmanager
def stopped_while_saving():
    """Make a process that saves one document more than SAVED wait within its transaction, until this ends."""
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url())), autocommit=True) as holder:
        holder.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        holder.execute(
            f"""CREATE FUNCTION stop_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF (SELECT count(*) FROM retrieval_document) >= {SAVED} THEN
                    PERFORM pg_advisory_xact_lock({_LOCK});
                END IF;
                RETURN NEW;
            END $$;
            CREATE TRIGGER stop_here BEFORE INSERT ON retrieval_document FOR EACH ROW EXECUTE FUNCTION stop_here()"""
        )
        try:
            yield
        finally:
            holder.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
            holder.execute("DROP FUNCTION stop_here CASCADE")


def somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted", [_LOCK]
        )
        return bool(cursor.fetchone()[0])


def test_a_killed_run_is_finished_by_another_process(collection, tmp_path):
    with remote_of("webdav", tmp_path) as remote:
        for name in "abcdef":
            remote.put(name, f"The pump {name} weighs 30 kilograms.")
        source = make_source(collection, "webdav", remote.options)
        allowed = {"SOURCE_FOLDERS": str(tmp_path), "SOURCE_PRIVATE_HOSTS": "127.0.0.1"}
        with stopped_while_saving():
            process = SiteProcess(["django", "sync", "Shelf", "--json"], tmp_path / "sync.log", **allowed)
            wait_until(somebody_waits, 60, f"the fourth document\n{process.log.read_text()}")
            process.kill()
        read = remote.reads()
        wait_until(lambda: not somebody_waits(), 10)

        run = SourceRun.objects.get()
        items = SourceItem.objects.exclude(outcome=SourceItem.Outcome.PASSED)
        assert (run.status, len(names()), items.count()) == ("running", SAVED, SAVED)
        assert find_source_status(source).state == SourceState.RUNNING
        with pytest.raises(SourceRunRefused):
            request_run(source)
        SourceRun.objects.update(heartbeat_at=timezone.now() - SourceRun.SILENT_AFTER - timedelta(seconds=1))
        assert enqueue_forgotten_jobs(SourceRun) == 1

        finished = attempt_source_run(run.pk)
        assert (finished.status, numbers(finished), finished.attempts) == ("done", (6, 0, 0, 0, 0), 2), finished.details
        assert len(finished.details["added"]) == len(set(finished.details["added"])) == 6
        # Only what was not saved is read again.
        assert len(remote.reads()) <= 6 - SAVED, read
        assert len(names()) == items.count() == 6
        texts = {document.file.read() for document in Document.objects.filter(origin=source)}
        assert all(any(f"pump {name} ".encode() in text for text in texts) for name in "abcdef")
        assert find_source_status(source).state == SourceState.IN_SYNC
        assert numbers(run_once(source)) == (0, 0, 6, 0, 0)
