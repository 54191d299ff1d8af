"""A site that grows from one PostgreSQL to a Citus cluster: the same hits, while shards move, and after a node died."""

import json
import os
import threading
from io import StringIO
from pathlib import Path

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import Client
from pgvector import HalfVector

from core.database import limit_statements
from ragsite.operations.backups import BackupError, make_backup, restore_backup
from retrieval.documents import ingestion, submission
from retrieval.documents.reconciliation import find_inconsistencies
from retrieval.exceptions import SearchUnavailable
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.distribution import count_vector_indexes, list_nodes
from retrieval.index.vector_index import build_indexed_distance, build_scan_settings, get_index_name
from retrieval.models import Chunk, Collection, Document, Visibility
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from tests.support import cluster
from tests.support.databases import database
from tests.support.site import SiteProcess, wait_until

pytestmark = pytest.mark.skipif(not cluster.COORDINATOR, reason="make test-citus starts a cluster")

NAME = f"grows_{os.getpid()}"
DEMO = Path(__file__).parents[2] / "demo"
QUESTIONS = [each["question"] for each in json.loads((DEMO / "questions.json").read_text())["questions"]][3:50:6]
AWAY = "Part of the database does not answer"


def hits():
    """Return the hits of each question: ids, ranks, and scores of both retrievers."""
    found = []
    for question in QUESTIONS:
        result = search(question, build_unrestricted_filters())
        assert not result.trace.degraded
        rows = [(result.trace.query,)]
        rows += [(hit.rank, hit.passage.chunk_id, hit.score, repr(hit.candidate.retrievers)) for hit in result.hits]
        assert len(rows) > 2
        found.append(rows)
    return found


