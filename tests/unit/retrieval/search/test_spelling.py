from __future__ import annotations

import pytest

from retrieval.search.vocabulary import allowed_edits, edit_distances, similarity


@pytest.mark.parametrize(("length", "edits"), [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (30, 2)])
def test_fuzziness_auto(length: int, edits: int) -> None:
    assert allowed_edits(length) == edits


def test_each_kind_of_edit_counts_one() -> None:
    assert edit_distances("valve", ["valve", "vavle", "valv", "valvee", "value", "vlave", "x"])[0].tolist() == [
        0, 1, 1, 1, 1, 1, 5,
    ]  # fmt: skip
    # No part of a word is edited twice, so this is three and not two.
    assert edit_distances("ca", ["abc"])[0].tolist() == [3]


def test_endings_are_those_of_the_term() -> None:
    assert edit_distances("valves", ["valv", "valu"], endings=2).tolist() == [[2, 3], [1, 2], [0, 1]]


def test_no_candidates() -> None:
    assert edit_distances("valve", []).shape == (1, 0)
    assert edit_distances("valve", [], endings=2).shape == (3, 0)


def test_similarity_falls_with_edits_and_rises_with_length() -> None:
    assert similarity("valve", "valve", 0) == 1.0
    assert similarity("valve", "vavle", 1) == pytest.approx(0.8)
    assert similarity("valve", "valv", 1) == pytest.approx(0.75)
    assert 0 < similarity("abc", "ab", 1) < similarity("abcdef", "abcde", 1) < 1
