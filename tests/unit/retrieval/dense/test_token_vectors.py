"""Late interaction, against the plain definition of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.dense.token_vectors import (
    TokenEncoding,
    Tokens,
    best_matches,
    is_telling,
    packed,
    unpacked,
    weighted_mean,
)

DIMENSION = 16
Vectors = npt.NDArray[np.float32]


def unit_vectors(rows: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(rows, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def encoding(pieces: list[str], seed: int = 0) -> TokenEncoding:
    vectors = unit_vectors(len(pieces), seed)
    return TokenEncoding(vectors.sum(axis=0), Tokens(tuple(pieces), tuple((0, 1) for _ in pieces)), vectors)


def test_signs_are_kept_of_telling_tokens_only() -> None:
    full = encoding(["the", "pump", ",", "##s", "wat"])
    assert full.tokens.telling().tolist() == [False, True, False, True, False]
    signs = packed(full)
    assert len(signs) == 2 * DIMENSION // 8
    vectors = unpacked(signs, DIMENSION)
    np.testing.assert_array_equal(np.sign(vectors), np.where(full.token_vectors[[1, 3]] >= 0, 1, -1))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)


def test_a_text_of_function_words_keeps_nothing() -> None:
    assert packed(encoding(["of", "the", "."])) == b""
    assert not is_telling("##-")


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 2**16))
def test_matches_are_those_of_the_definition(lengths: list[int], question: int, seed: int) -> None:
    query = unit_vectors(question, seed)
    passages = [packed(encoding(["word"] * length, seed + place)) for place, length in enumerate(lengths)]
    found = best_matches(query, passages)
    assert found.shape == (len(lengths), question)
    for row, signs in zip(found, passages, strict=True):
        if not signs:
            assert row.tolist() == [-1.0] * question
            continue
        tokens = unpacked(signs, DIMENSION)
        for token, best in zip(query, row, strict=True):
            assert best == pytest.approx(max(float(token @ each) for each in tokens), abs=1e-5)


def test_no_passages_no_matches() -> None:
    assert best_matches(unit_vectors(2, 1), []).shape == (0, 2)


def test_a_heavier_word_counts_more() -> None:
    matches = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    assert weighted_mean(matches, np.array([3.0, 1.0], np.float32)).tolist() == [0.75, 0.25]
    assert weighted_mean(matches, np.array([0.0, 0.0], np.float32)).tolist() == [0.5, 0.5]
