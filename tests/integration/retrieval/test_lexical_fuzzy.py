"""Misspelt words: their replacements, the weight of these, and words that are never corrected."""

import pytest
from django.db import connection

from retrieval.models import Collection, CollectionStatistics, Document, Lexeme
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.ranking.lexical_query import build_queries
from retrieval.search.ranking.lexical_ranker import Bm25Ranker
from retrieval.search.ranking.plans import build_plan
from retrieval.search.understanding import vocabulary
from retrieval.search.understanding.vocabulary import MAX_EXPANSIONS
from retrieval.text.terms import compute_inverse_document_frequency
from retrieval.types import Retriever, SearchMethod
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = build_plan(ProfileSettings(method=SearchMethod.LEXICAL))

TEXTS = {
    "hospital.md": "The hospital is open day and night.",
    "pump.md": "Part MX-9920-W is a circulation pump.",
    "valve.md": "A ball valve closes quickly.",
    "value.md": "The value of the part is written off.",
    "both.md": "A valve has a value.",
}


library = library_of(TEXTS)


def found(question):
    hits = search(question, build_unrestricted_filters(), method=SearchMethod.LEXICAL).hits
    return [hit.passage.source for hit in hits]


@pytest.mark.parametrize(
    ("typed", "source"),
    [("hosptial", "hospital.md"), ("hopsital", "hospital.md"), ("cirkulation", "pump.md"), ("pmup", "pump.md")],
)
def test_misspelt_words_find_what_was_meant(library, typed, source):
    assert found(typed) == [source]


def test_what_stood_in_is_shown_and_matched(library):
    result = search("hosptial", build_unrestricted_filters(), method=SearchMethod.LEXICAL)
    (retriever,) = [each for each in result.trace.retrievers if each.retriever is Retriever.LEXICAL]
    assert retriever.expansions == {"hosptial": ("hospit",)}
    assert result.hits[0].candidate.matched_terms == ("hospit",)


def test_a_search_looks_up_similar_words_once(library, monkeypatch):
    looked_up = []
    find = vocabulary._find_near_lexemes

    def count(*arguments):
        looked_up.append(arguments[:2])
        return find(*arguments)

    monkeypatch.setattr(vocabulary, "_find_near_lexemes", count)
    # Several words are near, so the spelling is not corrected, and the lexical retriever needs them too.
    result = search("does the valze close", build_unrestricted_filters())
    assert "valve.md" in [hit.passage.source for hit in result.hits]
    assert looked_up
    assert len(looked_up) == len(set(looked_up))


def test_words_that_the_documents_lack_are_told(library):
    result = search("valve hosptial MongoDB", build_unrestricted_filters(), method=SearchMethod.LEXICAL)
    (retriever,) = [each for each in result.trace.retrievers if each.retriever is Retriever.LEXICAL]
    assert [word.lower() for word in retriever.unknown_words] == ["mongodb", "mongo", "db"]


@pytest.mark.parametrize("question", ["MX-9290-W", "mx9902w", "2027", '"hosptial"', "ospital", "pi"])
def test_codes_numbers_quotations_first_letters_and_short_words_are_not_put_right(library, question):
    for query in build_queries(question, [library.pk]):
        assert query.expansions == {}


def test_words_that_the_documents_know_are_not_expanded(library):
    (query,) = build_queries("valve hosptial", [library.pk])
    assert query.expansions.keys() == {"hosptial"}
    assert query.idf.keys() == {"valv"}


def test_it_can_be_turned_off(library):
    assert build_queries("hosptial", [library.pk], fuzzy=False) == []


def test_an_expansion_weighs_less_and_all_weigh_by_the_most_frequent(library, ingest):
    ingest(library, "third.md", "Nothing of value.")
    (query,) = build_queries("valye", [library.pk])
    by_lexeme = {expansion.lexeme: expansion for expansion in query.expansions["valye"]}
    assert by_lexeme.keys() == {"valv", "valu"}
    idf = compute_inverse_document_frequency(3, CollectionStatistics.objects.get(pk=library.pk).chunks)
    for expansion in by_lexeme.values():
        assert (expansion.edits, expansion.weight) == (1, pytest.approx(idf * (1 - 1 / 5)))


def test_a_passage_is_credited_with_the_best_expansion_only(library):
    ranking = Bm25Ranker("valye", build_unrestricted_filters(), PLAN).rank(10)
    sources = dict(Document.objects.values_list("chunks__pk", "source"))
    scores = {sources[chunk.chunk_id]: chunk.score for chunk in ranking.chunks}
    assert scores.keys() == {"valve.md", "value.md", "both.md"}
    both = next(chunk for chunk in ranking.chunks if sources[chunk.chunk_id] == "both.md")
    (query,) = build_queries("valye", [library.pk])
    weights = [expansion.weight for expansion in query.expansions["valye"]]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT max(-(bm25 <#> weights::sparsevec)), sum(-(bm25 <#> weights::sparsevec)) "
            "FROM retrieval_chunk, unnest(%s::text[]) AS weights WHERE id = %s",
            [[vector.to_text() for vector in query.expansion_vectors[0]], both.chunk_id],
        )
        best, total = cursor.fetchone()
    assert len(weights) == 2
    assert both.score == pytest.approx(best)
    assert both.score < total


def test_at_most_fifty_stand_in_the_nearest_and_most_frequent_first(library):
    letters = "abcdefghij"
    lexemes = {f"zzzz{first}{second}": 1 for first in letters for second in letters} | {"zzzzz": 1, "zzzzzza": 3}
    Lexeme.objects.bulk_create(
        Lexeme(collection=library, lexeme=lexeme, document_frequency=count) for lexeme, count in lexemes.items()
    )
    expansions = vocabulary.find_similar_lexemes(
        "zzzzzz", "zzzzzz", "simple", [library.pk], [library.pk], 10, readers=()
    )
    assert [(each.lexeme, each.edits) for each in expansions[:2]] == [("zzzzzza", 1), ("zzzzz", 1)]
    assert len(expansions) == MAX_EXPANSIONS


def test_a_word_of_another_collections_language_is_not_misspelt(ingest):
    english = Collection.objects.create(slug="en", name="English", text_search_configuration="english")
    dutch = Collection.objects.create(slug="nl", name="Dutch", text_search_configuration="dutch")
    ingest(english, "heating.md", "The heating of the ward. A hot day, her heart.")
    ingest(dutch, "hitte.md", "De heatin staat aan; het hart van de afdeling.")
    # "het" is a Dutch stop word, "heating" an English word: neither is a misspelling of what the other language has.
    for query in build_queries("het heating", [english.pk, dutch.pk]):
        assert query.expansions == {}
    expanded = {query.configuration: query.expansions for query in build_queries("haeting", [english.pk, dutch.pk])}
    assert [expansion.lexeme for expansion in expanded["english"]["haeting"]] == ["heat"]
