"""Searches as JSON: one form for the API, the debug panel, the command line and the saved answer. Imports no Django."""

from __future__ import annotations

from typing import Any

from retrieval.types import (
    CandidateTrace,
    Hit,
    Reformulation,
    RerankScore,
    RerankTrace,
    Retriever,
    RetrieverScore,
    RetrieverTrace,
    SearchPlan,
    SearchTrace,
)

# A retriever that was not asked, or that did not know the chunk, contributes nothing.
_SILENT = RetrieverScore(rank=None, score=None, normalized=None, weight=0.0, contribution=0.0)


def trace_as_json(trace: SearchTrace) -> dict[str, Any]:
    """The whole explanation. Retrievers' error texts are in it: see :func:`without_errors` for readers who are not staff."""
    plan = trace.plan
    return {
        "question": trace.question,
        "query": trace.query,
        "query_class": trace.classification.query_class.value,
        "rule": trace.classification.rule,
        "search_method": trace.search_method,
        "profile": trace.profile,
        "weights": {"vector": plan.weights.vector, "lexical": plan.weights.lexical},
        "depth": plan.depth,
        "top_k": plan.top_k,
        "rrf_k": plan.rrf_k,
        "score_threshold": plan.score_threshold,
        "legs": [_leg_as_json(retriever) for retriever in trace.retrievers],
        "rerank": None if trace.rerank is None else _rerank_as_json(trace.rerank, trace.plan),
        "reformulation": None if trace.reformulation is None else _reformulation_as_json(trace.reformulation),
        "candidates": [_candidate_as_json(candidate) for candidate in trace.candidates],
        "timings_ms": timings_as_json(trace),
    }


def without_errors(trace: dict[str, Any]) -> dict[str, Any]:
    """A copy of :func:`trace_as_json`'s form for readers who are not staff: it says that a retriever failed, not how."""
    rerank = trace.get("rerank")
    reformulation = trace.get("reformulation")
    return {
        **trace,
        "legs": [{**retriever, "error": ""} for retriever in trace.get("legs", [])],
        "rerank": rerank and {**rerank, "error": ""},
        "reformulation": reformulation and {**reformulation, "notice": ""},
    }


def timings_as_json(trace: SearchTrace) -> dict[str, float]:
    """Milliseconds of each stage, to the microsecond."""
    return {stage: round(milliseconds, 3) for stage, milliseconds in trace.timings_ms.items()}


def hit_as_json(hit: Hit) -> dict[str, Any]:
    """A search result.

    ``score`` is the sum of the retrievers' contributions, ``bonus``, the boosts, the reranker's contribution and the
    ``support`` of similar passages; of the reranker's alone, where the reranker decides alone.
    """
    passage = hit.passage
    return {
        "rank": hit.rank,
        **_parts_as_json(hit),
        "chunk_id": passage.chunk_id,
        "document": {
            "id": passage.document_id,
            "title": passage.document_title,
            "url": passage.document_url,
            "collection": passage.collection,
        },
        "section": passage.section,
        "page": passage.page,
        "content": passage.content,
        "start": passage.start,
        "end": passage.end,
        "matched_terms": list(hit.matched_terms),
    }


def _leg_as_json(retriever: RetrieverTrace) -> dict[str, Any]:
    return {
        "leg": retriever.retriever.value,
        "status": retriever.status.value,
        "returned": retriever.returned,
        "milliseconds": round(retriever.milliseconds, 3),
        "error": retriever.error,
        "expansions": {typed: list(lexemes) for typed, lexemes in retriever.expansions.items()},
    }


def _rerank_as_json(rerank: RerankTrace, plan: SearchPlan) -> dict[str, Any]:
    return {
        "reranker": rerank.reranker,
        "status": rerank.status.value,
        "judged": rerank.judged,
        "weight": plan.rerank.weight if plan.rerank else None,
        "depth": plan.rerank.depth if plan.rerank else None,
        "milliseconds": round(rerank.milliseconds, 3),
        "error": rerank.error,
    }


def _reformulation_as_json(reformulation: Reformulation) -> dict[str, Any]:
    return {
        "query": reformulation.query,
        "changed": reformulation.changed,
        "reason": reformulation.reason,
        "by": reformulation.by,
        "notice": reformulation.notice,
    }


def _parts_as_json(scored: Hit | CandidateTrace) -> dict[str, Any]:
    """A score and what it is the sum of."""
    return {
        "score": scored.score,
        "legs": {retriever.value: _score_as_json(scored.retrievers.get(retriever, _SILENT)) for retriever in Retriever},
        "bonus": scored.bonus,
        "boosts": [{"name": boost.name, "contribution": boost.contribution} for boost in scored.boosts],
        "rerank": _opinion_as_json(scored.rerank),
        "support": scored.support,
    }


def _opinion_as_json(opinion: RerankScore | None) -> dict[str, Any] | None:
    if opinion is None:
        return None
    return {
        "rank_before": opinion.rank_before,
        "score": opinion.score,
        "normalized": opinion.normalized,
        "weight": opinion.weight,
        "contribution": opinion.contribution,
        "alone": opinion.alone,
    }


def _candidate_as_json(candidate: CandidateTrace) -> dict[str, Any]:
    return {
        "chunk_id": candidate.chunk_id,
        "rank": candidate.rank,
        **_parts_as_json(candidate),
        "matched_terms": list(candidate.matched_terms),
        "dropped": candidate.dropped,
    }


def _score_as_json(score: RetrieverScore) -> dict[str, Any]:
    return {
        "rank": score.rank,
        "score": score.score,
        "normalized": score.normalized,
        "weight": score.weight,
        "contribution": score.contribution,
    }
