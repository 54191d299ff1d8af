"""The support of neighbours, and the weight that contrast gives to keywords."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.ranking.adjustment import boost_neighbours
from retrieval.ranking.fusion import fuse
from retrieval.ranking.normalization import contrast
from retrieval.ranking.plans import plan_for
from retrieval.ranking.profile import ProfileSettings
from retrieval.types import Candidate, RankedChunk, Ranking, Retriever, SearchMethod

Vector = npt.NDArray[np.float32]


def chunk(pk: int, score: float, dropped: str = "") -> Candidate:
    return Candidate(pk, score, {}, dropped=dropped)


def vector(*numbers: float) -> Vector:
    array = np.array(numbers, np.float32)
    return array / np.linalg.norm(array)


def ids(chunks: list[Candidate]) -> list[int]:
    return [each.chunk_id for each in chunks]


ranked_lists = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=1, max_size=12).map(
    lambda scores: [chunk(pk, score) for pk, score in enumerate(sorted(scores, reverse=True), start=1)]
)


def vectors_for(chunks: list[Candidate], seed: int) -> dict[int, Vector]:
    drawn = np.random.default_rng(seed).normal(size=(len(chunks), 4))
    return {each.chunk_id: vector(*row) for each, row in zip(chunks, drawn, strict=True)}


def test_one_like_the_best_overtakes_one_unlike_it() -> None:
    ranked = [chunk(1, 2.0), chunk(2, 0.6), chunk(3, 0.5)]
    vectors = {1: vector(1, 0, 0), 2: vector(0, 0, 1), 3: vector(1, 0.1, 0)}
    supported = boost_neighbours(ranked, 0.35, vectors)
    assert ids(supported) == [1, 3, 2]
    assert supported[1].support == pytest.approx(supported[1].score - 0.5)
    # Its nearest neighbours are 1 and, with no likeness at all, 2: the lift is towards 1's score alone.
    assert supported[1].support == pytest.approx(0.35 * (2.0 - 0.5), rel=1e-3)


@given(ranked_lists, st.floats(0, 1), st.integers(0, 999))
def test_none_is_lowered_and_the_best_stays_the_best(ranked: list[Candidate], weight: float, seed: int) -> None:
    supported = boost_neighbours(ranked, weight, vectors_for(ranked, seed))
    before = {each.chunk_id: each.score for each in ranked}
    assert sorted(ids(supported)) == sorted(before)
    assert max(each.score for each in supported) == pytest.approx(max(before.values()), abs=1e-9)
    for each in supported:
        assert each.support >= 0
        assert each.score == pytest.approx(before[each.chunk_id] + each.support)
    assert [each.score for each in supported] == sorted((each.score for each in supported), reverse=True)


@given(ranked_lists, st.integers(0, 999), st.randoms())
def test_the_order_of_the_input_does_not_matter(ranked: list[Candidate], seed: int, random: object) -> None:
    vectors = vectors_for(ranked, seed)
    shuffled = list(ranked)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert boost_neighbours(ranked, 0.35, vectors) == boost_neighbours(shuffled, 0.35, vectors)


def test_without_weight_vectors_or_company_nothing_happens() -> None:
    ranked = [chunk(1, 2.0), chunk(2, 1.0)]
    assert boost_neighbours(ranked, 0.0, {1: vector(1, 0), 2: vector(1, 0)}) == ranked
    assert boost_neighbours(ranked, 0.5, {}) == ranked
    assert boost_neighbours(ranked[:1], 0.5, {1: vector(1, 0)}) == ranked[:1]


def test_what_was_dropped_takes_no_part() -> None:
    ranked = [chunk(1, 2.0), chunk(2, 1.0), chunk(3, 9.0, dropped="the reranker did not judge it")]
    supported = boost_neighbours(ranked, 1.0, dict.fromkeys([1, 2, 3], vector(1, 1)))
    assert ids(supported) == [1, 2, 3]
    assert supported[1].score == pytest.approx(2.0)


def test_contrast_is_deviation_over_mean() -> None:
    assert contrast([1.0, 3.0]) == pytest.approx(0.5)
    assert contrast([5.0, 5.0]) == 0.0
    assert contrast([]) == contrast([0.0, 0.0]) == 0.0


def fused_by_contrast(lexical: dict[int, float], vector_scores: dict[int, float]) -> list[Candidate]:
    def ranking(retriever: Retriever, scores: dict[int, float]) -> Ranking:
        ordered = sorted(scores.items(), key=lambda pair: -pair[1])
        return Ranking(
            retriever, tuple(RankedChunk(pk, rank, score) for rank, (pk, score) in enumerate(ordered, start=1))
        )

    plan = plan_for(ProfileSettings().as_published(SearchMethod.CONTRAST))
    return fuse(plan, [ranking(Retriever.LEXICAL, lexical), ranking(Retriever.VECTOR, vector_scores)])


def test_keywords_that_tell_passages_apart_decide() -> None:
    by_meaning = {1: 0.5, 2: 0.6, 3: 0.45, 4: 0.4}
    flat = fused_by_contrast({1: 4.4, 2: 4.0, 3: 4.1, 4: 4.2}, by_meaning)
    towering = fused_by_contrast({1: 9.0, 2: 0.4, 3: 0.3, 4: 0.2}, by_meaning)
    assert flat[0].chunk_id == 2
    assert towering[0].chunk_id == 1
    weight = {
        name: fused[0].retrievers[Retriever.LEXICAL].weight for name, fused in (("flat", flat), ("towering", towering))
    }
    assert weight["flat"] < 0.35 * 0.1 < weight["towering"]
    assert flat[0].retrievers[Retriever.VECTOR].weight == 0.65
    assert math.isclose(flat[0].score, sum(retriever.contribution for retriever in flat[0].retrievers.values()))
