"""The reranker's part of a search, held to its time budget; when it fails, the fused order stands, announced."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as DeadlinePassed
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from retrieval import conf
from retrieval.exceptions import RerankFailed, RerankLate
from retrieval.lexical.syntax import parse
from retrieval.metrics import RERANK_FAILURES
from retrieval.ranking.adjustment import rerank
from retrieval.rerank.maxsim import MaxSim, word_matches
from retrieval.resilience import deadline
from retrieval.search.retrievers import DEADLINE_GRACE_SECONDS, threads
from retrieval.types import Candidates, FusedChunk, RerankPlan, RerankTrace, Retriever, StageStatus, StoredEncoding

logger = logging.getLogger(__name__)


def reranked(
    query: str,
    fused: list[FusedChunk],
    plan: RerankPlan,
    retrievers: Sequence[Retriever],
    encodings: Mapping[int, StoredEncoding],
) -> tuple[list[FusedChunk], RerankTrace]:
    """The candidates reranked; as they were, with the reason, when the reranker fails or is late.

    A reranker that builds on a retriever which is not among ``retrievers``, those that answered, is left out: that retriever's failure,
    or its being switched off, is what is announced. ``encodings`` are what the vector retriever has read of the candidates.
    """
    started = time.perf_counter()
    head = [chunk.chunk_id for chunk in fused[: plan.depth]]
    candidates = Candidates(head, {pk: encodings[pk] for pk in head if pk in encodings})

    def trace(status: StageStatus, judged: int = 0, error: str = "") -> RerankTrace:
        return RerankTrace(plan.reranker, status, judged, (time.perf_counter() - started) * 1000, error)

    try:
        builds_on = conf.reranker(plan.reranker).builds_on
        if builds_on is not None and builds_on not in retrievers:
            return fused, trace(StageStatus.OFF, error=f"It builds on the {builds_on} leg, which did not answer.")
        seconds = deadline.seconds_left(plan.timeout_seconds)
        running = deadline.submit(threads, _judge, query, candidates, plan.reranker, seconds)
        judged = running.result(timeout=seconds + DEADLINE_GRACE_SECONDS)
        if not judged:
            raise RerankFailed("It judged none of the candidates.")
        return rerank(fused, plan, judged), trace(StageStatus.OK, len(judged))
    except DeadlinePassed:
        running.cancel()
        failed = trace(StageStatus.LATE, error=f"No answer within {seconds:g} s.")
    except RerankLate as error:
        failed = trace(StageStatus.LATE, error=str(error))
    except (RerankFailed, ImproperlyConfigured) as error:
        failed = trace(StageStatus.FAILED, error=str(error))
    except Exception as error:
        # The fused order is a good answer: nothing that a reranker raises may take it away, and all of it is announced.
        logger.exception("The reranker %s failed unexpectedly.", plan.reranker)
        failed = trace(StageStatus.FAILED, error=f"{type(error).__name__}: {error}")
    RERANK_FAILURES.labels(reranker=plan.reranker).inc()
    logger.warning("The reranker %s did not answer, the fused order stands: %s", plan.reranker, failed.error)
    return fused, failed


def _judge(query: str, candidates: Candidates, reranker: str, seconds: float) -> Mapping[int, float]:
    try:
        return conf.reranker(reranker).score(query, candidates, seconds)
    finally:
        connection.close_if_unusable_or_obsolete()


def with_word_matches(trace: dict[str, Any]) -> dict[str, Any]:
    """A copy of `trace_as_json`'s form that says of each passage kept which of its words met the question's.

    Worked out when somebody looks, not with each search. As it was when the reranker compares no words; when they
    cannot be told any more, ``rerank`` has a ``note`` that says why.
    """
    opinion = trace.get("rerank")
    if not opinion or opinion["status"] != StageStatus.OK:
        return trace
    kept = [candidate["chunk_id"] for candidate in trace["candidates"] if candidate["rank"] is not None]
    try:
        if not isinstance(conf.reranker(opinion["reranker"]), MaxSim):
            return trace
        matches = word_matches(parse(trace["query"]).text, kept)
    except (RerankFailed, ImproperlyConfigured) as error:
        return {**trace, "rerank": {**opinion, "note": str(error)}}
    candidates = [
        {**candidate, "word_matches": [asdict(match) for match in matches.get(candidate["chunk_id"], ())]}
        for candidate in trace["candidates"]
    ]
    return {**trace, "candidates": candidates}
