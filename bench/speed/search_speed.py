"""Measure how long each part of a search takes on a corpus of a given size.

Two references are timed on the same rows: PostgreSQL's `ts_rank`, and an exact comparison of all vectors, which the
vector index approximates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import connection, connections
from pgvector import HalfVector

from bench.reporting import Report
from bench.speed.search_corpus import TABLES, LoadedCorpus
from core.database import fetch_rows
from evaluation.exceptions import UntrustworthyMeasurement
from evaluation.runs.measurement import describe_search_errors
from evaluation.statistics import Percentiles, percentiles
from retrieval.index.active_embedder import active_embedder, clear_query_vector_cache, encode_query
from retrieval.index.vector_index import build_exact_distance
from retrieval.rights.search_filters import find_limiting_rights
from retrieval.search.pipeline import search
from retrieval.search.profiles.profiles import active_profile
from retrieval.search.ranking.lexical_query import build_queries
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import SearchPlan, build_plan
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.search.trace import SearchResult
from retrieval.types import Retriever, SearchFilters

# The first searches read the data into memory and are not timed. Their number is WARM_UP, and one more for each
# PASSAGES_A_WARM_UP passages.
WARM_UP = 10
PASSAGES_A_WARM_UP = 2_000
DEPTH = 50

ALONE = ("embed", "lexical", "vector", "ts_rank", "exact_vector")


# Several users search at once for ASKING_SECONDS, with ASKED different questions.
ASKING_SECONDS = 8.0
ASKED = 2000


@dataclass(frozen=True, slots=True)
class Throughput:
    askers: int
    per_second: float
    times: Percentiles


@dataclass(slots=True)
class BenchmarkRun:
    """The times of one run in milliseconds: for each stage, one for each question.

    ``recall`` is the share of the nearest vectors that the vector index finds.
    """

    chunks: int
    build_seconds: float | None
    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    matching: list[int] = field(default_factory=list)
    recall: list[float] = field(default_factory=list)
    throughput: list[Throughput] = field(default_factory=list)
    table_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def question_count(self) -> int:
        return len(self.milliseconds["total"])

    def stages(self) -> dict[str, Percentiles]:
        names = [*ALONE, *(stage for stage in self.milliseconds if stage not in ALONE)]
        return {stage: percentiles(self.milliseconds[stage]) for stage in names}

    def ratio(self, numerator: str, denominator: str) -> float:
        stages = self.stages()
        return stages[numerator].p50 / stages[denominator].p50


def measure_search_speed(loaded: LoadedCorpus, questions: int, askers: Sequence[int], report: Report) -> BenchmarkRun:
    """Time each part of a search, the whole search, and two reference searches; at the end, several users at once.

    The reference searches (`ts_rank`, and an exact comparison of all vectors) run after all others, because they push
    other data out of the caches. For each question, another part is first, because later parts profit from warm
    caches. Raises: the errors of `search()`; UntrustworthyMeasurement if a part failed.
    """
    warm_up = WARM_UP + loaded.size // PASSAGES_A_WARM_UP
    asked = loaded.make_questions(warm_up + questions)
    collections = (loaded.collection.pk,)
    filters = SearchFilters(collections=collections, readers=find_limiting_rights(collections, AnonymousUser()))
    result = BenchmarkRun(loaded.size, loaded.build_seconds)
    plan = build_plan(active_profile().settings, retriever_timeout_seconds=settings.RETRIEVAL_LEG_TIMEOUT_SECONDS)
    for number, question in enumerate(asked[:warm_up]):
        report("warming up", number, warm_up)
        _search(question, filters)
    nearest: list[frozenset[int]] = []
    for number, question in enumerate(asked[warm_up:]):
        report("searching", number, questions)
        nearest.append(_measure_search_parts(question, filters, plan, number, result))
    for number, question in enumerate(asked[warm_up:]):
        report("references", number, questions)
        exact = _time_reference_queries(question, filters, number, result)
        result.matching.append(_count_matching_chunks(question, filters))
        result.recall.append(len(nearest[number] & exact) / max(1, len(exact)))
    result.table_bytes = _measure_table_bytes()
    if askers:
        others = loaded.make_questions(ASKED)
        result.throughput = [_measure_throughput(number, others, filters) for number in askers]
    return result


def _measure_throughput(askers: int, questions: Sequence[str], filters: SearchFilters) -> Throughput:
    clear_query_vector_cache()
    milliseconds: list[float] = []
    ends_at = time.perf_counter() + ASKING_SECONDS

    def ask(asker: int) -> None:
        place = asker * ASKED // askers
        while (started := time.perf_counter()) < ends_at:
            _search(questions[place % ASKED], filters)
            milliseconds.append((time.perf_counter() - started) * 1000)
            place += 1
        connections.close_all()

    with ThreadPoolExecutor(askers) as threads:
        list(threads.map(ask, range(askers)))
    return Throughput(askers, len(milliseconds) / ASKING_SECONDS, percentiles(milliseconds))


def _measure_search_parts(
    question: str, filters: SearchFilters, plan: SearchPlan, turn: int, result: BenchmarkRun
) -> frozenset[int]:
    def embed() -> None:
        encode_query(question)

    def rank_by_words() -> None:
        Bm25Ranker(question, filters, plan).rank(DEPTH)

    def rank_by_meaning() -> frozenset[int]:
        return frozenset(chunk.chunk_id for chunk in VectorRanker(question, filters, plan).rank(DEPTH).chunks)

    def run_whole_search() -> None:
        for stage, milliseconds in _search(question, filters).trace.timings_ms.items():
            if stage not in tuple(Retriever):
                result.milliseconds.setdefault(stage, []).append(milliseconds)

    parts = {"embed": embed, "lexical": rank_by_words, "vector": rank_by_meaning, "": run_whole_search}
    return _time_parts_in_rotation(parts, turn, result)["vector"]  # type: ignore[no-any-return]


def _time_reference_queries(question: str, filters: SearchFilters, turn: int, result: BenchmarkRun) -> frozenset[int]:
    embedder, vector = active_embedder(), HalfVector(encode_query(question))
    tsquery = _build_tsquery(question, filters)

    def ts_rank() -> None:
        _fetch_rows(
            "SELECT id, ts_rank(search_vector, %(query)s::tsquery) AS score FROM retrieval_chunk "
            "WHERE collection_id = %(collection)s AND search_vector @@ %(query)s::tsquery "
            "ORDER BY score DESC, id LIMIT %(depth)s",
            query=tsquery,
            collection=filters.collections[0],
            depth=DEPTH,
        )

    def exact_vector() -> frozenset[int]:
        rows = fetch_rows(
            f"SELECT chunk_id, {build_exact_distance()} AS distance FROM retrieval_chunkembedding "
            "WHERE embedder_id = %s AND collection_id = ANY(%s::bigint[]) ORDER BY distance, chunk_id LIMIT %s",
            [vector.to_text(), embedder.pk, list(filters.collections), DEPTH],
        )
        return frozenset(pk for pk, _ in rows)

    parts = {"ts_rank": ts_rank, "exact_vector": exact_vector}
    return _time_parts_in_rotation(parts, turn, result)["exact_vector"]  # type: ignore[no-any-return]


def _time_parts_in_rotation(parts: Mapping[str, Callable[[], Any]], turn: int, result: BenchmarkRun) -> dict[str, Any]:
    """Run all parts, beginning with part ``turn`` (modulo the number of parts), and return their results.

    The milliseconds of each part are added to ``result``, except for a part without a name.
    """
    names, returned = list(parts), {}
    turn %= len(names)
    for name in (*names[turn:], *names[:turn]):
        # The cached vector is removed, so that the time of each part includes encoding the question.
        clear_query_vector_cache()
        started = time.perf_counter()
        returned[name] = parts[name]()
        if name:
            result.milliseconds.setdefault(name, []).append((time.perf_counter() - started) * 1000)
    return returned


def _search(question: str, filters: SearchFilters) -> SearchResult:
    result = search(question, filters)
    if result.trace.degraded:
        raise UntrustworthyMeasurement(f"A part of the search did not answer: {describe_search_errors(result.trace)}")
    return result


def _build_tsquery(question: str, filters: SearchFilters) -> str:
    queries = build_queries(question, filters.collections)
    return queries[0].tsquery if queries else ""


def _count_matching_chunks(question: str, filters: SearchFilters) -> int:
    ((number,),) = _fetch_rows(
        "SELECT count(*) FROM retrieval_chunk "
        "WHERE collection_id = %(collection)s AND search_vector @@ %(query)s::tsquery",
        query=_build_tsquery(question, filters),
        collection=filters.collections[0],
    )
    return int(number)


def _fetch_rows(sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


def _measure_table_bytes() -> dict[str, int]:
    rows = _fetch_rows(
        "SELECT oid::regclass::text, pg_table_size(oid) AS size FROM pg_class WHERE relname = ANY(%(tables)s) "
        "UNION ALL SELECT indexrelid::regclass::text, pg_relation_size(indexrelid) FROM pg_index "
        "WHERE indrelid = ANY(%(tables)s::regclass[]) ORDER BY size DESC",
        tables=[model._meta.db_table for model in TABLES],
    )
    return dict(rows)
