from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.search.vocabulary import allowed_edits, edit_distances, similarity

WORDS = st.text(alphabet="abcé", min_size=1, max_size=9)


def reference(first: str, second: str) -> int:
    """Optimal string alignment, cell by cell."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in range(len(first) + 1):
        for j in range(len(second) + 1):
            if not i or not j:
                table[i][j] = i + j
                continue
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (first[i - 1] != second[j - 1]),
            )
            if i > 1 and j > 1 and first[i - 1] == second[j - 2] and first[i - 2] == second[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@pytest.mark.parametrize(("length", "edits"), [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (30, 2)])
def test_fuzziness_auto(length: int, edits: int) -> None:
    assert allowed_edits(length) == edits


def test_each_kind_of_edit_counts_one() -> None:
    assert edit_distances("valve", ["valve", "vavle", "valv", "valvee", "value", "vlave", "x"])[0].tolist() == [
        0, 1, 1, 1, 1, 1, 5,
    ]  # fmt: skip
    # No part of a word is edited twice, so this is three and not two.
    assert edit_distances("ca", ["abc"])[0].tolist() == [3]


@given(WORDS, st.lists(WORDS, max_size=12))
def test_distances_equal_the_textbooks(term: str, others: list[str]) -> None:
    assert edit_distances(term, others)[0].tolist() == [reference(term, other) for other in others]


@given(WORDS, st.lists(WORDS, min_size=1, max_size=6), st.data())
def test_endings_are_those_of_the_term(term: str, others: list[str], data: st.DataObject) -> None:
    endings = data.draw(st.integers(0, len(term) - 1))
    distances = edit_distances(term, others, endings=endings)
    assert distances.shape == (endings + 1, len(others))
    for ending in range(endings + 1):
        appended = [other + term[len(term) - ending :] for other in others]
        assert distances[ending].tolist() == [reference(term, other) for other in appended]


def test_no_candidates() -> None:
    assert edit_distances("valve", []).shape == (1, 0)
    assert edit_distances("valve", [], endings=2).shape == (3, 0)


def test_similarity_falls_with_edits_and_rises_with_length() -> None:
    assert similarity("valve", "valve", 0) == 1.0
    assert similarity("valve", "vavle", 1) == pytest.approx(0.8)
    assert similarity("valve", "valv", 1) == pytest.approx(0.75)
    assert 0 < similarity("abc", "ab", 1) < similarity("abcdef", "abcde", 1) < 1
