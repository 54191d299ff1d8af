"""Combine the scores of two retrievers, several searches, boosts and a reranker to one ranking."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from retrieval.fusion_methods import METHODS, RetrieverResults
from retrieval.normalization import compute_standard_deviation, compute_z_scores
from retrieval.search.ranking.plans import SearchPlan
from retrieval.types import (
    SILENT,
    AppliedBoost,
    Candidate,
    MetadataBoost,
    Ranking,
    RerankScore,
    Retriever,
    RetrieverScore,
    SearchScore,
)

if TYPE_CHECKING:
    from retrieval.profile_settings import ProfileSettings


def apply_boosts(
    fused: Sequence[Candidate], boosts: Sequence[MetadataBoost], metadata: Mapping[int, Mapping[str, object]]
) -> list[Candidate]:
    """Add each boost to the candidates whose metadata have the boost's key and value; return them best first.

    ``metadata`` are by chunk id. Boosts are in standard deviations of the scores.
    """
    unit = compute_standard_deviation([chunk.score for chunk in fused]) or 1.0
    boosted = []
    for chunk in fused:
        earned = tuple(
            AppliedBoost(f"{each.key}={each.value}", each.weight * unit)
            for each in boosts
            if _has_metadata_value(metadata.get(chunk.chunk_id, {}).get(each.key), each.value)
        )
        score = math.fsum([chunk.score, *(each.contribution for each in earned)])
        boosted.append(replace(chunk, score=score, boosts=earned))
    return _sort_by_score(boosted)


def rerank(fused: Sequence[Candidate], settings: ProfileSettings, judged: Mapping[int, float]) -> list[Candidate]:
    """Change the candidates' scores by the reranker's scores ``judged`` (by chunk id), and return them best first.

    If ``settings.rerank_weight`` is None, the reranker's score replaces the candidate's score, and candidates without a
    reranker's score are dropped. Otherwise ``rerank_weight * s * z`` is added to the candidate's score: s is the
    standard deviation of the candidates' scores, z the z-score of the reranker's score (the lowest z if it is missing).
    """
    if settings.rerank_weight is None:
        return _order_by_reranker(fused, settings, judged)
    head = fused[: settings.rerank_depth]
    known = compute_z_scores({chunk.chunk_id: judged[chunk.chunk_id] for chunk in head if chunk.chunk_id in judged})
    lowest = min(known.values(), default=0.0)
    unit = compute_standard_deviation([chunk.score for chunk in fused]) or 1.0
    reranked = []
    for rank, chunk in enumerate(fused, start=1):
        normalized = known.get(chunk.chunk_id)
        contribution = settings.rerank_weight * unit * (lowest if normalized is None else normalized)
        opinion = RerankScore(
            rank_before=rank,
            score=judged.get(chunk.chunk_id) if normalized is not None else None,
            normalized=normalized,
            weight=settings.rerank_weight,
            contribution=contribution,
        )
        score = math.fsum([chunk.score, contribution])
        reranked.append(replace(chunk, score=score, rerank=opinion))
    return _sort_by_score(reranked)


def _order_by_reranker(
    fused: Sequence[Candidate], settings: ProfileSettings, judged: Mapping[int, float]
) -> list[Candidate]:
    first, rest = [], []
    for rank, chunk in enumerate(fused, start=1):
        score = judged.get(chunk.chunk_id) if rank <= settings.rerank_depth else None
        opinion = RerankScore(
            rank_before=rank, score=score, normalized=score, weight=1.0, contribution=score or 0.0, alone=True
        )
        if score is None:
            reason = (
                "the reranker did not judge it"
                if rank <= settings.rerank_depth
                else f"not among the first {settings.rerank_depth}, which were reranked"
            )
            rest.append(replace(chunk, rerank=opinion, score=0.0, dropped=reason))
        else:
            first.append(replace(chunk, rerank=opinion, score=score))
    return _sort_by_score(first) + rest


def _has_metadata_value(stored: object, wanted: object) -> bool:
    return wanted in stored if isinstance(stored, list) else stored == wanted and stored is not None


def _sort_by_score(candidates: list[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda each: (-each.score, each.chunk_id))


# If no candidate has this share of the question's words, some fusion methods reduce the weight of BM25 (ADR 8).
FULL_WORD_SHARE = 0.6

RetrieverScores = Mapping[Retriever, Mapping[int, float]]


def fuse_rankings(
    plan: SearchPlan,
    rankings: Sequence[Ranking],
    scores: RetrieverScores | None = None,
    others: Collection[int] = (),
    word_share: float = 1.0,
) -> list[Candidate]:
    """Combine the retrievers' rankings to one list of candidates, best first.

    ``others`` are ids of candidates that are not in ``rankings``, such as chunks that another search found. ``scores``
    has each retriever's scores of chunks that are not in its ranking. ``word_share`` is the largest share of the
    question's words in one candidate.
    """
    listed = {ranking.retriever: {chunk.chunk_id: chunk for chunk in ranking.chunks} for ranking in rankings}
    known = {
        retriever: {**(scores or {}).get(retriever, {}), **{pk: chunk.score for pk, chunk in chunks.items()}}
        for retriever, chunks in listed.items()
    }
    candidates = sorted({*others, *(chunk_id for chunks in listed.values() for chunk_id in chunks)})
    method = METHODS[plan.method]
    worth = {
        retriever: method.worth(RetrieverResults(chunks, known[retriever], candidates, plan.settings.rrf_k))
        for retriever, chunks in listed.items()
    }
    weights = {retriever: plan.weights.get(retriever) for retriever in listed}
    if method.discounts_words and len(weights) > 1:
        weights[Retriever.LEXICAL] *= min(1.0, word_share / FULL_WORD_SHARE)
    silent = dict.fromkeys(Retriever, SILENT)
    fused = []
    for chunk_id in candidates:
        contributions = method.contribute(
            {retriever: weight * worth[retriever].get(chunk_id, 0.0) for retriever, weight in weights.items()}
        )
        said = {}
        for retriever, weight in weights.items():
            found = listed[retriever].get(chunk_id)
            said[retriever] = RetrieverScore(
                rank=found.rank if found is not None else None,
                score=known[retriever].get(chunk_id),
                normalized=worth[retriever].get(chunk_id),
                weight=weight,
                contribution=contributions[retriever],
            )
        is_in_both = len(said) > 1 and all(score.rank is not None for score in said.values())
        bonus = plan.settings.both_legs_bonus if method.has_bonus and is_in_both else 0.0
        score = math.fsum([bonus, *(each.contribution for each in said.values())])
        fused.append(Candidate(chunk_id, score, silent | said, bonus))
    return _sort_by_score(fused)


def merge_searches(searches: Sequence[tuple[str, float, Sequence[Candidate]]]) -> list[Candidate]:
    """Combine the searches (text, weight, candidates) for one question to one list, best first.

    All searches have the same chunks. A chunk's score is the weighted sum of its scores. Source: Fox and Shaw,
    "Combination of Multiple Searches", TREC-2, 1993 (CombSUM).
    """
    said: dict[int, list[tuple[SearchScore, Candidate]]] = defaultdict(list)
    for query, weight, fused in searches:
        for rank, found in enumerate(fused, start=1):
            is_listed = any(score.rank for score in found.retrievers.values())
            score = SearchScore(query, rank if is_listed else None, found.score, weight)
            said[found.chunk_id].append((score, found))
    return _sort_by_score([_merge_results(parts) for parts in said.values()])


def _merge_results(parts: Sequence[tuple[SearchScore, Candidate]]) -> Candidate:
    _, best = min(parts, key=lambda part: part[0].rank or math.inf)
    retrievers = {
        retriever: RetrieverScore(
            score.rank,
            score.score,
            score.normalized,
            score.weight,
            contribution=sum([said.weight * found.retrievers[retriever].contribution for said, found in parts]),
        )
        for retriever, score in best.retrievers.items()
    }
    bonus = sum([said.weight * found.bonus for said, found in parts])
    total = math.fsum([bonus, *[score.contribution for score in retrievers.values()]])
    return Candidate(best.chunk_id, total, retrievers, bonus, searches=tuple([said for said, _ in parts]))
