"""Very many documents: found by their words at once, by meaning when all their vectors are made and indexed."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psycopg
import pytest
from django.core.management import call_command
from django.db import connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from retrieval import conf
from retrieval.documents import ingestion, submission
from retrieval.documents.file_loading import ingest_paths
from retrieval.documents.reconciliation import ProblemKind, check, reconcile
from retrieval.index import reembedding
from retrieval.index.reembedding import AlreadyLoading, is_loading, load_vectors
from retrieval.index.vector_index import index_name
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, Embedder
from retrieval.rights import everything
from retrieval.search.pipeline import search
from retrieval.types import SearchMethod
from tests.support.site import SiteProcess, database_url, wait_until

pytestmark = pytest.mark.django_db(transaction=True)

Ingest = Callable[..., Document]


def no_report(what: str, done: int, total: int) -> None: ...


@pytest.fixture
def library(collection: Collection, ingest: Ingest) -> Collection:
    """One document with vectors, and two that await theirs."""
    ingest(collection, "valve.md", "# Valve\n\nThe valve closes at ten bar.")
    for source, text in (
        ("pump.md", "# Pump\n\nThe pump weighs 3450 grams."),
        ("fan.md", "# Fan\n\nIt cools the pump."),
    ):
        document = submission.submit(collection, source, text.encode(), enqueue=False).document
        ingestion.ingest(document.pk, with_vectors=False)
    return collection


def active() -> Embedder:
    return Embedder.objects.get(is_active=True)


def test_words_come_first_and_every_search_says_so(library: Collection) -> None:
    assert set(library.documents.values_list("status", flat=True)) == {Document.Status.READY}
    result = search("How much does the pump weigh?", everything())
    assert "pump.md" in {hit.passage.source for hit in result.hits}
    assert result.trace.degraded == ("unencoded",)
    # Where nothing is searched by meaning, nothing is missing.
    assert search("pump", everything(), method=SearchMethod.LEXICAL).trace.degraded == ()
    load_vectors(no_report)
    result = search("How much does the pump weigh?", everything())
    assert result.trace.degraded == ()
    assert result.hits[0].passage.source == "pump.md"
    assert ChunkEmbedding.objects.count() == Chunk.objects.count() == 3
    assert check() == []


def test_more_than_there_was_is_indexed_apart_and_takes_its_place(
    library: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "FEW", 0)
    before, version = active(), CollectionStatistics.objects.get(pk=library.pk).version
    built: list[int] = []

    def build_beside_a_writer(gathered: Embedder, report: object) -> None:
        # Whoever searches meanwhile is answered as before; what is added meanwhile is not lost.
        assert active() == before
        assert ChunkEmbedding.objects.filter(embedder=before).count() == 1
        document = submission.submit(library, "late.md", b"# Late\n\nThe late one is blue.", enqueue=False).document
        ingestion.ingest(document.pk)
        build_index(gathered, report)  # type: ignore[arg-type]
        built.append(gathered.pk)

    build_index = reembedding.build_index
    monkeypatch.setattr(reembedding, "build_index", build_beside_a_writer)
    assert load_vectors(no_report) == 2
    after = active()
    assert (built, after.name, after.dimension) == ([after.pk], before.name, before.dimension)
    assert list(Embedder.objects.all()) == [after]
    assert ChunkEmbedding.objects.filter(embedder=after).count() == Chunk.objects.count() == 4
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index_name(after)])
        assert cursor.fetchone() == (True,)
    # What was kept of earlier searches is stale.
    assert CollectionStatistics.objects.get(pk=library.pk).version > version
    assert check() == []


def test_whoever_encoded_before_the_exchange_writes_after_it(
    library: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reembedding, "FEW", 0)

    submitted = submission.submit(library, "late.md", b"# Late\n\nThe late one is blue.", enqueue=False)

    embed, begun = conf.embedder().embed_documents, threading.Event()

    def embed_and_load(texts: Sequence[str]) -> np.ndarray:
        vectors = embed(texts)
        if not begun.is_set():
            begun.set()
            load_vectors(no_report)
        return vectors

    monkeypatch.setattr(conf.embedder(), "embed_documents", embed_and_load)
    ingestion.ingest(submitted.document.pk)
    assert ChunkEmbedding.objects.filter(embedder=active()).count() == Chunk.objects.count() == 4
    assert check() == []


def test_reading_it_again_needs_no_bulk_load(library: Collection) -> None:
    for document in library.documents.filter(awaits_vectors=True):
        submission.requeue(document, enqueue=False)
        ingestion.ingest(document.pk)
    assert not library.documents.filter(awaits_vectors=True).exists()
    assert search("pump", everything()).trace.degraded == ()
    assert check() == []


def test_a_load_that_nobody_goes_on_with_is_found_and_mended(library: Collection) -> None:
    with reembedding.loading():
        assert is_loading()
        assert check() == []
        with pytest.raises(AlreadyLoading), reembedding.loading():
            pytest.fail("Two processes load at once.")
    assert not is_loading()
    assert [(each.kind, each.count) for each in check()] == [(ProblemKind.MISSING_VECTORS, 2)]
    assert all(each.repaired for each in reconcile(repair=True))
    assert not library.documents.filter(awaits_vectors=True).exists()
    assert check() == []


def load_in_a_process(collection: Collection, log: Path, *paths: Path) -> SiteProcess:
    command = ["manage", "ingest", "--bulk", *map(str, paths), "--collection", collection.slug, "--processes", "2"]
    return SiteProcess(command, log)


def kill_the_command(load: SiteProcess) -> None:
    """The command alone: what it has started must end by itself."""
    os.kill(load.popen.pid, signal.SIGKILL)
    load.popen.wait(10)
    wait_until(lambda: not _is_alive(load.popen.pid), 20, "the end of what it started")


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_load_is_resumed(collection: Collection, ingest: Ingest, tmp_path: Path) -> None:
    ingest(collection, "valve.md", "# Valve\n\nThe valve closes at ten bar.")
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.md").write_text(f"# Manual {number}\n\nIt tells how machine {number} is cleaned.")
    rows = (
        f"machine {n},is cleaned by hand on every second day of the month {n} with soap and with water"
        for n in range(90)
    )
    (folder / "rows.csv").write_text("name,what has to be done with it\n" + "\n".join(rows))

    load = load_in_a_process(collection, tmp_path / "reading.log", folder)
    wait_until(lambda: Document.objects.filter(awaits_vectors=True).exists(), 60, "a document")
    kill_the_command(load)
    counts = ingest_paths([folder], collection, None, with_vectors=False)
    assert (counts.added + counts.unchanged, counts.failed) == (13, 0)

    passages = Chunk.objects.count()
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as holder:
        # Whoever writes its vector waits here.
        holder.execute("SELECT FROM retrieval_chunk ORDER BY id DESC LIMIT 1 FOR UPDATE")
        load = load_in_a_process(collection, tmp_path / "vectors.log")
        wait_until(lambda: ChunkEmbedding.objects.count() > 1, 60, f"vectors\n{load.log.read_text()}")
        kill_the_command(load)
    wait_until(lambda: not is_loading(), 10, "the end of its session")
    assert 1 < ChunkEmbedding.objects.count() < passages

    call_command("ingest", str(folder), bulk=True, collection=collection.slug, stdout=io.StringIO())
    assert ChunkEmbedding.objects.count() == Chunk.objects.count() == passages
    assert not Document.objects.exclude(status=Document.Status.READY, awaits_vectors=False).exists()
    assert check() == []


def test_an_encoding_is_stored_a_batch_at_a_time(library: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reembedding, "BATCH", 1)
    seen: list[tuple[int, int]] = []
    load_vectors(lambda what, done, total: seen.append((done, total)))
    assert seen == [(1, 2), (2, 2)]
