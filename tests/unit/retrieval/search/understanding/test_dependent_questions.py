"""Signs that a question needs the questions before it."""

import pytest

from retrieval.search.understanding.dependent_questions import has_pronoun
from retrieval.search.understanding.joined_questions import join_with_earlier_questions
from retrieval.types import Turn


@pytest.mark.parametrize(
    "question",
    [
        "How heavy is it?",
        "Wat kost hij?",
        "Hoe lang is de garantie daarop?",
        "Welke pakking hoort ervan bij de set?",
        "Wat kan ik hiermee doen?",
        "Wie is daarvoor verantwoordelijk?",
        "Hoe zwaar is het?",
    ],
)
def test_pronouns_and_dutch_adverbs_point_back(question):
    assert has_pronoun(question)


@pytest.mark.parametrize(
    "question",
    ["Is het ziekenhuis open?", "Where is the car park?", "Waarom is de dosering daarna lager?", "Wie is er?"],
)
def test_other_questions_point_at_nothing(question):
    assert not has_pronoun(question)


@pytest.mark.parametrize(
    ("question", "before", "is_joined"),
    [
        ("Wat zijn de bezoektijden in het ziekenhuis?", "Who won the World Cup in 2022?", False),
        ("How long is the warranty of a pump?", "Wat zijn de bezoektijden in het ziekenhuis?", False),
        ("Hoe lang is de garantie daarop?", "How heavy is the ball valve?", True),
        ("En wat kost de levering van een klep?", "How heavy is the ball valve?", True),
        ("de prijs?", "How heavy is the ball valve?", True),
        ("How long is the warranty of a pump?", "How heavy is the ball valve?", True),
        # The language of one of them is unclear.
        ("Parkeren Willibrord", "How heavy is the ball valve?", True),
    ],
)
def test_a_question_that_changes_the_language_is_not_joined(question, before, is_joined):
    earlier = [Turn("What is a ball valve?"), Turn(before)]
    assert bool(join_with_earlier_questions(question, earlier)) == is_joined
