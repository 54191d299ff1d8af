"""Compounds in the lexical retriever: they and their parts find each other, in the languages that make them alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retrieval.lexical.query import LexicalQuery, build_queries
from retrieval.lexical.words.decompounding import WORTH
from retrieval.models import Collection, Document
from retrieval.rights.access import everything
from retrieval.search.pipeline import search
from retrieval.text.terms import inverse_document_frequency
from retrieval.types import Retriever, SearchMethod
from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db(transaction=True)

Ingest = Callable[..., Document]

# The files' names, which are searched as well, are in another language than their texts.
TEXTS = {
    "hours.md": "De bezoekuren verschillen per afdeling.",
    "silence.md": "Het stiltecentrum is altijd geopend.",
    "ticket.md": "Een weekkaart kost achttien euro.",
    "dog.md": "Een hond mag niet naar binnen.",
    "rules.md": "De regels gelden voor elk bezoek.",
    "guests.md": "Het gastenhuis ligt naast de garage.",
    "board.md": "Het schoolbord hangt in de speelkamer.",
    "pump.md": "Onderdeel MX-9920-W is een pomp.",
}


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Ingest) -> Collection:
    collection.text_search_configuration = "dutch"
    collection.save()
    for source, text in TEXTS.items():
        ingest(collection, source, text)
    return collection


def found(question: str) -> list[str]:
    hits = search(question, everything(), method=SearchMethod.LEXICAL).hits
    return [hit.passage.source for hit in hits]


def query(question: str, collection: Collection, *, compounds: bool = True) -> LexicalQuery:
    (built,) = build_queries(question, [collection.pk], compounds=compounds)
    return built


@pytest.mark.parametrize(
    ("question", "source"),
    [("Is er een centrum?", "silence.md"), ("Waar is stilte?", "silence.md"), ("Welke kaart is er?", "ticket.md")],
)
def test_a_word_finds_compounds_of_it(library: Collection, question: str, source: str) -> None:
    assert found(question)[:1] == [source]


def test_the_word_itself_comes_before_compounds_of_it(library: Collection) -> None:
    assert found("bezoek") == ["rules.md", "hours.md"]


def test_a_compound_finds_its_parts(library: Collection) -> None:
    assert sorted(found("hondenregels")) == ["dog.md", "rules.md"]


def test_a_short_word_asks_for_a_rest_that_is_known(library: Collection, ingest: Ingest) -> None:
    assert found("huis") == []
    ingest(library, "days.md", "Een gast blijft op dinsdag.")
    assert found("huis") == ["guests.md"]


def test_a_word_is_found_whole_where_its_lexeme_is_not(library: Collection) -> None:
    # It comes down to "schol", alone and at the end of a word, but not at the beginning.
    assert found("school") == ["board.md"]


def test_what_stood_in_is_shown_and_matched(library: Collection) -> None:
    result = search("bezoek", everything(), method=SearchMethod.LEXICAL)
    (retriever,) = [each for each in result.trace.retrievers if each.retriever is Retriever.LEXICAL]
    assert retriever.expansions == {
        "bezoek": (
            "bezoek",
            "bezoekur",
        )
    }
    assert [hit.candidate.matched_terms for hit in result.hits] == [("bezoek",), ("bezoekur",)]


def test_weights(library: Collection) -> None:
    built = query("bezoek", library)
    idf = inverse_document_frequency(1, len(TEXTS))
    (own, compound) = built.expansions["bezoek"]
    assert (own.lexeme, own.weight) == ("bezoek", idf)
    assert (compound.lexeme, compound.weight) == ("bezoekur", pytest.approx(WORTH * idf))
    assert built.idf == {}
    assert set(built.matching) == {"bezoek", "bezoekur"}


def test_a_passage_with_both_counts_once(library: Collection, ingest: Ingest) -> None:
    ingest(library, "both.md", "Een bezoek buiten de bezoekuren kost geld.")
    result = search("bezoek", everything(), method=SearchMethod.LEXICAL)
    scores = {hit.passage.source: hit.score for hit in result.hits}
    own = query("bezoek", library).expansions["bezoek"][0].weight
    assert scores["both.md"] < 2.5 * own
    assert scores["both.md"] == pytest.approx(scores["rules.md"], rel=0.25)


def test_what_the_question_says_itself_is_not_added(library: Collection) -> None:
    assert query("bezoek bezoekuren", library).expansions == {}
    assert query("bezoek bezoekuren", library).idf == query("bezoek bezoekuren", library, compounds=False).idf


def test_quoted_words_are_meant_as_they_are_written(library: Collection) -> None:
    assert found('"bezoek"') == ["rules.md"]


def test_codes_have_no_parts(library: Collection) -> None:
    assert query("MX-9920-W", library).expansions == {}


def test_it_can_be_switched_off(library: Collection) -> None:
    assert build_queries("centrum", [library.pk], fuzzy=False, compounds=False) == []
    assert build_queries("centrum", [library.pk], fuzzy=False) != []


def test_english_has_none(library: Collection, ingest: Ingest) -> None:
    english = Collection.objects.create(slug="english", name="English", text_search_configuration="english")
    ingest(english, "kept.md", "The passwords and the databases are kept for a weekday.")
    for question in ("pass", "data base", "week", "passwordpolicy"):
        with_them = build_queries(question, [english.pk])
        assert with_them == build_queries(question, [english.pk], compounds=False)
    built = {each.configuration: each for each in build_queries("bezoek data", [library.pk, english.pk], fuzzy=False)}
    assert set(built["dutch"].expansions) == {"bezoek"}
    assert built["english"].expansions == {}


def test_german_compounds(collection: Collection, ingest: Ingest) -> None:
    collection.text_search_configuration = "german"
    collection.save()
    ingest(collection, "times.md", "Die Besuchszeiten hängen an der Tür.")
    ingest(collection, "staff.md", "Das Personal ist freundlich.")
    assert found("Besuch") == ["times.md"]
    assert found("Freund") == []
