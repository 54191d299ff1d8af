from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from django.core.exceptions import ImproperlyConfigured

from core import deadline
from core.database import release_connections
from retrieval import backends
from retrieval.exceptions import RerankFailed
from retrieval.metrics import RERANK_FAILURES
from retrieval.profile_settings import ProfileSettings
from retrieval.search.ranking.fusion import rerank
from retrieval.search.ranking.retrievers import (
    DEADLINE_GRACE_SECONDS,
    threads,
)
from retrieval.search.trace import RerankTrace, StageStatus
from retrieval.types import (
    Candidate,
)

logger = logging.getLogger(__name__)


def rerank_in_time(
    queries: Mapping[str, float], fused: list[Candidate], settings: ProfileSettings
) -> tuple[list[Candidate], RerankTrace]:
    """Return the candidates in the reranker's order, with its trace. If it fails or is late, the order is unchanged.

    ``queries`` maps each searched text to its weight; the weights sum to 1.
    """
    started = time.perf_counter()
    name, depth = settings.reranker, settings.rerank_depth
    head = [candidate.chunk_id for candidate in fused[:depth]]

    def build_trace(status: StageStatus, judged: int = 0, error: str = "") -> RerankTrace:
        milliseconds = round((time.perf_counter() - started) * 1000, 3)
        return RerankTrace(name, status, judged, settings.rerank_weight, depth, milliseconds, error)

    try:
        seconds = deadline.seconds_left(settings.rerank_timeout_seconds)
        judging = deadline.Stage(threads, partial(_score_with_reranker, queries, head, name, seconds))
        judged = judging.result(seconds + DEADLINE_GRACE_SECONDS)
        if not judged:
            raise RerankFailed("It judged none of the candidates.")
        return rerank(fused, settings, judged), build_trace(StageStatus.OK, len(judged))
    except TimeoutError:
        failed = build_trace(StageStatus.LATE, error=f"No answer within {seconds:g} s.")
    except (RerankFailed, ImproperlyConfigured) as error:
        failed = build_trace(StageStatus.FAILED, error=str(error))
    except Exception as error:
        # The order without the reranker is good enough to answer.
        logger.exception("The reranker %s failed unexpectedly.", name)
        failed = build_trace(StageStatus.FAILED, error=f"{type(error).__name__}: {error}")
    RERANK_FAILURES.labels(reranker=name).inc()
    logger.warning("The reranker %s did not answer, the fused order is kept: %s", name, failed.error)
    return fused, failed


def _score_with_reranker(
    queries: Mapping[str, float], chunk_ids: Sequence[int], reranker: str, seconds: float
) -> dict[int, float]:
    ends_at = time.monotonic() + seconds
    try:
        judged = [
            (weight, backends.get_reranker(reranker).score(query, chunk_ids, max(0.0, ends_at - time.monotonic())))
            for query, weight in queries.items()
        ]
        in_all = set(chunk_ids).intersection(*(scores for _, scores in judged))
        return {pk: sum(weight * scores[pk] for weight, scores in judged) for pk in in_all}
    finally:
        release_connections()
