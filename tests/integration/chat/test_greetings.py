"""A greeting or thanks gets a sentence that says what the site is for; a question after one is a question."""

import pytest

from chat.answering.greetings import answer_greeting
from retrieval.types import SearchFilters

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("message", ["Hello!", "Thanks a lot!", "thank you so much", "dank je wel", "goedemorgen :)"])
def test_a_greeting_is_answered_with_what_can_be_asked(collection, message):
    completed = answer_greeting(message, SearchFilters(collections=(collection.pk,)))
    assert not completed.refused
    assert "Library" in completed.text


@pytest.mark.parametrize("message", ["Hi, how heavy is the pump?", "hello world program", "Is there a thank-you page?"])
def test_a_question_is_none(collection, message):
    assert answer_greeting(message, SearchFilters(collections=(collection.pk,))) is None
