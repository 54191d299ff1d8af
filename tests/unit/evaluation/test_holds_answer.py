from __future__ import annotations

import pytest

from evaluation.runs.agreement import holds_answer


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
