from __future__ import annotations

import pytest

from retrieval.ranking.classification import classify
from retrieval.types import QueryClass


@pytest.mark.parametrize(
    ("question", "query_class"),
    [
        ("What is the difference between addVar and setVar?", QueryClass.COMPARISON),
        ("Wat is het verschil tussen addVar en setVar?", QueryClass.COMPARISON),
        ("Is the MX-9920-W heavier than the MX-9902-W?", QueryClass.COMPARISON),
        ("Why do I get error LNG-102?", QueryClass.TROUBLESHOOTING),
        ("E-041", QueryClass.TROUBLESHOOTING),
        ("De pomp werkt niet meer", QueryClass.TROUBLESHOOTING),
        ("Ik krijg een foutmelding bij het opstarten", QueryClass.TROUBLESHOOTING),
        ("Which parameters does load_index take?", QueryClass.CODE),
        ("addVar", QueryClass.CODE),
        ("Welke functie verwijdert een variabele?", QueryClass.CODE),
        ("What is a wet rotor?", QueryClass.CONCEPTUAL),
        ("Wat is cardioversie?", QueryClass.CONCEPTUAL),
        ("Explain reciprocal rank fusion", QueryClass.CONCEPTUAL),
        ("visiting hours cardiology", QueryClass.DEFAULT),
        ("openingstijden apotheek", QueryClass.DEFAULT),
    ],
)
def test_class_of_question(question: str, query_class: QueryClass) -> None:
    assert classify(question).query_class is query_class


def test_words_inside_other_words_do_not_count() -> None:
    # "terror" holds "error", "classical" holds "class", "Verschillende" is not "verschil".
    assert classify("terror attacks history").query_class is QueryClass.DEFAULT
    assert classify("classical music evenings").query_class is QueryClass.DEFAULT


def test_the_rule_that_decided_is_named() -> None:
    assert classify("compare both pumps").rule == "comparison words"
    assert classify("visiting hours").rule == "no pattern"
