"""The collection for timing searches: a synthetic corpus, or passages and queries of a set in BEIR's format.

The synthetic corpus is rewritten when its fingerprint changes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from bench import corpora
from bench.beir import TestSet, read_corpus, read_queries
from bench.bulk import (
    DocumentToWrite,
    compute_index_fingerprint,
    delete_documents,
    is_fully_indexed,
    replace_documents,
    vacuum_tables,
)
from bench.reporting import Report
from bench.speed import texts
from bench.speed.texts import SyntheticCorpus, SyntheticDocument, Vectors
from evaluation.exceptions import UnreadableTestSet
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import active_embedder
from retrieval.index.chunk_writer import NewChunk
from retrieval.index.vector_index import build_index, drop_index
from retrieval.models import Chunk, ChunkEmbedding, Collection, DocumentText, Lexeme, Visibility
from retrieval.text.chunking import hash_content

SLUG = "benchmark"
SEED = 20_000
# Increase this number when the texts or their loading change. A corpus with another number is written again.
LOADING_VERSION = 4
# The number of texts of each topic that are embedded, to learn how real vectors are distributed.
SAMPLES = 20
BETWEEN_PASSAGES = "\n\n"

TABLES = (Chunk, ChunkEmbedding, Lexeme, DocumentText)


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """A collection with ``size`` passages. ``make_questions(n)`` returns n different questions about them.

    ``build_seconds`` is None for a collection that an earlier run wrote.
    """

    collection: Collection
    size: int
    make_questions: Callable[[int], list[str]]
    build_seconds: float | None


def load_beir_corpus(folder: Path, chunks: int, report: Report) -> LoadedCorpus:
    """Return a collection of the first ``chunks`` documents of a set in BEIR's format, one passage each.

    The questions are the set's queries, in file order. Raises: UnreadableTestSet, also if there are fewer documents.
    """
    documents = tuple(islice(read_corpus(folder), chunks))
    if len(documents) < chunks:
        raise UnreadableTestSet(f"{folder} has {len(documents):,} documents, fewer than {chunks:,}.")
    queries = list(dict.fromkeys(text for _, text in read_queries(folder)))

    def get_first_queries(number: int) -> list[str]:
        if number > len(queries):
            raise UnreadableTestSet(f"{folder} has {len(queries):,} queries, fewer than the {number:,} of a run.")
        return queries[:number]

    test_set = TestSet(f"{folder.resolve().name} {chunks}", documents, ())
    configuration = corpora.choose_configuration(test_set)
    started = time.perf_counter()
    collection = corpora.load_test_set_collection(test_set, configuration=configuration, chunked=False, report=report)
    return LoadedCorpus(collection, chunks, get_first_queries, time.perf_counter() - started)


def load_synthetic_corpus(chunks: int, report: Report, *, seed: int = SEED) -> LoadedCorpus:
    """Return the collection `benchmark` with this number of synthetic chunks.

    It is not public. If it does not exist, it is written in one transaction. If no other collection has chunks, the
    vector index is built only after the writing, which is much faster.
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
    made_by = compute_index_fingerprint(collection, embedder, LOADING_VERSION, corpus)
    kept = DocumentText.objects.filter(document__collection=collection).values_list("recipe", flat=True)
    if set(kept) == {made_by} and is_fully_indexed(collection, embedder, chunks):
        build_index(embedder)  # An interrupted run may have dropped the index.
        return LoadedCorpus(collection, chunks, corpus.questions, None)
    started = time.perf_counter()
    draw = corpus.build_vector_generator(_embed_samples(corpus, report))
    delete_documents(collection)
    if not Chunk.objects.exists():
        drop_index(embedder)
    replace_documents(collection, _make_synthetic_documents(corpus, draw, made_by, report), embedder, exact=False)
    build_index(embedder)
    vacuum_tables()
    return LoadedCorpus(collection, chunks, corpus.questions, time.perf_counter() - started)


def delete_collection(collection: Collection) -> None:
    delete_documents(collection)
    collection.delete()
    vacuum_tables()


def _make_synthetic_documents(
    corpus: SyntheticCorpus, draw_vectors: Callable[[Sequence[int]], Vectors], index_fingerprint: str, report: Report
) -> Iterator[DocumentToWrite]:
    for number, document in enumerate(corpus.documents()):
        report("writing passages", number * texts.PASSAGES_A_DOCUMENT, corpus.size)
        vectors = draw_vectors([passage.topic for passage in document.passages])
        text = BETWEEN_PASSAGES.join(passage.text for passage in document.passages)
        digest = hashlib.sha256(text.encode()).hexdigest()
        source, chunks = f"synthetic-{number:06d}", tuple(_make_chunks(document, vectors))
        yield DocumentToWrite(source, document.title, "en", text, digest, index_fingerprint, chunks)


def _make_chunks(document: SyntheticDocument, vectors: Vectors) -> Iterator[NewChunk]:
    start = 0
    for passage, vector in zip(document.passages, vectors, strict=True):
        end, headings = start + len(passage.text), (passage.heading,)
        yield NewChunk(
            start=start,
            end=end,
            page=None,
            heading_path=headings,
            content=passage.text,
            content_hash=hash_content(passage.text, headings),
            token_count=passage.text.count(" ") + 1,
            questions=(),
            vector=vector,
        )
        start = end + len(BETWEEN_PASSAGES)


def _embed_samples(corpus: SyntheticCorpus, report: Report) -> list[Vectors]:
    embedded = []
    for topic in range(texts.TOPICS):
        report("embedding samples", topic, texts.TOPICS)
        embedded.append(embedder_choice.get_embedder().embed_documents(corpus.make_sample_questions(topic, SAMPLES)))
    return embedded
