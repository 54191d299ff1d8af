"""The support of statements by passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.answering.checking.support import (
    THRESHOLD,
    DoubtReason,
    SupportScorer,
    estimate_groundedness,
    estimate_support,
    split_passage,
)

PUMP = "The pump must not run dry. It weighs 3450 grams, and Mr. Jansen designed it. The working pressure is 10 bar."
WARRANTY = "The warranty lasts two years. Returns are free within 30 days of delivery."
PASSAGES = [split_passage(1, PUMP, "Manual of the MX-9920"), split_passage(2, WARRANTY)]


def judged(text, *markers):
    return SupportScorer(PASSAGES).score(text, markers)


def test_what_stands_in_the_passage_is_supported():
    judgement = judged("- It  weighs 3450 grams,\nand **Mr. Jansen designed it**.".replace("*", ""), 1)
    assert judgement.support == 1.0
    assert judgement.verbatim
    assert PUMP[judgement.match.sentence.start : judgement.match.sentence.end].startswith("It weighs 3450")


def test_a_beginning_of_a_longer_number_is_not_verbatim():
    assert not judged("The working pressure is 1", 1).verbatim


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The pump weighs 3400 grams.", DoubtReason.NUMBER),
        ("It was designed by Mr. Pieterse.", DoubtReason.NAME),
        ("The pump must run dry.", DoubtReason.NEGATION),
        ("The working pressure is not 10 bar.", DoubtReason.NEGATION),
        ("Aluminium housings corrode quickly near seawater.", DoubtReason.WORDS),
    ],
)
def test_what_speaks_against_a_statement_is_named(text, reason):
    judgement = judged(text, 1)
    assert not judgement.is_supported
    assert judgement.reasons[0] is reason


@pytest.mark.parametrize("text", ["The pump weighs 3450 grams.", "The MX-9920 pump weighs 3450 grams [1]."])
def test_other_words_for_the_same_are_supported(text):
    judgement = judged(text, 1)
    assert judgement.is_supported
    assert judgement.reasons == ()
    assert not judgement.verbatim


def test_a_statement_is_held_against_what_it_cites():
    assert not judged("The warranty lasts for two years.", 1).is_supported
    assert judged("The warranty lasts for two years.", 2).is_supported


def test_a_statement_without_a_marker_is_held_against_all_passages():
    judgement = judged("The warranty lasts for two years.")
    assert judgement.is_supported
    assert judgement.reasons == (DoubtReason.UNCITED,)
    assert judged("The warranty lasts for two years.", 9).reasons == (DoubtReason.UNCITED,)


def test_both_of_two_cited_passages_bear_a_statement_out():
    text = "The pump weighs 3450 grams, the warranty lasts two years."
    assert judged(text, 1, 2).support > judged(text, 1).support


def test_no_passage_bears_nothing_out():
    judgement = SupportScorer([]).score("The pump weighs 3450 grams.")
    assert not judgement.is_supported
    assert judgement.match is None


shares = st.floats(0, 1)
three = st.lists(shares, min_size=3, max_size=3)
doubts = st.frozensets(st.sampled_from([DoubtReason.NUMBER, DoubtReason.NAME, DoubtReason.NEGATION]))


@given(three, three, doubts, doubts)
def test_support_is_a_probability_that_no_doubt_raises(low, more, found, further):
    support, reasons = estimate_support(low, found)
    assert 0 <= support <= 1
    assert (
        estimate_support([each + added for each, added in zip(low, more, strict=True)], found | further)[0] <= support
    )
    assert bool(reasons) is (support < THRESHOLD)


@given(st.lists(shares, max_size=8))
def test_an_answer_is_at_most_as_grounded_as_its_worst_sentence(supports):
    assert 0 <= estimate_groundedness(supports) <= min(supports, default=1.0)
    assert estimate_groundedness([]) == 1.0
