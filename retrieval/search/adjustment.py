"""What comes on top of the fused score: favours for metadata, and a reranker's opinion.

Both are measured in the fused scores' own terms, so that a weight means the same with every method, and both are parts
of a sum that the explanation shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from retrieval.search.normalization import spread, z_scores
from retrieval.types import BoostScore, Candidate, MetadataBoost, RerankScore

if TYPE_CHECKING:
    from retrieval.profile_settings import ProfileSettings


def boost(
    fused: Sequence[Candidate], boosts: Sequence[MetadataBoost], metadata: Mapping[int, Mapping[str, object]]
) -> list[Candidate]:
    """The candidates with the boosts that their documents' metadata earn, best first.

    ``metadata`` is by chunk id; a list in it holds each of its members. Where all candidates have one score there is no
    spread to measure in, and a boost counts as it stands.
    """
    unit = spread([chunk.score for chunk in fused]) or 1.0
    boosted = []
    for chunk in fused:
        earned = tuple(
            BoostScore(f"{each.key}={each.value}", each.weight * unit)
            for each in boosts
            if _holds(metadata.get(chunk.chunk_id, {}).get(each.key), each.value)
        )
        score = math.fsum([chunk.score, *(each.contribution for each in earned)])
        boosted.append(replace(chunk, score=score, boosts=earned))
    return _ordered(boosted)


def rerank(fused: Sequence[Candidate], settings: ProfileSettings, judged: Mapping[int, float]) -> list[Candidate]:
    """The candidates in the order that the reranker's scores lead to, best first.

    ``fused`` is best first. With a weight, each of the first ``rerank_depth`` gets its z-scored judgement times the
    weight and the spread of the fused scores; one that was not judged, or stands below the depth, gets what the least
    of the judged got. Without a weight the judged ones are ordered by the judgement alone, and the others are dropped.
    """
    if settings.rerank_weight is None:
        return _reranked_alone(fused, settings, judged)
    head = fused[: settings.rerank_depth]
    known = z_scores({chunk.chunk_id: judged[chunk.chunk_id] for chunk in head if chunk.chunk_id in judged})
    lowest = min(known.values(), default=0.0)
    unit = spread([chunk.score for chunk in fused]) or 1.0
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
    return _ordered(reranked)


def _reranked_alone(
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
    return _ordered(first) + rest


def _holds(found: object, wanted: object) -> bool:
    return wanted in found if isinstance(found, list) else found == wanted and found is not None


def _ordered(chunks: list[Candidate]) -> list[Candidate]:
    return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.chunk_id))
