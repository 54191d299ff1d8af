"""Questions with an unknown word, against documents in two languages."""

import pytest

from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.understanding.spelling import suggest_questions
from retrieval.search.understanding.vocabulary import CollectionVocabulary
from retrieval.text.language import identify_language
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)


library = library_of(
    {
        "bezoek.md": "# Bezoek\n\nHet contact met de afdeling is er elke dag, en het is open voor iedereen.",
        "screens.md": "# Screens\n\nThe contrast of the screen is set with the upper button, and it is stored.",
    }
)


@pytest.mark.parametrize(
    ("question", "suggested"),
    [
        ("Where is the contract of the screen?", ["Where is the contrast of the screen?"]),
        ("Waar is het contract met de afdeling?", ["Waar is het contact met de afdeling?"]),
        # The language of this word is unclear.
        ("contract", ["contact", "contrast"]),
    ],
)
def test_similar_words_come_from_documents_in_the_language_of_the_question(library, question, suggested):
    vocabulary = CollectionVocabulary(build_unrestricted_filters().collections, language=identify_language(question))
    assert sorted(suggest_questions(question, vocabulary)) == suggested
