"""Quoted phrases and excluded words: filters that apply whichever retriever finds a passage."""

import pytest

from retrieval.index.active_embedder import active_embedder
from retrieval.index.vector_index import build_indexed_distance
from retrieval.models import Chunk, Collection
from retrieval.profile_settings import ProfileSettings
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.passage_rows import load_stored_chunks
from retrieval.search.pipeline import search
from retrieval.search.ranking import vector_ranker as dense_ranker
from retrieval.search.ranking.plans import build_plan
from retrieval.search.ranking.vector_ranker import VectorRanker
from retrieval.types import SearchMethod
from tests.support.libraries import library_of

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = build_plan(ProfileSettings(method=SearchMethod.RRF))

TEXTS = {
    "wet.md": "The wet rotor of the pump must be cleaned every year.",
    "dry.md": "The rotor was wet, so the pump was switched off for cleaning.",
    "valve.md": "Clean the valve of the pump before the wet season.",
    "whole.md": "Order part MX-9920-W when the pump leaks.",
    "joined.md": "Order part mx9920w when the pump leaks.",
    "parts.md": "Order part MX 9920 W when the pump leaks.",
    "other.md": "Order part MX-9902-W when the pump leaks.",
}


library = library_of(TEXTS)


def found(question, method=SearchMethod.RRF):
    return {hit.passage.source for hit in search(question, build_unrestricted_filters(), method=method, top_k=50).hits}


CONSTRAINED = [
    ('"wet rotor" pump', {"wet.md"}),
    ('"rotor of the pump"', {"wet.md"}),
    ('"pump must clean"', set()),
    ('"nowhere written" pump', set()),
    ('"wet rotor" "every year"', {"wet.md"}),
    ('"wet rotor" -year', set()),
    ("pump rotor -wet", {"whole.md", "joined.md", "parts.md", "other.md"}),
    ('pump -"wet rotor" -part', {"dry.md", "valve.md"}),
    ('"MX-9920-W" pump', {"whole.md", "joined.md", "parts.md"}),
    ('"mx9920w" pump', {"whole.md", "joined.md", "parts.md"}),
    ('"part MX-9920-W when" pump', {"whole.md", "joined.md", "parts.md"}),
    ("pump part -MX-9920-W", {"other.md", "wet.md", "dry.md", "valve.md"}),
]


def test_constraints_hold_for_every_method(library):
    for question, sources in CONSTRAINED:
        assert found(question, SearchMethod.VECTOR) == sources, question
        # It returns what shares a word with the question as well.
        assert found(question, SearchMethod.LEXICAL) <= sources, question


def test_a_phrase_lies_within_one_field(collection, ingest):
    ingest(collection, "apart.md", "# Bearings\n\nMade of steel.", title="Circulation pump")
    ingest(collection, "together.md", "# Spare\n\nThe pump bearings are made of steel.", title="Spare")
    assert found('"pump bearings"') == {"together.md"}
    assert found('"circulation pump"') == {"apart.md"}


def test_each_collection_is_asked_in_its_own_language(ingest):
    english = Collection.objects.create(slug="en", name="English", text_search_configuration="english")
    dutch = Collection.objects.create(slug="nl", name="Dutch", text_search_configuration="dutch")
    plain = Collection.objects.create(slug="xx", name="Plain", text_search_configuration="simple")
    for each in (english, dutch, plain):
        ingest(each, f"{each.slug}-one.md", "The pumps are cleaned. De pompen worden gereinigd.")
        ingest(each, f"{each.slug}-two.md", "The pump is clean. De pomp is schoon.")
    # English reduces both to "pump"; Dutch and plain do so only where the word is written like that, or as Dutch.
    assert {"en-one.md", "en-two.md", "xx-two.md"} <= found('"pump"')
    assert "xx-one.md" not in found('"pump"')
    assert {"nl-one.md", "nl-two.md", "xx-one.md"} <= found('"pompen"')
    assert "xx-two.md" not in found('"pompen"')
    # A phrase of English stop words filters no English passages, but filters the others by its words.
    assert found('"the" pump') >= {"en-one.md", "en-two.md", "xx-one.md"}


def test_excluded_words_are_not_embedded(library):
    with_syntax = VectorRanker('wet "rotor" pump -nonsense', build_unrestricted_filters(), PLAN)
    plain = VectorRanker("wet rotor pump", build_unrestricted_filters(), PLAN)
    stored = load_stored_chunks(list(Chunk.objects.values_list("pk", flat=True)), active_embedder().pk)
    assert with_syntax.score(stored) == plain.score(stored)


def test_few_passages_that_meet_a_constraint_are_compared_exactly(library, ingest, monkeypatch):
    asked = []

    def asking(embedder):
        asked.append(build_indexed_distance(embedder))
        return asked[-1]

    monkeypatch.setattr(dense_ranker, "build_indexed_distance", asking)
    monkeypatch.setattr(dense_ranker, "EXACT_UP_TO", 3)
    assert len(VectorRanker('"wet rotor"', build_unrestricted_filters(), PLAN).rank(50).chunks) == 1
    assert asked == []
    VectorRanker("wet rotor", build_unrestricted_filters(), PLAN).rank(50)
    assert len(asked) == 1
