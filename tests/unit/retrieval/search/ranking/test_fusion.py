"""Fusion, method by method, and properties of all methods."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.exceptions import InvalidQuery
from retrieval.fusion_methods import METHODS
from retrieval.profile_settings import ProfileSettings
from retrieval.search.ranking.fusion import fuse_rankings, merge_searches
from retrieval.search.ranking.plans import build_plan
from retrieval.types import QueryClass, RankedChunk, Ranking, Retriever, RetrieverWeights, SearchMethod

FUSING = [m for m in SearchMethod if m not in (SearchMethod.LEXICAL, SearchMethod.VECTOR)]


def ranking(retriever, scores):
    ordered = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))
    return Ranking(retriever, tuple(RankedChunk(pk, rank, score) for rank, (pk, score) in enumerate(ordered, start=1)))


def plan(method, weights=None, **changes):
    built = build_plan(replace(ProfileSettings().use_published_values(method), **changes))
    return built if weights is None else replace(built, weights=weights)


def ids(fused):
    return [chunk.chunk_id for chunk in fused]


def test_rrf_by_hand():
    fused = fuse_rankings(
        plan(SearchMethod.RRF),
        [ranking(Retriever.LEXICAL, {1: 9.0, 2: 5.0}), ranking(Retriever.VECTOR, {2: 0.9, 3: 0.8})],
    )
    assert ids(fused) == [2, 1, 3]
    assert fused[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused[1].score == pytest.approx(1 / 61)
    assert fused[1].retrievers[Retriever.VECTOR].rank is None
    assert fused[1].retrievers[Retriever.VECTOR].contribution == 0.0


def test_linear_by_hand():
    fused = fuse_rankings(
        plan(SearchMethod.LINEAR, weights=RetrieverWeights(vector=0.25, lexical=0.75)),
        [ranking(Retriever.LEXICAL, {1: 10.0, 2: 5.0, 3: 0.0}), ranking(Retriever.VECTOR, {3: 0.9, 1: 0.5})],
    )
    assert {chunk.chunk_id: pytest.approx(chunk.score) for chunk in fused} == {1: 0.75, 2: 0.375, 3: 0.25}


def test_weighted_adds_its_bonus_only_to_hits_of_both_legs():
    retrievers = [ranking(Retriever.LEXICAL, {1: 10.0, 2: 5.0}), ranking(Retriever.VECTOR, {2: 0.9, 3: 0.5})]
    fused = {chunk.chunk_id: chunk for chunk in fuse_rankings(plan(SearchMethod.WEIGHTED), retrievers)}
    assert fused[2].bonus == 0.1
    assert fused[1].bonus == fused[3].bonus == 0.0


def test_zscore_ranks_by_scores_that_a_leg_did_not_list():
    retrievers = [ranking(Retriever.LEXICAL, {1: 3.0, 2: 2.9}), ranking(Retriever.VECTOR, {3: 0.9})]
    known = {Retriever.LEXICAL: {3: 0.0}, Retriever.VECTOR: {1: 0.1, 2: 0.8}}
    assert ids(fuse_rankings(plan(SearchMethod.ZSCORE), retrievers, known)) == [2, 3, 1]


def test_words_that_no_candidate_has_count_less_with_zscore():
    """This happens with a question in another language than the documents."""
    retrievers = [ranking(Retriever.LEXICAL, {1: 3.0, 2: 1.0}), ranking(Retriever.VECTOR, {2: 0.8, 1: 0.7})]
    weights = RetrieverWeights(vector=0.4, lexical=0.6)
    for method, few in ((SearchMethod.ZSCORE, [2, 1]), (SearchMethod.LINEAR, [1, 2])):
        searched = plan(method, weights)
        assert ids(fuse_rankings(searched, retrievers, word_share=1.0)) == [1, 2]
        assert ids(fuse_rankings(searched, retrievers, word_share=0.2)) == few
    said = fuse_rankings(plan(SearchMethod.ZSCORE, weights), retrievers, word_share=0.2)[0].retrievers[
        Retriever.LEXICAL
    ]
    assert said.weight == pytest.approx(0.2)
    # A single retriever keeps its weight, because there is no second one to compare it with.
    alone = fuse_rankings(plan(SearchMethod.ZSCORE, weights), retrievers[:1], word_share=0.2)[0]
    assert alone.retrievers[Retriever.LEXICAL].weight == 0.6


def test_rrf_gives_nothing_for_a_score_without_a_rank():
    retrievers = [ranking(Retriever.LEXICAL, {1: 3.0}), ranking(Retriever.VECTOR, {2: 0.9})]
    fused = {
        chunk.chunk_id: chunk
        for chunk in fuse_rankings(plan(SearchMethod.RRF), retrievers, {Retriever.VECTOR: {1: 0.89}})
    }
    assert fused[1].retrievers[Retriever.VECTOR].score == 0.89
    assert fused[1].retrievers[Retriever.VECTOR].contribution == 0.0


def test_ties_are_broken_by_id():
    assert ids(fuse_rankings(plan(SearchMethod.LINEAR), [ranking(Retriever.LEXICAL, {7: 1.0, 3: 1.0, 5: 1.0})])) == [
        3,
        5,
        7,
    ]


def test_top_k_beyond_the_depth_is_refused():
    with pytest.raises(InvalidQuery, match="between 1 and 50"):
        build_plan(ProfileSettings(method=SearchMethod.RRF), top_k=51)


def test_adaptive_takes_its_weights_from_the_class():
    adaptive = ProfileSettings(method=SearchMethod.ADAPTIVE)
    assert build_plan(adaptive, QueryClass.CONCEPTUAL).weights == RetrieverWeights(0.8, 0.2)
    assert build_plan(adaptive, QueryClass.CODE).weights == RetrieverWeights(0.5, 0.5)
    assert build_plan(adaptive, QueryClass.TROUBLESHOOTING).weights == RetrieverWeights(0.6, 0.4)
    assert build_plan(adaptive, QueryClass.DEFAULT).weights == RetrieverWeights(0.7, 0.3)


score_lists = st.dictionaries(
    st.integers(1, 40), st.floats(-5, 50, allow_nan=False).map(lambda score: round(score, 4)), max_size=20
)


@pytest.mark.parametrize("method", SearchMethod)
@given(lexical=score_lists, vector=score_lists)
def test_contributions_and_bonus_sum_to_the_score(method, lexical, vector):
    for chunk in fuse_rankings(plan(method), [ranking(Retriever.LEXICAL, lexical), ranking(Retriever.VECTOR, vector)]):
        parts = {name: score.contribution for name, score in chunk.retrievers.items()}
        assert chunk.score == pytest.approx(math.fsum([chunk.bonus, *parts.values()]), abs=1e-12)
        weighted = {name: score.weight * (score.normalized or 0.0) for name, score in chunk.retrievers.items()}
        assert parts == pytest.approx(dict(METHODS[method].contribute(weighted)), abs=1e-12)


@pytest.mark.parametrize("method", SearchMethod)
@given(lexical=score_lists)
def test_a_method_contributes_for_every_retriever_that_answered(method, lexical):
    for retrievers in ([Retriever.LEXICAL], [Retriever.VECTOR], list(Retriever)):
        for chunk in fuse_rankings(plan(method), [ranking(retriever, lexical) for retriever in retrievers]):
            assert METHODS[method].contribute(dict.fromkeys(retrievers, 0.5)).keys() == set(retrievers)
            assert {name for name, score in chunk.retrievers.items() if score.rank is not None} == set(retrievers)


@pytest.mark.parametrize("method", FUSING)
@given(lexical=score_lists, vector=score_lists)
def test_a_leg_of_weight_zero_decides_nothing(method, lexical, vector):
    only_lexical = plan(method, weights=RetrieverWeights(vector=0.0, lexical=1.0), both_legs_bonus=0.0)
    retrievers = [ranking(Retriever.LEXICAL, lexical), ranking(Retriever.VECTOR, vector)]
    fused = [pk for pk in ids(fuse_rankings(only_lexical, retrievers)) if pk in lexical]
    assert fused == [chunk.chunk_id for chunk in retrievers[0].chunks]


@pytest.mark.parametrize("method", FUSING)
@given(lexical=score_lists)
def test_one_leg_alone_keeps_its_order(method, lexical):
    retriever = ranking(Retriever.LEXICAL, lexical)
    assert ids(fuse_rankings(plan(method), [retriever])) == [chunk.chunk_id for chunk in retriever.chunks]


def fused_by(method, vector, lexical, *others):
    plan = build_plan(ProfileSettings(method=method))
    return fuse_rankings(plan, [ranking(Retriever.VECTOR, vector), ranking(Retriever.LEXICAL, lexical)], None, others)


def test_the_weights_decide_between_two_searches():
    alone = fused_by(SearchMethod.ZSCORE, {1: 0.9, 2: 0.5, 3: 0.4}, {1: 9.0, 2: 5.0, 3: 4.0})
    joined = fused_by(SearchMethod.ZSCORE, {2: 0.9, 1: 0.5, 3: 0.4}, {2: 9.0, 1: 5.0, 3: 4.0})
    assert [each.chunk_id for each in merge_searches([("a", 0.6, alone), ("b", 0.4, joined)])] == [1, 2, 3]
    added = merge_searches([("a", 0.4, alone), ("b", 0.6, joined)])
    assert [each.chunk_id for each in added] == [2, 1, 3]
    assert [(each.query, each.rank, each.weight) for each in added[0].searches] == [("a", 2, 0.4), ("b", 1, 0.6)]
    assert [each.best_query for each in added] == ["b", "a", "a"]


few_scores = st.dictionaries(st.integers(1, 6), st.floats(0, 10, allow_nan=False), max_size=6)


@pytest.mark.parametrize("method", FUSING)
@given(first=st.tuples(few_scores, few_scores), second=st.tuples(few_scores, few_scores))
def test_contributions_add_up_and_equal_searches_change_nothing(method, first, second):
    everything = set().union(*first, *second)
    alone, joined = (fused_by(method, *lists, *everything) for lists in (first, second))
    for candidate in merge_searches([("a", 0.6, alone), ("b", 0.4, joined)]):
        parts = [candidate.bonus, *(score.contribution for score in candidate.retrievers.values())]
        assert candidate.score == pytest.approx(sum(parts))
        assert candidate.score == pytest.approx(sum(each.weight * each.score for each in candidate.searches))
    twice = merge_searches([("a", 0.6, alone), ("b", 0.4, alone)])
    assert [each.score for each in twice] == pytest.approx([each.score for each in alone])
