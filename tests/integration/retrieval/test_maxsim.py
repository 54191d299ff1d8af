"""Late interaction: token signs appear with the passages, rerank them, and say which words met."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from retrieval import conf
from retrieval.exceptions import RerankFailed
from retrieval.models import Chunk, ChunkEmbedding, Collection, Document
from retrieval.rerank.maxsim import MaxSim
from retrieval.rights.access import everything
from retrieval.search.pipeline import search
from retrieval.search.reranking import with_word_matches
from retrieval.search.trace import StageStatus
from retrieval.types import Candidates, SearchMethod
from tests.support.remembered import remembered

pytestmark = pytest.mark.django_db(transaction=True)

Ingest = Callable[..., Document]

TEXTS = {
    "pump.md": "# Pumps\n\nThe circulation pump weighs three kilograms and hums quietly.",
    "valve.md": "# Valves\n\nA ball valve closes with a quarter turn of its lever.",
    "dog.md": "# Dogs\n\nA dog sleeps for half of the day.",
}


@pytest.fixture
@remembered
def library(collection: Collection, ingest: Ingest) -> Collection:
    for source, text in TEXTS.items():
        ingest(collection, source, text)
    return collection


def chunk(source: str) -> Chunk:
    return Chunk.objects.get(document__source=source)


def score(question: str, *sources: str) -> list[float]:
    chunks = [chunk(source).pk for source in sources]
    judged = MaxSim().score(question, Candidates(chunks), 2.0)
    return [judged[pk] for pk in chunks]


def test_words_that_mean_the_same_meet(library: Collection) -> None:
    pump, valve, dog = score("How heavy is the pump?", "pump.md", "valve.md", "dog.md")
    assert pump > max(valve, dog) + 0.05
    matches = {
        match.word: match
        for match in MaxSim().word_matches("How heavy is the pump?", [chunk("pump.md").pk])[chunk("pump.md").pk]
    }
    assert matches["pump"].met.lower() in ("pump", "pumps")
    assert matches["heavy"].met == "weighs"
    assert "the" not in matches
    assert sum(match.weight for match in matches.values()) == pytest.approx(1.0)
    mean = sum(match.weight * match.similarity for match in matches.values())
    assert mean == pytest.approx(pump, abs=1e-5)


def test_a_rare_word_weighs_more_than_a_common_one(library: Collection, ingest: Ingest) -> None:
    for number in range(6):
        ingest(library, f"more-{number}.md", f"# Pump {number}\n\nPump number {number} is in the stock room.")
    matches = {
        match.word: match.weight
        for match in MaxSim().word_matches("pump lever", [chunk("valve.md").pk])[chunk("valve.md").pk]
    }
    assert matches["lever"] > 2 * matches["pump"]


def test_the_default_search_is_reranked_and_says_so(library: Collection) -> None:
    trace = search("How heavy is the pump?", everything()).trace
    assert trace.rerank is not None
    assert (trace.rerank.reranker, trace.rerank.status, trace.rerank.judged) == ("maxsim", StageStatus.OK, 3)
    assert all(candidate.rerank and candidate.rerank.score is not None for candidate in trace.candidates)


def test_a_method_that_is_asked_for_is_not_reranked(library: Collection) -> None:
    trace = search("How heavy is the pump?", everything(), method=SearchMethod.RRF).trace
    assert trace.rerank is None
    assert all(candidate.support == 0.0 for candidate in trace.candidates)
    named = search("How heavy is the pump?", everything(), method=SearchMethod.RRF, reranker="maxsim").trace
    assert named.rerank is not None
    assert named.rerank.status is StageStatus.OK


def test_passages_from_before_are_not_judged_until_they_are_encoded(library: Collection) -> None:
    ChunkEmbedding.objects.filter(chunk=chunk("dog.md")).update(token_signs=None)
    trace = search("How long does a dog sleep?", everything()).trace
    assert trace.rerank is not None
    assert trace.rerank.judged == 2
    call_command("reembed")
    assert not ChunkEmbedding.objects.filter(token_signs=None).exists()
    assert ChunkEmbedding.objects.count() == len(TEXTS)
    again = search("How long does a dog sleep?", everything()).trace
    assert again.rerank is not None
    assert again.rerank.judged == 3


def test_an_embedder_without_tokens_is_told(library: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        name, dimension, max_tokens = "plain", 3, 10

    monkeypatch.setattr(conf, "embedder", Plain)
    with pytest.raises(RerankFailed, match="no token vectors"):
        score("pump", "pump.md")


def test_a_title_that_changed_is_not_explained_with_the_wrong_words(library: Collection) -> None:
    pk = chunk("pump.md").pk
    Document.objects.filter(source="pump.md").update(title="Quite another and longer title")
    assert MaxSim().word_matches("How heavy is the pump?", [pk]) == {pk: ()}


def test_with_vectors_switched_off_the_reranker_rests(library: Collection, settings: LazySettings) -> None:
    settings.RETRIEVAL_DEFAULT_METHOD = "lexical"
    trace = search("How heavy is the pump?", everything()).trace
    assert trace.rerank is not None
    assert trace.rerank.status is StageStatus.OFF
    assert trace.degraded == ()


def test_a_question_of_function_words_has_a_score(library: Collection) -> None:
    assert len(score("what is it", "pump.md", "dog.md")) == 2
    assert MaxSim().word_matches("???", [chunk("pump.md").pk])


def test_the_explanation_says_which_words_met(library: Collection) -> None:
    trace = search("How heavy is the pump?", everything()).trace
    first = with_word_matches(trace).candidates[0]
    assert [match.word for match in first.word_matches] == ["heavy", "pump"]
    assert trace.candidates[0].word_matches is None


def test_without_word_comparison_the_explanation_stays(library: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    fused = search("How heavy is the pump?", everything(), method=SearchMethod.RRF).trace
    assert with_word_matches(fused) is fused
    trace = search("How heavy is the pump?", everything()).trace
    Chunk.objects.all().delete()
    assert with_word_matches(trace).candidates[0].word_matches == ()

    class Plain:
        name, dimension, max_tokens = "plain", 3, 10

    monkeypatch.setattr(conf, "embedder", Plain)
    assert "no token vectors" in with_word_matches(trace).rerank.note
