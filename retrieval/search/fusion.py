"""One ranking from two, and one from several searches.

Each method says what a candidate's rank or score in a retriever is worth; the fused score is the sum over the
retrievers, plus the bonus where a method has one. A chunk that a retriever did not return is worth nothing there,
except to `zscore` and `adaptive`: they are given both scores of every candidate, and take the retriever's lowest for
one that is not known. Ties are broken by chunk id.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from retrieval.search.normalization import min_max, z_scores
from retrieval.search.plans import SearchPlan
from retrieval.types import (
    SILENT,
    Candidate,
    RankedChunk,
    Ranking,
    Retriever,
    RetrieverScore,
    SearchMethod,
    SearchScore,
)

# Scores of a retriever for candidates that its own list may lack, by chunk id.
RetrieverScores = Mapping[Retriever, Mapping[int, float]]


def fuse(
    plan: SearchPlan,
    rankings: Sequence[Ranking],
    scores: RetrieverScores | None = None,
    others: Collection[int] = (),
) -> list[Candidate]:
    """All candidates, best first: what the rankings list, and ``others``.

    ``scores`` adds what each retriever would have said of candidates it did not return; it is shown in the explanation,
    and only `zscore` and `adaptive` rank by it. With one retriever missing (it failed, or is switched off)
    the other one's order stands.
    """
    listed = {ranking.retriever: {chunk.chunk_id: chunk for chunk in ranking.chunks} for ranking in rankings}
    known = {
        retriever: {**(scores or {}).get(retriever, {}), **{pk: chunk.score for pk, chunk in chunks.items()}}
        for retriever, chunks in listed.items()
    }
    candidates = sorted({*others, *(chunk_id for chunks in listed.values() for chunk_id in chunks)})
    worth = {retriever: _worth(plan, listed[retriever], known[retriever], candidates) for retriever in listed}
    weights = {retriever: plan.weights.of(retriever) for retriever in listed}
    silent = dict.fromkeys(Retriever, SILENT)
    fused = []
    for chunk_id in candidates:
        said = {
            retriever: _retriever_score(weight, chunk_id, listed[retriever], known[retriever], worth[retriever])
            for retriever, weight in weights.items()
        }
        is_in_both = len(said) > 1 and all(score.rank is not None for score in said.values())
        bonus = plan.settings.both_legs_bonus if plan.method is SearchMethod.WEIGHTED and is_in_both else 0.0
        score = math.fsum([bonus, *(each.contribution for each in said.values())])
        fused.append(Candidate(chunk_id, score, silent | said, bonus))
    return sorted(fused, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def add_searches(searches: Sequence[tuple[str, float, Sequence[Candidate]]]) -> list[Candidate]:
    """The candidates of several searches for one question as one list, best first.

    A search is its text, its weight and its fused list, best first; each list has the same candidates. Score, bonus and
    contributions are weighted sums over the searches. Ties are broken by chunk id.

    Source: Fox and Shaw, "Combination of Multiple Searches", TREC-2, 1993 (CombSUM).
    """
    said: dict[int, list[tuple[SearchScore, Candidate]]] = defaultdict(list)
    for query, weight, fused in searches:
        for rank, found in enumerate(fused, start=1):
            is_listed = any(score.rank for score in found.retrievers.values())
            score = SearchScore(query, rank if is_listed else None, found.score, weight)
            said[found.chunk_id].append((score, found))
    added = [_add(parts) for parts in said.values()]
    return sorted(added, key=lambda candidate: (-candidate.score, candidate.chunk_id))


def _add(parts: Sequence[tuple[SearchScore, Candidate]]) -> Candidate:
    """What the searches said of one chunk as one candidate; ranks and scores are those of the search it is best in."""
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


def _worth(
    plan: SearchPlan, listed: Mapping[int, RankedChunk], known: Mapping[int, float], candidates: Sequence[int]
) -> dict[int, float]:
    """What each chunk is worth in one retriever, before the retriever's weight."""
    match plan.method:
        case SearchMethod.RRF:
            return {chunk_id: reciprocal_rank(chunk.rank, plan.settings.rrf_k) for chunk_id, chunk in listed.items()}
        case SearchMethod.LINEAR | SearchMethod.WEIGHTED:
            return min_max({chunk_id: chunk.score for chunk_id, chunk in listed.items()})
        case SearchMethod.ZSCORE | SearchMethod.ADAPTIVE:
            return z_scores(_completed(known, candidates))
        case SearchMethod.LEXICAL | SearchMethod.VECTOR:
            return {chunk_id: chunk.score for chunk_id, chunk in listed.items()}


def _completed(known: Mapping[int, float], candidates: Sequence[int]) -> dict[int, float]:
    """A score for each candidate: the retriever's lowest where it is not known."""
    lowest = min(known.values(), default=0.0)
    return {chunk_id: known.get(chunk_id, lowest) for chunk_id in candidates}


def _retriever_score(
    weight: float,
    chunk_id: int,
    listed: Mapping[int, RankedChunk],
    known: Mapping[int, float],
    worth: Mapping[int, float],
) -> RetrieverScore:
    normalized = worth.get(chunk_id)
    return RetrieverScore(
        rank=listed[chunk_id].rank if chunk_id in listed else None,
        score=known.get(chunk_id),
        normalized=normalized,
        weight=weight,
        contribution=weight * normalized if normalized is not None else 0.0,
    )


def reciprocal_rank(rank: int, rrf_k: int) -> float:
    """1 / (k + rank), rank from 1.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009.
    """
    return 1.0 / (rrf_k + rank)
