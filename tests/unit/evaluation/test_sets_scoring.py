"""Ranks of the expected passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation import statistics as metrics
from evaluation.statistics import ExpectedPassageChunks, build_judged_ranking


def passage(key, *chunks, grade=1, document=1):
    return ExpectedPassageChunks(key, grade, document, frozenset(chunks))


def whole(key, document, grade=1):
    return ExpectedPassageChunks(key, grade, document, whole=True)


def test_an_expected_passage_stands_where_the_best_of_its_chunks_does():
    judged = build_judged_ranking([(9, 1), (5, 1), (6, 1), (8, 2)], [passage(1, 5, 6), passage(2, 8, grade=2)])
    assert (judged.ranking, judged.ranks) == (("chunk 9", "expected 1", "expected 2"), {1: 2, 2: 3})
    assert judged.grades == {"expected 1": 1, "expected 2": 2}


def test_documents_are_ranked_where_whole_documents_are_expected():
    judged = build_judged_ranking([(1, 10), (2, 10), (3, 20)], [whole(7, 20)])
    assert (judged.ranking, judged.ranks) == (("document 10", "expected 7"), {7: 2})


def test_any_passage_of_a_whole_document_will_do_among_passages():
    judged = build_judged_ranking([(1, 10), (2, 10), (3, 20), (4, 20)], [whole(7, 20), passage(8, 2, document=10)])
    assert judged.ranking == ("chunk 1", "expected 8", "expected 7")


def test_what_is_gone_counts_as_not_found():
    judged = build_judged_ranking([(1, 1)], [passage(1, 1), passage(2, document=None), passage(3)])
    assert judged.ranks == {1: 1, 2: None, 3: None}
    assert metrics.recall(judged.ranking, judged.grades, 10) == pytest.approx(1 / 3)
    assert len(build_judged_ranking([(1, 1)], [whole(1, None), whole(2, None)]).grades) == 2


def test_a_document_expected_whole_is_found_with_a_passage_expected_of_it():
    whole, quote = ExpectedPassageChunks(2, 1, 10, whole=True), ExpectedPassageChunks(1, 1, 10, frozenset({1}))
    judged = build_judged_ranking([(7, 11), (1, 10)], [quote, whole])
    assert (judged.ranks, judged.ranking) == ({1: 2, 2: 2}, ("chunk 7", "expected 2"))


def test_passages_that_share_a_chunk_are_one_with_the_best_grade():
    judged = build_judged_ranking([(3, 1), (5, 1)], [passage(1, 5), passage(2, 5, 6, grade=3)])
    assert (judged.grades, judged.ranks) == ({"expected 1": 3}, {1: 2, 2: 2})


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 3)), unique_by=lambda pair: pair[0]),
    st.lists(st.frozensets(st.integers(1, 12), max_size=3), min_size=1, max_size=5),
)
def test_every_unit_appears_once_and_every_rank_is_its_place(found, chunk_sets):
    expectations = [ExpectedPassageChunks(key, 1, 1, chunks) for key, chunks in enumerate(chunk_sets)]
    judged = build_judged_ranking(found, expectations)
    assert len(set(judged.ranking)) == len(judged.ranking)
    # Raises for a ranking that names a unit twice.
    assert 0 <= metrics.ndcg(judged.ranking, judged.grades, 10) <= 1
    returned = {chunk for chunk, _ in found}
    for one in expectations:
        assert judged.ranks[one.key] is None or judged.ranking[judged.ranks[one.key] - 1] in judged.grades
        if one.chunk_ids & returned and not any(
            one.chunk_ids & other.chunk_ids for other in expectations if other is not one
        ):
            assert judged.ranks[one.key] is not None
