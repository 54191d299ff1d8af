"""The site finds each document's language, reduces its words by it, and matches questions with them."""

import pytest

from retrieval.models import Collection, Document
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.ranking.lexical_ranker import count_matches, find_matched_spans
from retrieval.types import SearchMethod

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = {
    "pumps.md": "The pumps are cleaned on the first day of the month.",
    "pompen.md": "De pompen worden op de eerste dag van de maand gereinigd.",
    "kessel.md": "Die Kessel werden am ersten Tag des Monats von einem Schlosser geprüft.",
    "codes.csv": "code,count\nE-041,3\nE-042,7\n",
}


@pytest.fixture
def mixed(ingest):
    collection = Collection.objects.create(slug="mixed", name="Mixed")
    for source, text in TEXTS.items():
        ingest(collection, source, text)
    return collection


def found(question, **options):
    hits = search(question, build_unrestricted_filters(), method=SearchMethod.LEXICAL, **options).hits
    return {hit.passage.source for hit in hits}


def test_each_document_is_reduced_in_its_own_language(mixed):
    assert dict(Document.objects.values_list("source", "language")) == {
        "pumps.md": "en",
        "pompen.md": "nl",
        "kessel.md": "de",
        "codes.csv": "",
    }
    for question, source in {
        "pump": "pumps.md",
        "pomp": "pompen.md",
        "Kesseln": "kessel.md",
        "E-042": "codes.csv",
    }.items():
        assert found(question) == {source}, question
        assert count_matches(question, build_unrestricted_filters()) >= 1


def test_a_passage_is_listed_once_and_its_words_are_marked(mixed):
    hits = search("E-041 pompen", build_unrestricted_filters()).hits
    assert len({hit.passage.chunk_id for hit in hits}) == len(hits)
    hit = next(hit for hit in hits if hit.passage.source == "pompen.md")
    ((start, end),) = find_matched_spans(
        {hit.passage.chunk_id: hit.passage.content}, {hit.passage.chunk_id: hit.candidate.matched_terms}
    )[hit.passage.chunk_id]
    assert hit.passage.content[start:end] == "pompen"


def test_phrases_and_exclusions_hold_in_each_language(mixed):
    assert found('"eerste dag"') == {"pompen.md"}
    assert found("day dag -maand") == {"pumps.md"}


def test_the_languages_found_are_shown(mixed, admin_client):
    assert Collection.objects.get(pk=mixed.pk).languages == "English, Dutch, German"
    page = admin_client.get("/admin/retrieval/collection/").content.decode()
    assert "English, Dutch, German" in page


def test_files_in_dutch_make_a_dutch_collection(ingest):
    collection = Collection.objects.create(slug="gids", name="Gids")
    ingest(collection, "a.md", "Wat zijn de bezoekuren? Dat staat op de deur van de afdeling.")
    # This text is too short to show its language, so it gets the language of the others.
    ingest(collection, "b.md", "Bezoekuren cardiologie")
    assert Collection.objects.get(pk=collection.pk).languages == "Dutch"
    assert found("bezoekuur") == {"a.md", "b.md"}
    assert found("wat zijn de") == set()


def test_a_collection_keeps_the_configuration_that_was_chosen(ingest):
    plain = Collection.objects.create(slug="plain", name="Plain", text_search_configuration="simple")
    ingest(plain, "pompen.md", TEXTS["pompen.md"])
    assert plain.languages == "any language, words as they are"
    assert found("pomp") == set()
    assert found("pompen") == found("van") == {"pompen.md"}
