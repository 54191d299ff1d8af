"""The synthetic corpus that searches are timed over, as a collection: made again when its fingerprint changes."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from bench.corpora import settle
from bench.reporting import Report
from bench.speed import texts
from bench.speed.copying import copy_corpus, make_indexes
from bench.speed.texts import SyntheticCorpus, Vectors
from retrieval import conf
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import FIELD_BOOSTS
from retrieval.models import (
    Chunk,
    ChunkEmbedding,
    Collection,
    CollectionStatistics,
    Document,
    DocumentText,
    Embedder,
    Lexeme,
    Visibility,
)
from retrieval.text.terms import ANALYSIS_VERSION

SLUG = "benchmark"
SEED = 20_000
# Changing how the corpus is made or loaded changes this number; one made another way is made again.
LOADING_VERSION = 3
# Texts of each topic that are embedded to learn how the embedder's vectors spread.
SAMPLES = 20
# A passage of 150 words has about so many tokens that say something, one bit a dimension of each.
TELLING_TOKENS = 92

TABLES = (Chunk, ChunkEmbedding, Lexeme, DocumentText)


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """``build_seconds`` is None for a collection that an earlier run left."""

    collection: Collection
    corpus: SyntheticCorpus
    build_seconds: float | None


def load(chunks: int, report: Report, *, seed: int = SEED) -> LoadedCorpus:
    """The collection `benchmark` with a corpus of that many chunks, made unless it is there already.

    All of it appears in one transaction. It is not public.
    """
    corpus = SyntheticCorpus(chunks, seed)
    collection, _ = Collection.objects.get_or_create(
        slug=SLUG,
        defaults={
            "name": "Benchmark",
            "description": "Made up by `manage.py benchmark_search`; can be deleted.",
            "visibility": Visibility.STAFF,
        },
    )
    embedder = active_embedder()
    index_fingerprint = _index_fingerprint(corpus, collection, embedder)
    if _is_loaded(collection, chunks, index_fingerprint, embedder):
        make_indexes(embedder, report)  # an interrupted run may have left it without
        return LoadedCorpus(collection, corpus, None)
    started = time.perf_counter()
    draw = corpus.vector_drawer(_embedded_samples(corpus, report))
    clear(collection)
    copy_corpus(collection, corpus, draw, embedder, index_fingerprint, report)
    make_indexes(embedder, report)
    settle()
    return LoadedCorpus(collection, corpus, time.perf_counter() - started)


def clear(collection: Collection) -> None:
    """Delete all that the collection holds."""
    with transaction.atomic():
        # Chunks first: a document deleted with its chunks would count their words out of the statistics, one by one.
        Chunk.objects.filter(collection=collection).only("pk").delete()
        Lexeme.objects.filter(collection=collection).delete()
        Document.objects.filter(collection=collection).only(
            "pk", "collection_id", "file", "title", "source", "created_at"
        ).delete()
        CollectionStatistics.objects.filter(pk=collection.pk).delete()


def remove(collection: Collection) -> None:
    """Delete the collection, and have the indexes forget it."""
    clear(collection)
    collection.delete()
    settle()


def _index_fingerprint(corpus: SyntheticCorpus, collection: Collection, embedder: Embedder) -> str:
    """Fingerprint of all that shapes what search reads of the corpus."""
    parts = (
        LOADING_VERSION,
        ANALYSIS_VERSION,
        corpus,
        str(collection.text_search_configuration),
        embedder.name,
        FIELD_BOOSTS,
        settings.BM25_K1,
        settings.BM25_B,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _is_loaded(collection: Collection, chunks: int, index_fingerprint: str, embedder: Embedder) -> bool:
    """Whether the collection holds exactly this corpus, and nothing else."""
    fingerprints = set(DocumentText.objects.filter(document__collection=collection).values_list("recipe", flat=True))
    statistics = CollectionStatistics.objects.filter(pk=collection.pk).first()
    stored = Chunk.objects.filter(collection=collection).count()
    vectors = ChunkEmbedding.objects.filter(collection=collection, embedder=embedder).count()
    return (
        fingerprints == {index_fingerprint}
        and statistics is not None
        and chunks == statistics.chunks == stored == vectors
    )


def _embedded_samples(corpus: SyntheticCorpus, report: Report) -> list[Vectors]:
    embedded = []
    for topic in range(texts.TOPICS):
        report("embedding samples", topic, texts.TOPICS)
        embedded.append(conf.embedder().embed_documents(corpus.samples(topic, SAMPLES)))
    return embedded
