"""Moving from one embedder to another."""

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from retrieval import readiness
from retrieval.documents import ingestion
from retrieval.exceptions import EmbeddingFailed
from retrieval.index import embedder_choice, reembedding
from retrieval.index.reembedding import drop_unused_embedders, reembed
from retrieval.models import Chunk, ChunkEmbedding, Document, Embedder
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search

pytestmark = pytest.mark.django_db(transaction=True)


class Letters:
    """Unit vectors of letter counts: another space, of another width."""

    name = "letters"
    dimension = 26
    max_tokens = 256

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]

    def embed_documents(self, texts):
        counts = np.array([[t.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for t in texts], dtype=np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class Dying(Letters):
    batches = 0

    def embed_documents(self, texts):
        type(self).batches += 1
        if type(self).batches > 1:
            raise EmbeddingFailed("The embedding server does not answer.")
        return super().embed_documents(texts)


@pytest.fixture
def library(collection, ingest):
    for number in range(5):
        ingest(collection, f"{number}.md", f"# Pump {number}\n\nThe pump weighs {number} grams.")
    return collection


def test_the_switch(library, monkeypatch, settings):
    settings.RETRIEVAL_RERANKER = "none"
    old = Embedder.objects.get()
    monkeypatch.setattr(embedder_choice, "get_embedder", Letters)
    assert search("pump", build_unrestricted_filters()).trace.degraded == ("vector",)
    row = reembed(lambda *_: None)
    assert (row.name, row.is_active) == ("letters", True)
    assert Embedder.objects.get(is_active=True) == row
    assert ChunkEmbedding.objects.filter(embedder=row).count() == Chunk.objects.count()
    assert ChunkEmbedding.objects.filter(embedder=old).count() == Chunk.objects.count()
    assert search("pump", build_unrestricted_filters()).trace.degraded == ()
    assert drop_unused_embedders() == 1
    assert ChunkEmbedding.objects.count() == Chunk.objects.count()


def test_an_interrupted_run_leaves_the_old_one_searched_and_goes_on(library, monkeypatch):
    monkeypatch.setattr(reembedding, "BATCH", 2)
    monkeypatch.setattr(Dying, "batches", 0)
    with monkeypatch.context() as dying:
        dying.setattr(embedder_choice, "get_embedder", Dying)
        with pytest.raises(CommandError, match="still searches the old"):
            call_command("reembed")
    assert Embedder.objects.get(is_active=True).name == "all-MiniLM-L6-v2/int8"
    assert search("pump", build_unrestricted_filters()).trace.degraded == ()
    kept = set(ChunkEmbedding.objects.filter(embedder__name="letters").values_list("pk", flat=True))
    assert len(kept) == 2
    monkeypatch.setattr(embedder_choice, "get_embedder", Letters)
    call_command("reembed")
    assert kept <= set(ChunkEmbedding.objects.filter(embedder__name="letters").values_list("pk", flat=True))


def test_a_worker_with_the_old_settings_waits(library, ingest, monkeypatch):
    built_in = embedder_choice.get_embedder
    assert search("pump", build_unrestricted_filters()).trace.degraded == ()
    with monkeypatch.context() as switched:
        switched.setattr(embedder_choice, "get_embedder", Letters)
        reembed(lambda *_: None)
    # The process still searches with the old vectors.
    assert search("pump", build_unrestricted_filters()).trace.degraded == ()
    assert "restart" in readiness.check_embedder().detail
    document = ingest(library, "late.md", "A pump that came late.")
    assert document.status == Document.Status.PENDING
    assert "reembed" in document.error
    monkeypatch.setattr(embedder_choice, "get_embedder", Letters)
    ingestion.ingest_document(document.pk)
    document.refresh_from_db()
    assert document.status == Document.Status.READY
    monkeypatch.setattr(embedder_choice, "get_embedder", built_in)
    assert search("pump", build_unrestricted_filters()).trace.degraded == ("unencoded",)
    drop_unused_embedders()
    assert "vector" in search("pump", build_unrestricted_filters()).trace.degraded
