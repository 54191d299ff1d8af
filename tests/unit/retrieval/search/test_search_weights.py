"""The weight of a question beside its text joined with the questions before it."""

import pytest

from retrieval.search.understanding.joined_questions import (
    SEARCH_WEIGHTS,
    SEARCH_WEIGHTS_OF_FEW_WORDS,
    choose_search_weights,
)


@pytest.mark.parametrize(
    ("question", "leans"),
    [
        ("And in winter?", True),
        ("pricing?", True),
        ("and what does it cost?", True),
        ("En voor een hele week?", True),
        ("What does search_method mean?", False),
        ("and within what time do I have to take it?", False),
    ],
)
def test_only_short_questions_lean_on_the_one_before(question, leans):
    assert choose_search_weights(question) == (SEARCH_WEIGHTS_OF_FEW_WORDS if leans else SEARCH_WEIGHTS)
