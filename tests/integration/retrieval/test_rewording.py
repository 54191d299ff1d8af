"""Misspelt questions, against documents that are in the index."""

import pytest

from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.understanding.spelling import suggest_questions
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.types import SearchMethod, Turn
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)


TEXTS = {
    "hospital.md": "# Visitors\n\nThe hospital is open day and night. Parental leave is paid.",
    "pumps.md": "# Pumps\n\nThe MX-9920-W weighs 3450 g. The MX-9920-D weighs 3100 g. The MX-9940-W weighs 5200 g.",
    "errors.md": "# E-041 Dry running\n\nThe pump stops. An incident is reported.",
}


library = library_of(TEXTS)


def vocabulary():
    return CollectionVocabulary(build_unrestricted_filters().collections)


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("When is the hosptial open?", "When is the hospital open?"),
        ("How heavy is the MX9920W?", "How heavy is the MX-9920-W?"),
        ("How is an incidnet reported?", "How is an incident reported?"),
    ],
)
def test_what_is_certain_is_searched_and_told(library, question, searched):
    trace = search(question, build_unrestricted_filters()).trace
    assert (trace.question, trace.query) == (question, searched)
    assert (trace.reformulation.changed, trace.reformulation.corrected) == (True, True)
    assert trace.reformulation.reason.startswith("spelling: ")


@pytest.mark.parametrize(
    "question", ["When is the hospital open?", "How do I cook pasta?", "How heavy is the MX-9930-W?", '"hosptial"']
)
def test_what_is_in_doubt_is_searched_as_it_was_asked(library, question):
    assert search(question, build_unrestricted_filters()).trace.query == question


def test_what_is_joined_is_put_right_too(library):
    result = search("and at nihgt?", build_unrestricted_filters(), history=[Turn("When is the hosptial open?")])
    trace = result.trace
    assert (trace.query, trace.joined_query) == ("and at night?", "When is the hosptial open? and at night?")
    assert result.hits[0].passage.source == "hospital.md"
    assert trace.reformulation.corrected


def test_a_method_is_searched_as_published(library):
    assert search("hosptial", build_unrestricted_filters(), method=SearchMethod.LEXICAL).trace.query == "hosptial"


def test_what_is_near_is_offered(library):
    assert suggest_questions("What does E-401 mean?", vocabulary()) == ("What does E-041 mean?",)
    assert suggest_questions("What does E-041 mean?", vocabulary()) == ()
    assert "How heavy is the MX-9920-W?" in suggest_questions("How heavy is the MX-9930-W?", vocabulary())


def test_words_of_other_collections_are_not_told(library):
    other = CollectionVocabulary([library.pk + 1])
    assert other.find_near_words("hosptial") == []
    assert other.find_similar_codes("mx9920w") == []
    assert suggest_questions("How heavy is the MX-9930-W?", other) == ()
