"""Which of the two built-in embedders a site has that names none, and how it moves."""

import pytest
from django.core.management import call_command

from retrieval import readiness
from retrieval.index import embedder_choice
from retrieval.index.closeness import find_uncalibrated_embedder
from retrieval.index.embedders.e5 import find_weights
from retrieval.models import Chunk, ChunkEmbedding, Embedder
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search

pytestmark = pytest.mark.django_db(transaction=True)
needs_weights = pytest.mark.skipif(not find_weights(), reason="The weights come for Linux on x86-64 only.")

ENGLISH = {
    "visiting.md": "# Visiting hours\n\nVisitors are welcome every day from two until eight in the evening.",
    "fasting.md": "# Before the operation\n\nDo not eat or drink for six hours before you are put under.",
    "parking.md": "# Parking\n\nThe garage behind the main entrance has room for two hundred cars.",
    "meals.md": "# Meals\n\nThe kitchen serves a warm meal at noon and bread in the evening.",
}


@pytest.fixture
def unnamed(settings):
    """Unset EMBEDDING_MODEL."""
    settings.EMBEDDER = {}
    settings.RETRIEVAL_RERANKER = "none"


@pytest.fixture
def library(collection, ingest):
    for name, text in ENGLISH.items():
        ingest(collection, name, text)
    return collection


def restart():
    embedder_choice._build_site_embedder.cache_clear()


@needs_weights
@pytest.mark.usefixtures("unnamed")
def test_a_new_site_finds_documents_in_another_language(library):
    assert Embedder.objects.get().name == "multilingual-e5-small/int8"
    for question, source in {
        "Hoe laat mag ik bij mijn moeder langskomen?": "visiting.md",
        "Mag ik ontbijten voor de ingreep?": "fasting.md",
        "Waar kan ik mijn auto kwijt?": "parking.md",
    }.items():
        result = search(question, build_unrestricted_filters())
        assert result.trace.degraded == ()
        assert result.hits[0].passage.source == source, question
    assert find_uncalibrated_embedder() == ""
    assert readiness.check_embedder().detail == "multilingual-e5-small/int8"


@needs_weights
def test_a_site_with_vectors_of_the_other_keeps_it_until_it_is_moved(library, request, capsys):
    request.getfixturevalue("unnamed")
    assert embedder_choice.get_embedder().name == "all-MiniLM-L6-v2/int8"
    assert search("When are visitors welcome?", build_unrestricted_filters()).trace.degraded == ()
    assert "`manage.py reembed` moves this one" in readiness.check_embedder().detail

    call_command("reembed")
    assert "now uses multilingual-e5-small/int8" in capsys.readouterr().out
    moved = Embedder.objects.get(is_active=True)
    assert ChunkEmbedding.objects.filter(embedder=moved).count() == Chunk.objects.count()
    # An older process keeps using its embedder.
    assert search("When are visitors welcome?", build_unrestricted_filters()).trace.degraded == ()
    assert "restart" in readiness.check_embedder().detail
    restart()
    assert embedder_choice.get_embedder().name == moved.name
    assert embedder_choice.describe_embedder_choice() == ""
    result = search("Mag ik ontbijten voor de ingreep?", build_unrestricted_filters())
    assert (result.trace.degraded, result.hits[0].passage.source) == ((), "fasting.md")


@pytest.mark.usefixtures("unnamed")
def test_where_the_weights_cannot_be_had_the_other_one_is_taken_and_said(monkeypatch):
    monkeypatch.setattr(embedder_choice, "find_weights", lambda: None)
    assert embedder_choice.get_embedder().name == "all-MiniLM-L6-v2/int8"
    assert "come for Linux on x86-64 only" in embedder_choice.describe_embedder_choice()


def test_a_named_embedder_is_taken_without_a_notice(library, settings):
    settings.EMBEDDER = settings.BUILT_IN_EMBEDDERS["multilingual-e5-small"]
    assert embedder_choice.get_embedder().name == "multilingual-e5-small/int8"
    assert embedder_choice.describe_embedder_choice() == ""
    assert "vector" in search("visitors", build_unrestricted_filters()).trace.degraded
    assert "reembed" in readiness.check_embedder().detail
