"""kill -9 of the worker or the connector, or the end of its database connections, at random moments of runs.

CONNECTOR_KILLS=20 .venv/bin/python -m pytest -s tests/integration/sources/test_connector_kills.py
"""

import os
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import psutil
import pytest
from django.db import connection
from django.utils import timezone

from core.job_queue import enqueue_forgotten_jobs
from retrieval.models import Document, SourceItem, SourceRun
from retrieval.sources.sync_runs import attempt_source_run
from tests.support.site import SiteProcess, wait_until
from tests.support.sources import ConnectorRemote, make_source, run_once

pytestmark = pytest.mark.django_db(transaction=True)
KILLS = int(os.environ.get("CONNECTOR_KILLS", "3"))
SEED = int(os.environ.get("CONNECTOR_SEED", "1"))
KINDS = ("worker", "connector", "database")
# Reading and saving the changes of a run take about so long.
MOST_SECONDS = 1.2
MOST_READING_SECONDS = 0.4
RECORDS = 12


def test_kills_lose_and_double_nothing(collection, tmp_path, settings):
    random = Random(SEED)
    remote = ConnectorRemote(tmp_path / "records")
    remote.options["config.page"] = "3"
    remote.choose("pages", sync_mode="incremental", deleted_field="deleted")
    expected, clock = {}, iter(range(100_000, 999_999))

    def write(name, text, **values):
        remote.put(name, text, updated_at=str(next(clock)), **values)
        expected[name] = text
        if values:
            del expected[name]

    for number in range(RECORDS):
        write(f"r{number}", f"Text {number}.")
    source = make_source(collection, "connector", remote.options)
    assert run_once(source).status == "done"
    (remote.path / "slow").touch()

    outcomes, lost, doubled = Counter(), [], []
    for turn in range(KILLS):
        kind = KINDS[turn % len(KINDS)]
        for name in random.sample(sorted(expected), 6):
            write(name, f"Text of {turn}.")
        write(f"new{turn}", f"New of {turn}.")
        write(random.choice(sorted(expected)), "", deleted=True)
        outcomes[kind, kill_during_run(kind, random, tmp_path, settings)] += 1
        finish()
        found = {document.title.removeprefix("Page "): document for document in Document.objects.all()}
        texts = {name: document.file.read().decode().split("\n\n")[1].strip() for name, document in found.items()}
        lost += [(turn, name) for name, text in expected.items() if texts.get(name) != text]
        doubled += [(turn, name) for name in texts.keys() - expected.keys()]
        if not len(found) == Document.objects.count() == SourceItem.objects.count():
            doubled.append((turn, "a second document"))
    print(f"\n{KILLS} kills: {dict(outcomes)}; lost {len(lost)}, doubled {len(doubled)}")
    assert (lost, doubled) == ([], [])


def kill_during_run(kind, random, tmp_path, settings):
    """Begin a run, and end it or a part of it; return what was reached."""
    before = set(SourceRun.objects.values_list("pk", flat=True))
    process = SiteProcess(
        ["django", "sync", "Shelf", "--json"],
        tmp_path / "log",
        DATA_DIR=str(Path(settings.DATA_DIR)),
        SOURCE_CONNECTORS="true",
    )
    try:
        new = SourceRun.objects.exclude(pk__in=before).filter(status="running")
        wait_until(new.exists, 60, f"the run\n{process.log.read_text()[-2000:]}")
        if kind == "connector":
            wait_until(lambda: connectors_of(process), 60, f"the connector\n{process.log.read_text()[-2000:]}")
        time.sleep(random.uniform(0, MOST_READING_SECONDS if kind == "connector" else MOST_SECONDS))
        run = SourceRun.objects.exclude(pk__in=before).get()
        reached = (
            run.status
            if run.status != "running"
            else "saving"
            if SourceItem.objects.filter(seen_by_run=run.pk).exists()
            else "reading"
        )
        if kind == "worker":
            process.kill()
        elif kind == "connector":
            for child in connectors_of(process):
                child.kill()
        else:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        process.popen.wait(60)
        return reached
    finally:
        process.stop()


def connectors_of(process):
    """Return the processes of connectors that it started."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.popen.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found += [child] if any("source-fake" in part for part in child.cmdline()) else []
    return found


def finish():
    """Let another worker do what is left, as the sweep arranges it."""
    run = SourceRun.objects.first()
    for _attempt in range(3):
        if not run.is_active:
            break
        silent = timezone.now() - SourceRun.SILENT_AFTER - timedelta(seconds=1)
        SourceRun.objects.filter(status="running").update(heartbeat_at=silent)
        SourceRun.objects.filter(status="waiting").update(retry_at=None)
        enqueue_forgotten_jobs(SourceRun)
        attempt_source_run(run.pk)
        run.refresh_from_db()
    assert run.status == "done", run.error
