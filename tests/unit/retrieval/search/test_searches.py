"""Several searches for one question, added up: by known values, and by what must always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.profile_settings import ProfileSettings
from retrieval.search.fusion import add_searches, fuse
from retrieval.search.plans import plan_for
from retrieval.types import Candidate, RankedChunk, Ranking, Retriever, SearchMethod

METHODS = [method for method in SearchMethod if method not in (SearchMethod.LEXICAL, SearchMethod.VECTOR)]


def ranking(retriever: Retriever, scores: dict[int, float]) -> Ranking:
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return Ranking(retriever, tuple(RankedChunk(pk, rank, score) for rank, (pk, score) in enumerate(ordered, start=1)))


def fused(method: SearchMethod, vector: dict[int, float], lexical: dict[int, float], *others: int) -> list[Candidate]:
    plan = plan_for(ProfileSettings(method=method))
    return fuse(plan, [ranking(Retriever.VECTOR, vector), ranking(Retriever.LEXICAL, lexical)], None, others)


def test_the_weights_decide_between_two_searches() -> None:
    alone = fused(SearchMethod.ZSCORE, {1: 0.9, 2: 0.5, 3: 0.4}, {1: 9.0, 2: 5.0, 3: 4.0})
    joined = fused(SearchMethod.ZSCORE, {2: 0.9, 1: 0.5, 3: 0.4}, {2: 9.0, 1: 5.0, 3: 4.0})
    assert [each.chunk_id for each in add_searches([("a", 0.6, alone), ("b", 0.4, joined)])] == [1, 2, 3]
    added = add_searches([("a", 0.4, alone), ("b", 0.6, joined)])
    assert [each.chunk_id for each in added] == [2, 1, 3]
    assert [(each.query, each.rank, each.weight) for each in added[0].searches] == [("a", 2, 0.4), ("b", 1, 0.6)]
    assert [each.best_query for each in added] == ["b", "a", "a"]


def test_what_one_search_did_not_list_has_no_rank_there() -> None:
    alone = fused(SearchMethod.RRF, {1: 0.9}, {1: 3.0}, 2)
    joined = fused(SearchMethod.RRF, {2: 0.9}, {}, 1)
    first, second = add_searches([("a", 0.6, alone), ("b", 0.4, joined)])
    assert (first.chunk_id, [each.rank for each in first.searches]) == (1, [1, None])
    assert (second.chunk_id, [each.rank for each in second.searches]) == (2, [None, 1])
    assert second.score == pytest.approx(0.4 / 61)
    assert second.retrievers[Retriever.VECTOR].rank == 1


scores = st.dictionaries(st.integers(1, 6), st.floats(0, 10, allow_nan=False), max_size=6)


@given(st.sampled_from(METHODS), st.tuples(scores, scores), st.tuples(scores, scores))
def test_contributions_add_up_and_equal_searches_change_nothing(
    method: SearchMethod,
    first: tuple[dict[int, float], dict[int, float]],
    second: tuple[dict[int, float], dict[int, float]],
) -> None:
    everything = set().union(*first, *second)
    alone, joined = (fused(method, *lists, *everything) for lists in (first, second))
    for candidate in add_searches([("a", 0.6, alone), ("b", 0.4, joined)]):
        parts = [candidate.bonus, *(score.contribution for score in candidate.retrievers.values())]
        assert candidate.score == pytest.approx(sum(parts))
        assert candidate.score == pytest.approx(sum(each.weight * each.score for each in candidate.searches))
    twice = add_searches([("a", 0.6, alone), ("b", 0.4, alone)])
    assert [each.score for each in twice] == pytest.approx([each.score for each in alone])
