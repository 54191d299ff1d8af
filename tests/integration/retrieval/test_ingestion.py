"""From a submitted file to searchable passages, on a real PostgreSQL."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest.mock import Mock

import numpy as np
import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from core.exceptions import DiskFull, LeaseLost
from retrieval.documents import file_loading, ingestion, reading_turns, submission
from retrieval.documents.file_loading import ingest_paths
from retrieval.exceptions import DocumentRejected, EmbeddingFailed
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import recompute_term_weights
from retrieval.models import Chunk, ChunkEmbedding, CollectionStatistics, Document, DocumentText, Embedder, Lexeme
from retrieval.search.passage_rows import load_passages
from retrieval.text.block import BlockKind
from retrieval.text.terms import compute_lexeme_dimension

pytestmark = pytest.mark.django_db

GUIDE = """# Pump guide

The MX-9920-W is a wet-rotor pump for drinking water.

## Pressure

The working pressure is ten bar. Never exceed it.

## Weight

It weighs 3450 grams without its unions.
"""


class BrokenEmbedder:
    """An embedder whose server is away."""

    name = "all-MiniLM-L6-v2/int8"
    dimension = 384
    max_tokens = 256

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def embed_documents(self, texts):
        raise EmbeddingFailed("The embedding server does not answer.")

    def embed_query(self, text):
        raise EmbeddingFailed("The embedding server does not answer.")


def expected_frequencies(collection):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT lexeme, count(*) FROM retrieval_chunk, unnest(search_vector) AS t(lexeme, positions, labels) "
            "WHERE collection_id = %s GROUP BY lexeme",
            [collection.pk],
        )
        return Counter(dict(cursor.fetchall()))


def assert_statistics_are_true(collection):
    chunks = Chunk.objects.filter(collection=collection)
    statistics = CollectionStatistics.objects.get(pk=collection.pk)
    assert statistics.chunks == chunks.count()
    assert statistics.total_length == pytest.approx(sum(chunks.values_list("length", flat=True)))
    stored = dict(Lexeme.objects.filter(collection=collection).values_list("lexeme", "document_frequency"))
    assert stored == dict(expected_frequencies(collection))
    assert ChunkEmbedding.objects.filter(collection=collection).count() == chunks.count()


def test_everything_appears_together(collection, ingest):
    document = ingest(collection, "guide.md", GUIDE)
    assert (document.status, document.error, document.title) == (Document.Status.READY, "", "Pump guide")
    text = DocumentText.objects.get(document=document).text
    chunks = list(document.chunks.all())
    assert document.chunk_count == len(chunks) > 0
    for chunk in chunks:
        assert chunk.content == text[chunk.start : chunk.end]
        assert chunk.bm25 is not None
        assert chunk.token_count > 0
    vector = np.array(ChunkEmbedding.objects.filter(chunk=chunks[0]).get().vector)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-2)
    assert_statistics_are_true(collection)


def test_term_weights_are_bm25(collection, ingest):
    ingest(collection, "a.txt", "pump pump valve")
    ingest(collection, "b.txt", "pump hose clamp gasket seal")
    recompute_term_weights(collection, largest_drift=0.0)
    statistics = CollectionStatistics.objects.get(pk=collection.pk)
    chunk = Chunk.objects.get(document__source="a.txt")
    # The title, "a", is a stop word; the body has three terms.
    k1, b, frequency, length = 1.2, 0.75, 2, chunk.length
    weight = frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / statistics.mean_length))
    stored = dict(zip(chunk.bm25.indices(), chunk.bm25.values(), strict=True))
    assert stored[compute_lexeme_dimension("pump") - 1] == pytest.approx(weight, rel=1e-4)


def test_the_same_file_again_changes_nothing(collection, ingest):
    ingest(collection, "guide.md", GUIDE)
    before = list(Chunk.objects.values_list("pk", flat=True))
    assert not submission.submit(collection, "guide.md", GUIDE.encode(), enqueue=False).changed
    assert list(Chunk.objects.values_list("pk", flat=True)) == before
    # An upload with its present description is unchanged; with a new description it is read again.
    described = {"title": "Guide to pumps", "url": "https://x.example/guide", "metadata": {"year": 2026}}
    assert submission.submit(collection, "guide.md", GUIDE.encode(), enqueue=False, **described).changed
    document = ingestion.ingest_document(Document.objects.get().pk)
    assert (document.title, document.url, document.metadata) == tuple(described.values())
    assert not submission.submit(collection, "guide.md", GUIDE.encode(), enqueue=False, **described).changed
    assert not submission.submit(collection, "guide.md", GUIDE.encode(), enqueue=False).changed


def test_a_new_version_keeps_unchanged_passages_and_their_ids(collection, ingest):
    sections = [f"## Part {n}\n\n" + f"Part {n} describes valve number {n} in many words. " * 25 for n in range(6)]
    ingest(collection, "parts.md", "# Parts\n\n" + "\n\n".join(sections))
    before = {chunk.content_hash: chunk.pk for chunk in Chunk.objects.all()}
    sections[2] = "## Part 2\n\n" + "This part was rewritten from the ground up. " * 25
    ingest(collection, "parts.md", "# Parts\n\n" + "\n\n".join(["## New first\n\nA new beginning. " * 20, *sections]))
    after = {chunk.content_hash: chunk.pk for chunk in Chunk.objects.all()}
    kept = before.keys() & after.keys()
    assert len(kept) >= 5
    assert all(before[content_hash] == after[content_hash] for content_hash in kept)
    assert [chunk.ordinal for chunk in Chunk.objects.all()] == list(range(len(after)))
    text = DocumentText.objects.get().text
    assert all(chunk.content == text[chunk.start : chunk.end] for chunk in Chunk.objects.all())
    assert not Chunk.objects.filter(content__contains="valve number 2 ").exists()
    assert_statistics_are_true(collection)


def test_passages_know_the_blocks_they_hold_some_of(collection, ingest):
    steps = "".join(f"{n}. Turn valve number {n} until it closes, and then a little further.\n" for n in range(1, 60))
    guide = "# Closing\n\n## Valves\n\nClose the valves in this order:\n\n" + steps + "\n## Notes\n\nWrite it down.\n"
    ingest(collection, "valves.md", guide)
    before = set(Chunk.objects.values_list("pk", flat=True))
    # Moved: the passages stay, and with them their blocks.
    document = ingest(
        collection, "valves.md", guide.replace("## Valves", "## Foreword\n\nRead all of it.\n\n## Valves")
    )
    text = DocumentText.objects.get(document=document).text
    chunks = list(Chunk.objects.all())
    assert before & {chunk.pk for chunk in chunks}
    passages = load_passages(chunk.pk for chunk in chunks)
    procedures = {block for found in passages.values() for block in found.blocks if block.kind == BlockKind.STEPS}
    (procedure,) = procedures
    assert text[procedure.start : procedure.end] == "Close the valves in this order:\n\n" + steps.strip()
    assert procedure.heading_start == text.index("## Valves")
    assert procedure.section_end == text.index("## Notes")
    assert sum(procedure in found.blocks for found in passages.values()) > 2
    for found in passages.values():
        assert all(block.start < found.end and block.end > found.start for block in found.blocks)
    assert [text[block.start : block.end] for block in passages[chunks[-1].pk].blocks][-1] == "Write it down."


def test_a_deleted_document_leaves_nothing_behind(collection, ingest):
    ingest(collection, "guide.md", GUIDE)
    ingest(collection, "other.md", "# Other\n\nA valve and a hose.")
    Document.objects.filter(source="guide.md").delete()
    assert_statistics_are_true(collection)
    assert not Lexeme.objects.filter(lexeme="mx9920w").exists()
    Document.objects.all().delete()
    assert not Lexeme.objects.exists()
    assert CollectionStatistics.objects.get().total_length == 0


def test_a_failed_version_leaves_the_one_before_in_service(collection, ingest):
    ingest(collection, "guide.md", GUIDE)
    before = list(Chunk.objects.values_list("pk", "content"))
    document = ingest(collection, "guide.md", b"\x00\x01\x02\x03" * 50)
    assert document.status == Document.Status.FAILED
    assert "guide.md" in document.error
    assert list(Chunk.objects.values_list("pk", "content")) == before
    assert DocumentText.objects.get().text.startswith("# Pump guide")


def test_an_embedder_that_is_away_is_tried_again_later(collection, ingest, monkeypatch):
    ingest(collection, "first.md", GUIDE)
    monkeypatch.setattr(embedder_choice, "get_embedder", BrokenEmbedder)
    document = ingest(collection, "guide.md", "Something else entirely.")
    assert document.status == Document.Status.PENDING
    assert "embedding server" in document.error
    assert document.retry_at > timezone.now()
    for _attempt in range(Document.MOST_ATTEMPTS):
        ingestion.ingest_document(document.pk)
    document.refresh_from_db()
    assert document.status == Document.Status.FAILED
    assert document.error.startswith("Failed 5 times")


def test_the_document_of_a_dead_worker_is_taken_over(collection):
    document = submission.submit(collection, "guide.md", GUIDE.encode(), enqueue=False).document
    dead = ingestion._acquire_document_lease(document.pk)
    assert dead is not None
    Document.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=1))
    assert ingestion.ingest_document(document.pk) is not None
    chunks = list(Chunk.objects.values_list("pk", flat=True))
    # The worker believed dead wakes up: what it does is dropped.
    with pytest.raises(LeaseLost):
        ingestion._process_document(dead, reading_turns.ReadingTurn(dead, takes_turns=False), None)
    assert list(Chunk.objects.values_list("pk", flat=True)) == chunks


def test_a_file_too_large_is_refused_before_it_is_stored(collection):
    with override_settings(DOCUMENT_MAX_BYTES=10), pytest.raises(DocumentRejected, match=r"big\.txt is larger than"):
        submission.submit(collection, "big.txt", b"x" * 11)
    assert not Document.objects.exists()


def test_weights_follow_the_mean_length(collection, ingest):
    ingest(collection, "short.txt", "pump valve")
    for number in range(5):
        ingest(collection, f"long{number}.txt", " ".join(f"word{number}x{n}" for n in range(60)))
    before = Chunk.objects.get(document__source="short.txt").bm25
    assert recompute_term_weights(collection)
    assert not recompute_term_weights(collection)
    after = Chunk.objects.get(document__source="short.txt").bm25
    assert after.indices() == before.indices()
    assert all(new > old for new, old in zip(after.values(), before.values(), strict=True))


def test_a_title_from_the_file_follows_it_and_one_of_an_admins_stays(collection, ingest):
    assert ingest(collection, "guide.md", GUIDE).title == "Pump guide"
    assert ingest(collection, "guide.md", GUIDE.replace("Pump guide", "All about pumps")).title == "All about pumps"
    Document.objects.update(title="Pumps")
    assert ingest(collection, "guide.md", GUIDE.replace("Pump guide", "Third edition")).title == "Pumps"
    assert Chunk.objects.filter(search_vector="pumps").exists()


def test_weights_follow_the_settings(collection, ingest):
    ingest(collection, "pump.txt", "pump pump valve")
    before = Chunk.objects.get().bm25
    assert not recompute_term_weights(collection)
    with override_settings(BM25_K1=2.0):
        assert recompute_term_weights(collection)
        assert not recompute_term_weights(collection)
    after = Chunk.objects.get().bm25
    assert after.indices() == before.indices()
    assert after.values() != before.values()


@pytest.mark.django_db(transaction=True)
def test_two_uploads_of_a_new_source_at_once_are_two_versions_of_it(collection):
    def upload(number):
        try:
            return submission.submit(collection, "new.md", f"Version {number}.".encode(), enqueue=False).document.pk
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(upload, range(4)))) == 1
    assert Document.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_folder_is_read_by_several_threads(collection, tmp_path, monkeypatch):
    for number in range(11):
        (tmp_path / f"{number:02}.md").write_text(f"# Pump {number}\n\nIt weighs {number} grams.")
    (tmp_path / "broken.pdf").write_text("no PDF")
    threads = set()
    read = ingestion.ingest_document

    def noted(*arguments):
        threads.add(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(ingestion, "ingest_document", noted)
    counts = ingest_paths([tmp_path], collection, None, at_once=3)
    assert (counts.added, counts.failed, counts.chunks) == (11, 1, 11)
    assert [source for source, _ in counts.failures] == ["broken.pdf"]
    assert len(threads) == 3
    assert_statistics_are_true(collection)
    monkeypatch.setattr(ingestion, "ingest_document", lambda *_: pytest.fail("What is unchanged was read again."))
    assert ingest_paths([tmp_path / "00.md"], collection, None).unchanged == 1
    # When the site cannot be written to, what is left is not tried.
    monkeypatch.setattr(file_loading, "submit", Mock(side_effect=DiskFull("The disk is full.")))
    with pytest.raises(DiskFull):
        ingest_paths([tmp_path], collection, None, at_once=3)
    assert file_loading.submit.call_count < 12


def test_a_wrong_setting_costs_a_document_no_attempt(collection):
    """This happens while `reembed` runs, or with the old settings after it."""
    document = submission.submit(collection, "pump.md", GUIDE.encode()).document
    other = active_embedder()
    Embedder.objects.filter(pk=other.pk).update(name="another")
    for _ in range(Document.MOST_ATTEMPTS + 1):
        ingestion.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.attempts) == (Document.Status.PENDING, 0)
    assert "reembed" in document.error
    assert document.retry_at is not None
    Embedder.objects.filter(pk=other.pk).update(name=other.name)
    assert ingestion.ingest_document(document.pk) is not None
    document.refresh_from_db()
    assert document.status == Document.Status.READY
