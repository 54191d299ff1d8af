"""The agreement of an answer with the expected one: by words, numbers and negations, without an embedder."""

import pytest

from chat.types import CheckedStatement
from evaluation.runs.agreement import RIGHT_AGREEMENT, contains_answer, measure_agreement, measure_groundedness

ANSWER = "The circulation pump weighs 3450 grams and moves water through the radiators [1]."
DUTCH = "De circulatiepomp weegt ongeveer drie kilo en verplaatst het water door alle radiatoren van het huis."


def agrees(expected, text=ANSWER, *, refused=False):
    return measure_agreement(text, refused=refused, expected=expected)


@pytest.mark.parametrize(
    ("expected", "text", "found"),
    [
        ("3450 grams", ANSWER, 1),
        ("The Circulation-Pump weighs 3450 grams", ANSWER, 1),
        ("3450 gram", "De circulatiepomp weegt 3450 gram [1].", 1),
        ("Yes", "Yes, it does [1].", 1),
        ("Yes", "It does [1].", 0),
        (DUTCH, ANSWER, None),
    ],
)
def test_words_of_the_answer_agree_wholly_and_another_language_is_not_measured(expected, text, found):
    assert agrees(expected, text) == found


@pytest.mark.parametrize(
    ("expected", "right"),
    [
        ("It weighs 3450 grams.", True),
        ("The pump moves the water through radiators.", True),
        ("It weighs 9999 grams.", False),
        ("The pump does not move water through the radiators.", False),
        ("Dogs are welcome in the garden on a leash.", False),
    ],
)
def test_what_the_answer_bears_out_is_right_and_what_it_contradicts_is_wrong(expected, right):
    found = agrees(expected)
    assert 0 <= found < 1
    assert (found >= RIGHT_AGREEMENT) is right


def test_each_sentence_that_is_missing_costs_its_share():
    whole, half = agrees("It weighs 3450 grams."), agrees("It weighs 3450 grams. The warehouse opens at noon.")
    missing = agrees("The warehouse opens at noon.")
    assert None not in (whole, half, missing)
    assert half == pytest.approx((whole + missing) / 2)


def test_a_marker_is_no_word_of_the_answer():
    assert agrees("1") == pytest.approx(agrees("7"), abs=0.2)
    assert agrees("1") != 1


def test_a_refusal_is_right_where_it_is_expected_and_wrong_where_it_is_not():
    for refused in (True, False):
        assert measure_agreement("Nobody knows.", refused=refused, expected="", expects_refusal=True) == float(refused)
    assert agrees("3450 grams", ANSWER, refused=True) == 0


def test_groundedness_is_the_share_of_the_measured_sentences_that_are_borne_out():
    statements = [CheckedStatement(0, 1, (), 0.9, True), CheckedStatement(1, 2, (), 0.1, False)]
    unmeasured = CheckedStatement(2, 3, ())
    assert measure_groundedness([*statements, unmeasured], refused=False) == 0.5
    assert measure_groundedness([unmeasured], refused=False) is None
    assert measure_groundedness(statements, refused=True) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It began in October 1973, of course.", "October 1973"),
        ("the World-War II", "World War II"),
        ("Bezoek is er van 14.00 – 16.00 uur.", "14.00 – 16.00 uur"),
        ("hosted by the Normans", "The Normans"),
        ("use `addVar` for it", "ADDVAR"),
    ],
)
def test_an_answer_is_held_whatever_its_case_punctuation_and_articles(text, answer):
    assert contains_answer(text, ["something else", answer])


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("born in 1939", ["39"]),
        ("war of the worlds II", ["World War II"]),
        ("the the the", ["the"]),
        ("anything", []),
        ("", ["anything"]),
        ("12.5 bar", ["5 bar", "12", "12.5 bars"]),
    ],
)
def test_parts_of_words_other_orders_and_nothing_are_not(text, answers):
    assert not contains_answer(text, answers)
