"""The debug panel shows the weights of the search, with every method."""

import pytest

from chat.debugging.candidates import find_used_retriever_weights
from retrieval.fusion_methods import METHODS, FusionMethod
from retrieval.profile_settings import ProfileSettings
from retrieval.search.ranking.fusion import fuse_rankings
from retrieval.search.ranking.plans import build_plan
from retrieval.search.trace import SearchTrace
from retrieval.types import QueryClass, RankedChunk, Ranking, Retriever, RetrieverWeights, SearchMethod


def trace_of(plan, candidates):
    return SearchTrace(
        question="q", query="q", query_class=QueryClass.DEFAULT, rule="", search_method=plan.method.value, profile="",
        weights=plan.weights, candidates=tuple(candidates),
    )  # fmt: skip


RANKINGS = [
    Ranking(Retriever.LEXICAL, (RankedChunk(1, 1, 9.0), RankedChunk(2, 2, 5.0))),
    Ranking(Retriever.VECTOR, (RankedChunk(2, 1, 0.9), RankedChunk(3, 2, 0.8))),
]


@pytest.mark.parametrize("method", list(SearchMethod))
def test_the_weights_are_those_of_the_plan(method):
    plan = build_plan(ProfileSettings().use_published_values(method))
    rankings = [each for each in RANKINGS if plan.weights.get(each.retriever)]
    shown = find_used_retriever_weights(trace_of(plan, fuse_rankings(plan, rankings)))
    assert shown == {"vector": plan.weights.vector, "lexical": plan.weights.lexical}


def test_a_discount_of_the_whole_question_is_shown():
    plan = build_plan(ProfileSettings().use_published_values(SearchMethod.ZSCORE))
    shown = find_used_retriever_weights(trace_of(plan, fuse_rankings(plan, RANKINGS, word_share=0.3)))
    assert shown == {"vector": 0.6, "lexical": pytest.approx(0.2)}


def test_a_method_that_is_no_sum_keeps_its_weights(monkeypatch):
    def keep_largest(weighted):
        best = max(weighted, key=weighted.__getitem__)
        return {retriever: value if retriever is best else 0.0 for retriever, value in weighted.items()}

    largest = FusionMethod("max", "", METHODS[SearchMethod.LINEAR].worth, RetrieverWeights(0.5, 0.5), keep_largest)
    monkeypatch.setattr("retrieval.search.ranking.fusion.METHODS", {**METHODS, SearchMethod.LINEAR: largest})
    plan = build_plan(ProfileSettings().use_published_values(SearchMethod.LINEAR))
    fused = fuse_rankings(plan, RANKINGS)
    assert {each.chunk_id: each.score for each in fused} == {1: 0.5, 2: 0.5, 3: 0.0}
    assert find_used_retriever_weights(trace_of(plan, fused)) == {"vector": 0.5, "lexical": 0.5}
