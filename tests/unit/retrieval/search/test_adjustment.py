"""Boosts and reranking: examples by hand, and properties for all candidates and judgements."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.profile_settings import ProfileSettings
from retrieval.search.ranking.fusion import apply_boosts, rerank
from retrieval.types import Candidate, MetadataBoost, Retriever, RetrieverScore


def fused(scores):
    """Candidates of one retriever, best first, as fusion hands them over."""
    return [
        Candidate(pk, score, {Retriever.VECTOR: RetrieverScore(rank, score, score, 1.0, score)})
        for rank, (pk, score) in enumerate(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0])), start=1)
    ]


def plan(depth=50, weight=0.5):
    return ProfileSettings(reranker="tested", rerank_depth=depth, rerank_weight=weight)


def ids(chunks):
    return [chunk.chunk_id for chunk in chunks]


def test_a_judgement_is_added_in_the_spread_of_the_fused_scores():
    # Fused scores 5 and 1 have a spread of 2; judgements 0.1 and 0.9 are -1 and +1 standard deviations.
    reranked = rerank(fused({1: 5.0, 2: 1.0}), plan(weight=1.5), {1: 0.1, 2: 0.9})
    assert ids(reranked) == [2, 1]
    assert [chunk.score for chunk in reranked] == pytest.approx([4.0, 2.0])
    opinion = reranked[0].rerank
    assert (opinion.rank_before, opinion.score, opinion.weight, opinion.alone) == (2, 0.9, 1.5, False)
    assert (opinion.normalized, opinion.contribution) == (pytest.approx(1.0), pytest.approx(3.0))


def test_what_was_not_judged_gets_what_the_least_of_the_judged_got():
    reranked = {c.chunk_id: c for c in rerank(fused({1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}), plan(depth=3), {1: 1.0, 3: 5.0})}
    least = reranked[1].rerank
    for pk in (2, 4):
        opinion = reranked[pk].rerank
        assert opinion.score is None
        assert opinion.normalized is None
        assert opinion.contribution == least.contribution < 0


def test_alone_the_judgement_is_the_score_and_the_rest_is_dropped_with_the_reason():
    reranked = rerank(fused({1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0}), plan(3, None), {3: 0.9, 1: -0.2})
    assert ids(reranked) == [3, 1, 2, 4]
    assert [chunk.score for chunk in reranked] == [0.9, -0.2, 0.0, 0.0]
    assert [chunk.dropped for chunk in reranked] == [
        "",
        "",
        "the reranker did not judge it",
        "not among the first 3, which were reranked",
    ]
    assert all(chunk.rerank is not None and chunk.rerank.alone for chunk in reranked)


def test_a_boost_is_worth_its_weight_in_spreads():
    boosts = [MetadataBoost("kind", "manual", 3.0), MetadataBoost("year", 2020, -1.0)]
    metadata = {1: {"kind": "letter", "year": 2020}, 2: {"kind": ["sheet", "manual"]}}
    boosted = apply_boosts(fused({1: 5.0, 2: 1.0}), boosts, metadata)
    assert [(chunk.chunk_id, chunk.score) for chunk in boosted] == [(2, 7.0), (1, 3.0)]
    assert [[(each.name, each.contribution) for each in chunk.boosts] for chunk in boosted] == [
        [("kind=manual", 6.0)],
        [("year=2020", -2.0)],
    ]


def split(known):
    judged = {pk: judgement for pk, (_, judgement) in known.items() if judgement is not None}
    return {pk: score for pk, (score, _) in known.items()}, judged


def rounded(low, high):
    return st.floats(low, high).map(lambda score: round(score, 4))


# Fused scores by chunk id, and the judgements of most of them.
cases = st.dictionaries(
    st.integers(1, 40), st.tuples(rounded(-5, 50), rounded(-20, 20) | rounded(-20, 20) | st.none()), max_size=20
).map(split)
weights = st.floats(0, 10)
depths = st.integers(1, 25)
values = st.sampled_from(["a", "b", 1, 2])
boosts = st.lists(st.builds(MetadataBoost, st.sampled_from("xy"), values, st.floats(-10, 10)), max_size=4)
metadata_of_all = st.dictionaries(
    st.integers(1, 40), st.dictionaries(st.sampled_from("xy"), values | st.lists(values)), max_size=40
)


@given(cases, depths, weights)
def test_contributions_sum_to_the_score(case, depth, weight):
    scores, judged = case
    for chunk in rerank(fused(scores), plan(depth, weight), judged):
        before = math.fsum(retriever.contribution for retriever in chunk.retrievers.values())
        assert chunk.score == pytest.approx(before + chunk.rerank.contribution, abs=1e-9)
        assert chunk.rerank.contribution == pytest.approx(0.0) or weight


@settings(max_examples=100)
@given(cases, boosts, metadata_of_all)
def test_boosts_sum_to_the_score(case, wanted, metadata):
    scores, _ = case
    for chunk in apply_boosts(fused(scores), wanted, metadata):
        parts = [scores[chunk.chunk_id], *(each.contribution for each in chunk.boosts)]
        assert chunk.score == pytest.approx(math.fsum(parts), abs=1e-9)


@given(cases, depths, st.none() | weights)
def test_every_candidate_comes_out_once_the_dropped_last(case, depth, weight):
    scores, judged = case
    reranked = rerank(fused(scores), plan(depth, weight), judged)
    assert sorted(ids(reranked)) == sorted(scores)
    staying = [chunk for chunk in reranked if not chunk.dropped]
    assert staying == sorted(staying, key=lambda chunk: (-chunk.score, chunk.chunk_id))
    assert reranked[: len(staying)] == staying
    seen = {pk for pk in ids(fused(scores))[:depth] if pk in judged}
    assert set(ids(staying)) == (seen if weight is None else scores.keys())
