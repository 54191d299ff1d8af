from __future__ import annotations

import pytest

from evaluation.runs.answer_metrics import holds_answer, refusal_precision


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
def test_an_answer_is_held_whatever_its_case_punctuation_and_articles(text: str, answer: str) -> None:
    assert holds_answer(text, ["something else", answer])


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
def test_parts_of_words_other_orders_and_nothing_are_not(text: str, answers: list[str]) -> None:
    assert not holds_answer(text, answers)


def test_precision_does_not_depend_on_how_many_of_a_kind_were_asked() -> None:
    few = refusal_precision([True, True, False, False], [True, False, False, False])
    many = refusal_precision([True, True, False, False] * 100, [True, False, False, False])
    assert few is not None
    assert many is not None
    assert few.mean == many.mean == pytest.approx(0.5 / 0.75)
    assert few.low <= few.mean <= few.high


def test_more_questions_narrow_the_interval() -> None:
    few = refusal_precision([True, True, False] * 4, [True, False, False] * 4)
    many = refusal_precision([True, True, False] * 100, [True, False, False] * 100)
    assert few is not None
    assert many is not None
    assert many.high - many.low < few.high - few.low


def test_precision_of_no_refusal_is_none_and_of_no_questions_an_error() -> None:
    assert refusal_precision([False], [False, False]) is None
    perfect = refusal_precision([True, False], [False])
    assert perfect is not None
    assert (perfect.mean, perfect.low, perfect.high) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="both kinds"):
        refusal_precision([], [True])
