import re

import numpy as np
import pytest

from bench.speed.texts import TOPICS, SyntheticCorpus

CORPUS = SyntheticCorpus(500, seed=1)


def words(text):
    return set(re.findall(r"\w+", text.lower()))


def test_the_same_seed_gives_the_same_corpus_and_another_does_not():
    small = SyntheticCorpus(40, seed=1)
    assert list(SyntheticCorpus(40, seed=1).documents()) == list(small.documents())
    other = SyntheticCorpus(40, seed=2)
    assert list(other.documents()) != list(small.documents())
    assert not set(other.questions(50)) & set(small.questions(50))


def test_questions_match_as_large_a_share_of_the_passages_as_real_ones_do():
    passages = [words(passage.text) for document in CORPUS.documents() for passage in document.passages]
    stop_words = words("what is the of in a how do i with and why does not when or")
    asked = [words(question) - stop_words for question in CORPUS.questions(200)]
    shares = [sum(not each.isdisjoint(passage) for passage in passages) / len(passages) for each in asked]
    assert 0.1 < np.median(shares) < 0.25


def test_vectors_have_unit_length_and_the_spread_of_what_was_embedded():
    random = np.random.default_rng(0)
    means = random.standard_normal((TOPICS, 16))
    spread = np.diag(np.linspace(0.05, 0.5, 16))
    embedded = [(mean + random.standard_normal((50, 16)) @ spread).astype(np.float32) for mean in means]
    vectors = CORPUS.build_vector_generator(embedded)([place % TOPICS for place in range(10_000)])
    assert vectors.shape == (10_000, 16)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    # Compared as directions, because that is what is left of the length.
    for topic in range(5):
        real = embedded[topic] / np.linalg.norm(embedded[topic], axis=1, keepdims=True)
        drawn = vectors[topic::TOPICS]
        assert drawn.mean(axis=0) == pytest.approx(real.mean(axis=0), abs=0.1)
        assert drawn.std(axis=0).sum() == pytest.approx(real.std(axis=0).sum(), rel=0.25)
