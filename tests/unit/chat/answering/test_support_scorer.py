"""Statements held against passages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.answering.support import (
    THRESHOLD,
    Features,
    SentenceSupport,
    Statement,
    SupportReason,
    SupportScorer,
    cut_passage,
    estimate_support,
    groundedness,
    list_reasons,
)

PUMP = "The pump must not run dry. It weighs 3450 grams, and Mr. Jansen designed it. The working pressure is 10 bar."
WARRANTY = "The warranty lasts two years. Returns are free within 30 days of delivery."
PASSAGES = [cut_passage(1, PUMP, "Manual of the MX-9920"), cut_passage(2, WARRANTY)]


def judged(text: str, *markers: int) -> SentenceSupport:
    (judgement,) = SupportScorer(PASSAGES).score([Statement(text, markers)])
    assert judgement is not None
    return judgement


def test_what_stands_in_the_passage_is_supported() -> None:
    judgement = judged("- It  weighs 3450 grams,\nand **Mr. Jansen designed it**.".replace("*", ""), 1)
    assert judgement.support == 1.0
    assert judgement.features is None
    assert judgement.match is not None
    assert PUMP[judgement.match.sentence.start : judgement.match.sentence.end].startswith("It weighs 3450")


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
    assert not judged("The warranty lasts for two years.", 1).supported
    assert judged("The warranty lasts for two years.", 2).supported


def test_a_statement_without_a_marker_is_held_against_all_passages() -> None:
    judgement = judged("The warranty lasts for two years.")
    assert judgement.supported
    assert judgement.reasons == (SupportReason.UNCITED,)
    assert judged("The warranty lasts for two years.", 9).reasons == (SupportReason.UNCITED,)


def test_both_of_two_cited_passages_bear_a_statement_out() -> None:
    text = "The pump weighs 3450 grams, the warranty lasts two years."
    assert judged(text, 1, 2).support > judged(text, 1).support


def test_what_claims_nothing_is_not_judged_and_order_is_kept() -> None:
    statements = [
        Statement("Here is how:"),
        Statement("The pump weighs 3450 grams.", (1,)),
        Statement("Any questions?"),
    ]
    judgements = SupportScorer(PASSAGES).score(statements)
    assert [judgement is None for judgement in judgements] == [True, False, True]


def test_no_passage_bears_nothing_out() -> None:
    (judgement,) = SupportScorer([]).score([Statement("The pump weighs 3450 grams.")])
    assert judgement is not None
    assert not judgement.supported
    assert judgement.match is None


shares = st.floats(0, 1)
features = st.builds(Features, shares, shares, shares, st.integers(0, 3), st.integers(0, 3), contradicted=st.booleans())


@given(features)
def test_support_is_a_probability_that_no_doubt_raises(found: Features) -> None:
    value = estimate_support(found)
    assert 0 <= value <= 1
    for worse in (
        replace(found, unfamiliar=found.unfamiliar + 0.1),
        replace(found, unphrased=found.unphrased + 0.1),
        replace(found, scattered=found.scattered + 0.1),
        replace(found, unknown_numbers=found.unknown_numbers + 1),
        replace(found, unknown_names=found.unknown_names + 1),
        replace(found, contradicted=True),
    ):
        assert estimate_support(worse) <= value
    assert bool(list_reasons(found)) is (value < THRESHOLD)


@given(st.lists(shares, max_size=8))
def test_an_answer_is_at_most_as_grounded_as_its_worst_sentence(supports: list[float]) -> None:
    assert 0 <= groundedness(supports) <= min(supports, default=1.0)
    assert groundedness([]) == 1.0