def row(statement, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchone()


def kill_amid_the_vectors(log):
    """Begin to distribute the database over six shards, and kill -9 that when it has come to its last table."""
    process = SiteProcess(["django", "distribute", "--shards", "6"], log)
    try:
        wait_until(lambda: "distribute retrieval_chunkembedding" in log.read_text(), 60, "the table of vectors")
    finally:
        process.kill()


@pytest.fixture(scope="module")
def on_one_server(django_db_blocker, tmp_path_factory):
    """Return the hits of the questions on one server, then distribute its database."""
    cluster.create(NAME)
    try:
        with django_db_blocker.unblock(), database(NAME):
            call_command("migrate", verbosity=0, interactive=False)
            with pytest.raises(CommandError, match="CREATE EXTENSION citus"):
                call_command("distribute")
            for folder in ("handbook", "parts"):
                call_command("ingest", str(DEMO / folder), stdout=StringIO(), stderr=StringIO())
            before = hits()
            cluster.join_nodes(NAME)
            kill_amid_the_vectors(tmp_path_factory.mktemp("killed") / "log")
            told = StringIO()
            call_command("distribute", stdout=told, stderr=StringIO())
            assert "distribute retrieval_chunkembedding" in told.getvalue()
            assert "distribute retrieval_chunk " not in told.getvalue()  # it was done before
            connection.close()
            yield before
    finally:
        cluster.drop(NAME)


def test_distributed_it_finds_the_same(on_one_server):
    assert hits() == on_one_server
    assert find_inconsistencies() == []
    told = StringIO()
    call_command("distribute", stdout=told)
    assert told.getvalue() == "Distributed over 6 shards. Start the site again.\n"
    # Each shard has the indexes, and its rows are on one node alone.
    statement = "SELECT count(*) FROM pg_index WHERE indrelid = '%s'::regclass"
    for table in ("retrieval_chunk", "retrieval_chunkembedding"):
        own, of_shards, shards = row(
            "SELECT (SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass), min(result), count(*) "
            "FROM run_command_on_shards(%s, %s)",
            table,
            table,
            statement,
        )
        assert (own, shards) == (int(of_shards), 6)
    assert Chunk.objects.count() > 100
    count_vector_indexes.cache_clear()
    assert count_vector_indexes() == 6
    # The settings of a scan apply on the nodes, and its index is used there.
    embedder = active_embedder()
    with limit_statements(30, {**build_scan_settings(123), "enable_seqscan": "off", "enable_sort": "off"}):
        assert row("SELECT min(current_setting('hnsw.ef_search')) FROM retrieval_chunk") == ("123",)
        with connection.cursor() as cursor:
            cursor.execute(
                f"EXPLAIN SELECT chunk_id FROM retrieval_chunkembedding WHERE embedder_id = {embedder.pk} "
                f"ORDER BY {build_indexed_distance(embedder)} LIMIT 5",
                [HalfVector(embedder_choice.get_embedder().embed_query("pump")).to_text()],
            )
            plan = "\n".join(line for (line,) in cursor.fetchall())
    assert f"Index Scan using {get_index_name(embedder)}_" in plan


def test_while_shards_are_rebalanced_it_finds_the_same(on_one_server):
    """Two shards of one node move to the other one, and Citus moves them back in the background."""
    # Writers go on, too, where the cluster has logical decoding.
    mode = "force_logical" if row("SHOW wal_level") == ("logical",) else "block_writes"
    (_, source, _), (_, target, _) = cluster.nodes()[1:]
    held = (
        "SELECT shardid FROM citus_shards WHERE nodeport = %s AND table_name = 'retrieval_chunk'::regclass "
        "ORDER BY shardid"
    )
    numbers = []

    def move():
        with psycopg.connect(cluster.url_of(NAME), autocommit=True) as coordinator:
            shards = coordinator.execute(held, [source]).fetchall()
            for (shard,) in shards[:2]:
                coordinator.execute(
                    "SELECT citus_move_shard_placement(%s, '127.0.0.1', %s, '127.0.0.1', %s, %s)",
                    [shard, source, target, mode],
                )
            numbers.append(len(coordinator.execute(held, [source]).fetchall()))
            coordinator.execute("SELECT citus_rebalance_start(shard_transfer_mode => %s)", [mode])
            coordinator.execute("SELECT citus_rebalance_wait()")
            numbers.append(len(coordinator.execute(held, [source]).fetchall()))

    mover, searched = threading.Thread(target=move), 0
    mover.start()
    while mover.is_alive() or not searched:
        assert hits() == on_one_server
        searched += 1
    mover.join()
    assert numbers == [1, 3]
    assert hits() == on_one_server


def test_migrations_reach_every_shard(on_one_server):
    field = models.IntegerField(default=7)
    field.set_attributes_from_name("proved")
    index = models.Index(fields=["collection", "ordinal"], name="proved_index")
    with connection.schema_editor() as editor:
        editor.add_field(Chunk, field)
        editor.add_index(Chunk, index)
    assert row("SELECT sum(proved) / count(*) FROM retrieval_chunk") == (7,)
    made = "SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'proved_index_%%' AND tablename = '%s'"
    assert row("SELECT sum(result::int) FROM run_command_on_shards('retrieval_chunk', %s)", made) == (6,)
    with connection.schema_editor() as editor:
        editor.remove_index(Chunk, index)
        editor.remove_field(Chunk, field)
    assert hits() == on_one_server


def test_a_node_that_dies_is_told_of_and_all_is_there_again(on_one_server):
    Collection.objects.update(visibility=Visibility.PUBLIC)
    collection = Collection.objects.get()
    port = cluster.nodes()[2][1]
    client = Client()
    served = {
        document: row("SELECT nodeport FROM citus_shards WHERE shardid = get_shard_id_for_distribution_column("
                      "'retrieval_documenttext', %s)", document)[0]
        for document in Document.objects.values_list("pk", flat=True)
    }  # fmt: skip
    assert set(served.values()) == {node[1] for node in cluster.nodes()[1:]}
    lost = next(document for document, node in served.items() if node == port)
    kept = next(document for document, node in served.items() if node != port)
    cluster.stop(port)
    try:
        with pytest.raises(SearchUnavailable, match=AWAY):
            search(QUESTIONS[0], build_unrestricted_filters())
        response = client.post("/api/v1/search/", {"query": QUESTIONS[0]}, content_type="application/json")
        assert (response.status_code, response.json()["detail"][: len(AWAY)]) == (503, AWAY)
        response = client.post("/api/v1/ask/", {"question": QUESTIONS[0]}, content_type="application/json")
        assert response.status_code == 503
        assert AWAY in response.content.decode()
        assert client.get(f"/documents/{kept}/").status_code == 200
        page = client.get(f"/documents/{lost}/")
        assert page.status_code == 503
        assert AWAY in page.content.decode()
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["checks"]["nodes"]["detail"] == "1 of 3 nodes of the database do not answer."
        assert f'ragsite_database_node_up{{node="127.0.0.1:{port}"}} 0.0' in client.get("/metrics").content.decode()
        waiting = submission.submit(collection, "later.md", b"# Later\n\nThe quokka waits.", enqueue=False).document
        ingestion.ingest_document(waiting.pk)
        waiting.refresh_from_db()
        assert waiting.status == Document.Status.PENDING
        assert "when all of the database answers" in waiting.error
    finally:
        cluster.start(port)
    assert all(node.is_reachable for node in list_nodes())
    assert hits() == on_one_server
    assert client.get(f"/documents/{lost}/").status_code == 200
    Document.objects.filter(pk=waiting.pk).update(retry_at=None)
    ingestion.ingest_document(waiting.pk)
    assert search("quokka", build_unrestricted_filters()).hits[0].passage.document_id == waiting.pk
    waiting.delete()
    assert find_inconsistencies() == []
    assert hits() == on_one_server


def test_a_cluster_has_backups_of_its_own(tmp_path):
    for refused in (make_backup, restore_backup):
        with pytest.raises(BackupError, match="one of a Citus cluster"):
            refused(tmp_path / "backup.tar")
