"""Timing search at a size that was chosen: a synthetic corpus is loaded, and each part of a search timed over it.

Beside the parts stand two references on the same rows in the same run: `ts_rank` over the same search vectors, which is
what PostgreSQL offers without this site, and the comparison of every vector, which is what the index approximates.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from pgvector import HalfVector

from evaluation import metrics, synthetic
from evaluation.corpora import Report
from evaluation.exceptions import UntrustworthyRun
from evaluation.retrieval_runs import Percentiles
from evaluation.synthetic import SyntheticCorpus, SyntheticDocument, Vectors
from retrieval import conf
from retrieval.dense.active import active_embedder
from retrieval.dense.encoding import PassageEncoding, encode_query, forget_queries
from retrieval.dense.index import exact_distance
from retrieval.dense.ranker import VectorRanker
from retrieval.dense.token_vectors import TOKEN_VECTORS_VERSION
from retrieval.ingest.bulk import NewDocument, replace_documents
from retrieval.ingest.chunking import content_hash
from retrieval.ingest.writing import NewChunk
from retrieval.lexical.fields import FIELD_BOOSTS
from retrieval.lexical.query import build_queries
from retrieval.lexical.ranker import Bm25Ranker
from retrieval.lexical.terms import ANALYSIS_VERSION
from retrieval.models import (
    Chunk,
    ChunkEmbedding,
    Collection,
    CollectionStatistics,
    Document,
    DocumentText,
    Embedder,
    Lexeme,
)
from retrieval.protocols import TokenEmbedder
from retrieval.search import search
from retrieval.types import Leg, SearchFilters, SearchPlan, SearchResult

SLUG = "benchmark"
SEED = 20_000
# Changing how the corpus is made or loaded changes this number; one made another way is made again.
LOADING_VERSION = 1
# Texts of each topic that are embedded to learn how the embedder's vectors spread.
SAMPLES = 20
WARM_UP = 10
# Candidates of each leg, and the depth that recall is taken at.
DEPTH = 50

# A passage of 150 words has about so many tokens that say something, one bit a dimension of each.
TELLING_TOKENS = 92

# What is timed alone, in the order it is shown; behind it stands what a whole search says of its own stages.
ALONE = ("embed", "lexical", "vector", "ts_rank", "exact_vector")
TABLES = (Chunk, ChunkEmbedding, Lexeme, DocumentText)


@dataclass(frozen=True, slots=True)
class LoadedCorpus:
    """``build_seconds`` is None for a collection that an earlier run left."""

    collection: Collection
    corpus: SyntheticCorpus
    build_seconds: float | None


@dataclass(slots=True)
class BenchmarkRun:
    """Milliseconds a question for each stage; ``recall`` of the vector leg against the comparison of every vector."""

    chunks: int
    build_seconds: float | None
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    matching: list[int] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    table_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def questions(self) -> int:
        return len(self.milliseconds["total"])

    def stages(self) -> dict[str, Percentiles]:
        """Of each stage that ran."""
        names = [*ALONE, *(stage for stage in self.milliseconds if stage not in ALONE)]
        return {
            stage: Percentiles(
                metrics.percentile(self.milliseconds[stage], 50), metrics.percentile(self.milliseconds[stage], 95)
            )
            for stage in names
        }

    def ratio(self, numerator: str, denominator: str) -> float:
        """How many times as long one stage takes as another, by their medians."""
        stages = self.stages()
        return stages[numerator].p50 / stages[denominator].p50


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
            "is_public": False,
        },
    )
    embedder = active_embedder()
    recipe = _recipe(corpus, collection, embedder)
    if _is_loaded(collection, chunks, recipe, embedder):
        return LoadedCorpus(collection, corpus, None)
    started = time.perf_counter()
    documents = corpus.documents()
    vectors = _vectors(corpus, documents, report)
    new = _new_documents(documents, vectors, recipe)
    clear(collection)
    replace_documents(collection, new, embedder, lambda *at: report("writing", *at))
    _settle()
    return LoadedCorpus(collection, corpus, time.perf_counter() - started)


def clear(collection: Collection) -> None:
    """Delete all that the collection holds."""
    with transaction.atomic():
        # Chunks first: a document deleted with its chunks would count their words out of the statistics, one by one.
        Chunk.objects.filter(collection=collection).only("pk").delete()
        Lexeme.objects.filter(collection=collection).delete()
        Document.objects.filter(collection=collection).only("pk", "collection_id", "file").delete()
        CollectionStatistics.objects.filter(pk=collection.pk).delete()


def remove(collection: Collection) -> None:
    """Delete the collection, and have the indexes forget it."""
    clear(collection)
    collection.delete()
    _settle()


def run(loaded: LoadedCorpus, questions: int, report: Report) -> BenchmarkRun:
    """Each question timed in every part and in a whole search, after some that are not counted.

    The parts take turns at being first, so that none profits from what another has brought into memory. The order in
    which a part's rows were read matters little beside that: all of them fit in the database's memory, or none does.

    Raises: UntrustworthyRun when a part of a search did not answer; and whatever `search()` raises.
    """
    asked = loaded.corpus.questions(WARM_UP + questions)
    filters = SearchFilters(collections=(loaded.collection.pk,))
    result = BenchmarkRun(loaded.corpus.size, loaded.build_seconds)
    plan = _search(asked[0], filters).trace.plan
    for number, question in enumerate(asked):
        report("searching", number, len(asked))
        timed = _ask(question, filters, plan, first=number)
        if number < WARM_UP:
            continue
        for stage, milliseconds in timed.milliseconds.items():
            result.milliseconds.setdefault(stage, []).append(milliseconds)
        result.matching.append(_matching(question, filters))
        result.recall.append(len(timed.nearest & timed.exact) / max(1, len(timed.exact)))
    result.table_bytes = _table_bytes()
    return result


@dataclass(slots=True)
class _Timed:
    milliseconds: dict[str, float] = field(default_factory=dict)
    nearest: frozenset[int] = frozenset()
    exact: frozenset[int] = frozenset()


def _ask(question: str, filters: SearchFilters, plan: SearchPlan, *, first: int) -> _Timed:
    """One question in every part, beginning with the part whose turn it is."""
    timed = _Timed()
    embedder = active_embedder()
    vector = HalfVector(encode_query(question).vector)
    tsquery = _tsquery(question, filters)

    def embed() -> None:
        encode_query(question)

    def lexical() -> None:
        Bm25Ranker(question, filters, plan).rank(DEPTH)

    def nearest() -> None:
        ranking = VectorRanker(question, filters, plan).rank(DEPTH)
        timed.nearest = frozenset(chunk.chunk_id for chunk in ranking.chunks)

    def ts_rank() -> None:
        _rows(
            "SELECT id, ts_rank(search_vector, %(query)s::tsquery) AS score FROM retrieval_chunk "
            "WHERE collection_id = %(collection)s AND search_vector @@ %(query)s::tsquery "
            "ORDER BY score DESC, id LIMIT %(depth)s",
            query=tsquery,
            collection=filters.collections[0],
            depth=DEPTH,
        )

    def exact() -> None:
        vectors = ChunkEmbedding.objects.filter(embedder=embedder, collection__in=filters.collections)
        rows = vectors.annotate(distance=exact_distance(vector)).order_by("distance", "chunk_id")
        timed.exact = frozenset(rows.values_list("chunk_id", flat=True)[:DEPTH])

    def whole() -> None:
        for stage, milliseconds in _search(question, filters).trace.timings_ms.items():
            if stage not in tuple(Leg):
                timed.milliseconds[stage] = milliseconds

    parts: list[tuple[str, Callable[[], None]]] = [
        *zip(ALONE, (embed, lexical, nearest, ts_rank, exact), strict=True),
        ("search", whole),
    ]
    turn = first % len(parts)
    for name, part in (*parts[turn:], *parts[:turn]):
        # Or only the first part to encode the question would pay for it.
        forget_queries()
        started = time.perf_counter()
        part()
        if name in ALONE:
            timed.milliseconds[name] = (time.perf_counter() - started) * 1000
    return timed


def _search(question: str, filters: SearchFilters) -> SearchResult:
    result = search(question, filters)
    if result.trace.degraded:
        errors = [leg.error for leg in result.trace.legs] + [result.trace.rerank.error if result.trace.rerank else ""]
        raise UntrustworthyRun(f"A part of the search did not answer: {'; '.join(filter(None, errors))}")
    return result


def _tsquery(question: str, filters: SearchFilters) -> str:
    """The condition that the lexical leg searches with; matches nothing for a question without a known word."""
    queries = build_queries(question, filters.collections)
    return queries[0].tsquery if queries else ""


def _matching(question: str, filters: SearchFilters) -> int:
    ((number,),) = _rows(
        "SELECT count(*) FROM retrieval_chunk "
        "WHERE collection_id = %(collection)s AND search_vector @@ %(query)s::tsquery",
        query=_tsquery(question, filters),
        collection=filters.collections[0],
    )
    return int(number)


def _rows(sql: str, **parameters: Any) -> list[tuple[int, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def _recipe(corpus: SyntheticCorpus, collection: Collection, embedder: Embedder) -> str:
    """Fingerprint of all that shapes what search reads of the corpus."""
    parts = (
        LOADING_VERSION,
        ANALYSIS_VERSION,
        corpus,
        str(collection.text_search_configuration),
        embedder.name,
        TOKEN_VECTORS_VERSION,
        FIELD_BOOSTS,
        settings.BM25_K1,
        settings.BM25_B,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _is_loaded(collection: Collection, chunks: int, recipe: str, embedder: Embedder) -> bool:
    """Whether the collection holds exactly this corpus, and nothing else."""
    recipes = set(DocumentText.objects.filter(document__collection=collection).values_list("recipe", flat=True))
    statistics = CollectionStatistics.objects.filter(pk=collection.pk).first()
    stored = Chunk.objects.filter(collection=collection).count()
    vectors = ChunkEmbedding.objects.filter(collection=collection, embedder=embedder).count()
    return recipes == {recipe} and statistics is not None and chunks == statistics.chunks == stored == vectors


def _vectors(corpus: SyntheticCorpus, documents: Sequence[SyntheticDocument], report: Report) -> Vectors:
    embedded = []
    for topic in range(synthetic.TOPICS):
        report("embedding samples", topic, synthetic.TOPICS)
        embedded.append(conf.embedder().embed_documents(corpus.samples(topic, SAMPLES)))
    return corpus.draw_vectors([passage.topic for document in documents for passage in document.passages], embedded)


def _new_documents(documents: Sequence[SyntheticDocument], vectors: Vectors, recipe: str) -> list[NewDocument]:
    new = []
    drawn = zip(vectors, cycle(_token_signs()))
    for number, document in enumerate(documents):
        text = "\n\n".join(passage.text for passage in document.passages)
        chunks, start = [], 0
        for passage in document.passages:
            path = (passage.heading,)
            chunks.append(
                NewChunk(
                    start=start,
                    end=start + len(passage.text),
                    page=None,
                    heading_path=path,
                    content=passage.text,
                    content_hash=content_hash(passage.text, path),
                    # Counted in words: nothing here is cut or assembled by it.
                    token_count=passage.text.count(" ") + 1,
                    questions=(),
                    encoding=PassageEncoding(*next(drawn)),
                )
            )
            start += len(passage.text) + 2
        new.append(
            NewDocument(
                source=f"synthetic-{number:06d}",
                title=document.title,
                language="en",
                text=text,
                content_hash=hashlib.sha256(text.encode()).hexdigest(),
                recipe=recipe,
                chunks=tuple(chunks),
            )
        )
    return new


def _token_signs() -> Sequence[bytes | None]:
    """Signs of token vectors, of which passages take turns: what they are does not change how long they take to read.

    One None for an embedder without token vectors.
    """
    embedder = conf.embedder()
    if not isinstance(embedder, TokenEmbedder):
        return [None]
    random = np.random.default_rng(SEED)
    return [random.bytes(TELLING_TOKENS * embedder.dimension // 8) for _ in range(64)]


def _table_bytes() -> dict[str, int]:
    """Bytes of each table with what it keeps out of line, and of each of its indexes, by name; all collections'."""
    rows: dict[str, int] = {}
    with connection.cursor() as cursor:
        for model in TABLES:
            table = model._meta.db_table
            cursor.execute(
                "SELECT %s, pg_table_size(%s::regclass) UNION ALL "
                "SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index "
                "WHERE indrelid = %s::regclass",
                [table] * 3,
            )
            rows.update(sorted(cursor.fetchall(), key=lambda row: -row[1]))
    return rows


def _settle() -> None:
    """Have PostgreSQL do now what it would do within minutes, so that it does not do it while searches are timed."""
    with connection.cursor() as cursor:
        for model in (*TABLES, Document):
            vacuum = "ANALYZE" if connection.in_atomic_block else "VACUUM (ANALYZE)"
            cursor.execute(f"{vacuum} {model._meta.db_table}")
