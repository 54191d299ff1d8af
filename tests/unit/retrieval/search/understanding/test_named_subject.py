"""A follow-up that points back gets the code of the question before it."""

import pytest

from retrieval.search.understanding.named_subject import add_identifier_from_history, remove_identifier_prefix
from retrieval.types import Turn

HEAVY = "How heavy is the MX-9920-W?"


@pytest.mark.parametrize(
    ("earlier", "question", "searched"),
    [
        ([HEAVY], "What does it cost?", "MX-9920-W: What does it cost?"),
        ([HEAVY], "And what is its price?", "MX-9920-W: what is its price?"),
        ([HEAVY], "En de prijs?", "MX-9920-W: de prijs?"),
        (["Hoe zwaar is de MX-9920-W?"], "Wat kost die?", "MX-9920-W: Wat kost die?"),
        ([HEAVY, "What does it cost?"], "Which seal kit fits it?", "MX-9920-W: Which seal kit fits it?"),
        (["What does forEach do?"], "Which error does it give?", "forEach: Which error does it give?"),
        (["What does E-041 mean?", HEAVY], "What does it cost?", "MX-9920-W: What does it cost?"),
    ],
)
def test_the_code_is_named(earlier, question, searched):
    assert add_identifier_from_history(question, [Turn(each) for each in earlier]) == searched
    assert remove_identifier_prefix(searched) == searched.partition(": ")[2]


@pytest.mark.parametrize(
    ("earlier", "question"),
    [
        ([], "What does it cost?"),
        ([HEAVY], "Is there wifi in the hospital?"),
        ([HEAVY], "What does the MX-9940-W cost? Is it light?"),
        ([HEAVY], "Is it possible to pay by card?"),
        (["Is the MX-9920-W heavier than the MX-9940-W?"], "What does it cost?"),
        (["How long is the warranty?"], "What does it cost?"),
        # The subject changed in between.
        ([HEAVY, "How long is the warranty?"], "What does it cost?"),
        ([HEAVY], "and"),
    ],
)
def test_other_questions_stay_as_they_are(earlier, question):
    assert add_identifier_from_history(question, [Turn(each) for each in earlier]) == question
