from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from bench.speed.texts import TOPICS, SyntheticCorpus

CORPUS = SyntheticCorpus(1000, seed=1)


@cache
def passages(corpus=CORPUS):
    return [passage for document in corpus.documents() for passage in document.passages]


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def test_the_same_seed_gives_the_same_corpus_and_another_does_not():
    again = SyntheticCorpus(1000, seed=1)
    assert list(again.documents()) == list(CORPUS.documents())
    assert again.questions(10) == CORPUS.questions(10)
    other = SyntheticCorpus(1000, seed=2)
    assert list(other.documents()) != list(CORPUS.documents())
    assert not set(other.questions(100)) & set(CORPUS.questions(100))


def test_word_frequencies_fall_as_in_real_text():
    frequency = Counter(word for passage in passages() for word in words(passage.text))
    shares = [count / 1000 for _, count in frequency.most_common()]
    assert 0.3 < shares[0] < 0.6
    assert 0.05 < shares[99] < 0.15
    assert 0.005 < shares[999] < 0.03
    assert len(shares) > 10_000
    assert shares[-1] == 0.001


def test_questions_match_as_large_a_share_of_the_passages_as_real_ones_do():
    holders: dict[str, set[int]] = {}
    for number, passage in enumerate(passages()):
        for word in words(passage.text):
            holders.setdefault(word, set()).add(number)
    stop_words = words("what is the of in a how do i with and why does not when or")
    shares = [
        len(set().union(*(holders.get(word, set()) for word in words(question) - stop_words))) / 1000
        for question in CORPUS.questions(300)
    ]
    assert 0.1 < np.median(shares) < 0.25


def test_vectors_have_unit_length_and_the_spread_of_what_was_embedded():
    random = np.random.default_rng(0)
    means = random.standard_normal((TOPICS, 16))
    spread = np.diag(np.linspace(0.05, 0.5, 16))
    embedded = [(mean + random.standard_normal((50, 16)) @ spread).astype(np.float32) for mean in means]
    topics = [place % TOPICS for place in range(20_000)]
    vectors = CORPUS.vector_drawer(embedded)(topics)
    assert vectors.shape == (20_000, 16)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    again = CORPUS.vector_drawer(embedded)
    in_two = np.concatenate([again(topics[:7_001]), again(topics[7_001:])])
    assert in_two == pytest.approx(vectors, abs=1e-6)
    # Compared as directions, because that is what is left of the length.
    for topic in range(5):
        real = embedded[topic] / np.linalg.norm(embedded[topic], axis=1, keepdims=True)
        drawn = vectors[topic::TOPICS]
        assert drawn.mean(axis=0) == pytest.approx(real.mean(axis=0), abs=0.1)
        assert drawn.std(axis=0).sum() == pytest.approx(real.std(axis=0).sum(), rel=0.25)
    assert len(np.unique(vectors.round(6), axis=0)) == 20_000
