"""What the embedder is asked while somebody waits: the question, and a few sentences of the documents."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

import pytest
from asgiref.sync import async_to_sync

from chat.grounding.evidence import relevance, weighing
from chat.types import Completed
from evaluation.runs.answering import Reply, reply_to
from retrieval import conf
from retrieval.dense.encoding import forget_excerpts, forget_queries
from retrieval.dense.passage_tokens import forget_passages
from retrieval.dense.token_vectors import TokenEncoding
from retrieval.models import ChunkEmbedding, Collection, Document
from retrieval.observability.metrics import EXCERPT_ENCODINGS
from retrieval.protocols import TokenEmbedder
from retrieval.search import pipeline
from retrieval.types import SearchFilters

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "How much does the pump weigh?"


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were put through the model."""
    embedder = conf.embedder()
    assert isinstance(embedder, TokenEmbedder)
    texts: list[str] = []

    def spying(
        through: Callable[[Sequence[str]], list[TokenEncoding]],
    ) -> Callable[[Sequence[str]], list[TokenEncoding]]:
        def encode(asked: Sequence[str]) -> list[TokenEncoding]:
            texts.extend(asked)
            return through(asked)

        return encode

    monkeypatch.setattr(embedder, "encode", spying(embedder.encode))
    forget_queries()
    forget_passages()
    forget_excerpts()
    return texts


@pytest.fixture
def manual(collection: Collection, ingest: Callable[..., Document]) -> Collection:
    ingest(
        collection,
        "manual.md",
        "# Manual\n\nThe pump weighs 3450 grams. It is made of cast iron.\n\nThe warranty lasts two years.\n",
    )
    return collection


def ask(collection: Collection, question: str = QUESTION) -> Reply:
    reply = async_to_sync(reply_to)(question, SearchFilters(collections=(collection.pk,)))
    assert isinstance(reply.end, Completed)
    assert "3450 grams" in reply.end.text
    assert "[1]" in reply.end.text
    return reply


def test_besides_the_question_a_few_sentences_are_encoded_and_no_passage(
    manual: Collection, ingest: Callable[..., Document], encoded: list[str]
) -> None:
    ingest(
        manual, "sieves.md", "".join(f"# Sieve {number}\n\nIts mesh is {number} wide.\n\n" for number in range(2, 40))
    )
    encoded.clear()
    ask(manual)
    sentences = [text for text in encoded if text != QUESTION]
    # What is asked is plainly answered: only the sentences that may come first are read alone.
    assert len(sentences) <= relevance.MOST_NEARLY_AS_GOOD
    assert max(map(len, encoded), default=0) < 80


def test_a_sentence_is_encoded_for_the_first_question_that_needs_it(
    manual: Collection, encoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relevance, "NEARLY_AS_GOOD", 1.0)
    counted = EXCERPT_ENCODINGS.labels(source="memory")._value
    encoded.clear()
    ask(manual)
    assert len(encoded) == relevance.MOST_NEARLY_AS_GOOD
    encoded.clear()
    before = counted.get()
    other = "What does the pump weigh?"
    remembered = ask(manual, other).searched
    assert (encoded, counted.get() - before) == ([], relevance.MOST_NEARLY_AS_GOOD)
    # An answer does not depend on what was asked before.
    forget_excerpts()
    weighing._weigh_with_vectors.cache_clear()
    anew = ask(manual, other).searched
    assert encoded
    assert anew is not None
    assert remembered is not None
    assert anew.confidence == remembered.confidence


def test_a_question_is_encoded_once_while_its_words_are_looked_up(
    manual: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = conf.embedder()
    assert isinstance(embedder, TokenEmbedder)
    encode, begun, asked, waited = embedder.encode_query, threading.Event(), [], []

    def encode_query(text: str) -> TokenEncoding:
        asked.append(text)
        begun.set()
        return encode(text)

    monkeypatch.setattr(embedder, "encode_query", encode_query)
    monkeypatch.setattr(pipeline, "learn", lambda *_: waited.append(begun.wait(20)))
    forget_queries()
    hits = pipeline.search(QUESTION, SearchFilters(collections=(manual.pk,))).hits
    assert (hits[0].passage.document_title, waited, len(asked)) == ("Manual", [True], 1)


def test_passages_without_token_vectors_are_encoded_and_it_is_said(
    manual: Collection, encoded: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    confidence = ask(manual).searched
    ChunkEmbedding.objects.update(token_signs=None)
    forget_passages()
    weighing._weigh_with_vectors.cache_clear()
    encoded.clear()
    with caplog.at_level(logging.WARNING, "retrieval.dense.passage_tokens"):
        again = ask(manual).searched
    assert any("3450 grams" in text for text in encoded)
    assert "manage.py reembed" in caplog.text
    assert confidence is not None
    assert again is not None
    assert again.confidence == pytest.approx(confidence.confidence, abs=0.02)
