"""Statements held against passages; token vectors come from a small embedder of letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.grounding.support.passages import cut_passage
from chat.grounding.support.scorer import (
    THRESHOLD,
    WITH_TOKENS,
    WORDS_ONLY,
    Features,
    SentenceSupport,
    Statement,
    SupportReason,
    SupportScorer,
    estimate_support,
    groundedness,
    list_reasons,
)
from retrieval.dense.token_vectors import TokenEncoding, Tokens

PUMP = "The pump must not run dry. It weighs 3450 grams, and Mr. Jansen designed it. The working pressure is 10 bar."
WARRANTY = "The warranty lasts two years. Returns are free within 30 days of delivery."
PASSAGES = [cut_passage(1, PUMP, "Manual of the MX-9920"), cut_passage(2, WARRANTY)]


class Letters:
    """Token vectors of counts of neighbouring letters; ``texts`` are those that were encoded."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[TokenEncoding]:
        self.texts += texts
        return [self._encoding(text) for text in texts]

    def _encoding(self, text: str) -> TokenEncoding:
        found = list(re.finditer(r"\w+", text.lower()))
        vectors = np.full((len(found), 27 * 27), 1e-3, np.float32)
        for row, match in enumerate(found):
            letters = [ord(letter) % 27 for letter in f"`{match.group()}`"]
            for first, second in pairwise(letters):
                vectors[row, first * 27 + second] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        tokens = Tokens(tuple(m.group() for m in found), tuple(m.span() for m in found))
        return TokenEncoding(np.ones(1, np.float32), tokens, vectors)


def judged(text: str, *markers: int, encode: Letters | None = None) -> SentenceSupport:
    (judgement,) = SupportScorer(PASSAGES, encode or Letters()).score([Statement(text, markers)])
    assert judgement is not None
    return judgement


def test_what_stands_in_the_passage_is_supported_without_the_embedder() -> None:
    encode = Letters()
    judgement = judged("- It  weighs 3450 grams,\nand **Mr. Jansen designed it**.".replace("*", ""), 1, encode=encode)
    assert judgement.support == 1.0
    assert judgement.features is None
    assert judgement.match is not None
    assert PUMP[judgement.match.sentence.start : judgement.match.sentence.end].startswith("It weighs 3450")
    assert encode.texts == []


def test_a_beginning_of_a_longer_number_is_not_verbatim() -> None:
    assert judged("The working pressure is 1", 1).features is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The pump weighs 3400 grams.", SupportReason.NUMBER),
        ("It was designed by Mr. Pieterse.", SupportReason.NAME),
        ("The pump must run dry.", SupportReason.NEGATION),
        ("The working pressure is not 10 bar.", SupportReason.NEGATION),
        ("Aluminium housings corrode quickly near seawater.", SupportReason.WORDS),
    ],
)
def test_what_speaks_against_a_statement_is_named(text: str, reason: SupportReason) -> None:
    judgement = judged(text, 1)
    assert not judgement.supported
    assert judgement.reasons[0] is reason


@pytest.mark.parametrize("text", ["The pump weighs 3450 grams.", "The MX-9920 pump weighs 3450 grams [1]."])
def test_other_words_for_the_same_are_supported(text: str) -> None:
    judgement = judged(text, 1)
    assert judgement.supported
    assert judgement.reasons == ()
    assert judgement.features is not None


def test_a_statement_is_held_against_what_it_cites() -> None:
    judgement = judged("The warranty lasts for two years.", 1)
    assert not judgement.supported
    assert judgement.reasons[-1] is SupportReason.ELSEWHERE
    assert judgement.match is not None
    assert judgement.match.passage.marker == 2
    assert judged("The warranty lasts for two years.", 2).supported


def test_a_statement_without_a_marker_is_held_against_all_passages() -> None:
    judgement = judged("The warranty lasts for two years.")
    assert judgement.supported
    assert judgement.reasons == (SupportReason.UNCITED,)
    assert judged("The warranty lasts for two years.", 9).reasons == (SupportReason.UNCITED,)


def test_both_of_two_cited_passages_bear_a_statement_out() -> None:
    text = "The pump weighs 3450 grams, the warranty lasts two years."
    assert judged(text, 1, 2).support > judged(text, 1).support


def test_a_word_like_one_of_the_passage_counts_for_more_than_a_strange_one() -> None:
    assert judged("The pumps weighting is 3450 grams.", 1).support > judged("The pump squiffs 3450 grams.", 1).support


def test_without_token_vectors_words_decide() -> None:
    scorer = SupportScorer(PASSAGES, None)
    good, bad = scorer.score(
        [Statement("The pump weighs 3450 grams.", (1,)), Statement("It glows green at night.", (1,))]
    )
    assert good is not None
    assert bad is not None
    assert (good.supported, bad.supported) == (True, False)


def test_what_claims_nothing_is_not_judged_and_order_is_kept() -> None:
    statements = [
        Statement("Here is how:"),
        Statement("The pump weighs 3450 grams.", (1,)),
        Statement("Any questions?"),
    ]
    judgements = SupportScorer(PASSAGES, Letters()).score(statements)
    assert [judgement is None for judgement in judgements] == [True, False, True]


def test_no_passage_bears_nothing_out() -> None:
    (judgement,) = SupportScorer([], Letters()).score([Statement("The pump weighs 3450 grams.")])
    assert judgement is not None
    assert not judgement.supported
    assert judgement.match is None


def test_each_text_is_encoded_once_in_one_call() -> None:
    calls: list[int] = []
    letters = Letters()

    def encode(texts: Sequence[str]) -> list[TokenEncoding]:
        calls.append(len(texts))
        return letters(texts)

    SupportScorer(PASSAGES, encode).score([Statement("The pump weighing is odd."), Statement("The pumping is odd.")])
    assert len(calls) == 1
    assert len(letters.texts) == len(set(letters.texts))


shares = st.floats(0, 1)
features = st.builds(
    Features, st.floats(0, 0.7), shares, shares, st.integers(0, 3), st.integers(0, 3), contradicted=st.booleans()
)


@given(features, st.sampled_from([WITH_TOKENS, WORDS_ONLY]))
def test_support_is_a_probability_that_no_doubt_raises(found: Features, weights) -> None:
    value = estimate_support(found, weights)
    assert 0 <= value <= 1
    for worse in (
        replace(found, unfamiliar=found.unfamiliar + 0.1),
        replace(found, unphrased=found.unphrased + 0.1),
        replace(found, scattered=found.scattered + 0.1),
        replace(found, unknown_numbers=found.unknown_numbers + 1),
        replace(found, unknown_names=found.unknown_names + 1),
        replace(found, contradicted=True),
    ):
        assert estimate_support(worse, weights) <= value
    assert bool(list_reasons(found, weights)) is (value < THRESHOLD)


@given(st.lists(shares, max_size=8))
def test_an_answer_is_at_most_as_grounded_as_its_worst_sentence(supports: list[float]) -> None:
    assert 0 <= groundedness(supports) <= min(supports, default=1.0)
    assert groundedness([]) == 1.0
