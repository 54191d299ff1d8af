"""What the embedder is asked while somebody waits: the question, once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from retrieval import conf
from retrieval.dense.encoding import forget_queries
from retrieval.models import Collection, Document
from retrieval.search import pipeline
from retrieval.types import SearchFilters

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "How much does the pump weigh?"


def test_a_question_is_encoded_once_while_its_words_are_looked_up(
    collection: Collection, ingest: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(collection, "manual.md", "# Manual\n\nThe pump weighs 3450 grams. It is made of cast iron.\n")
    embedder = conf.embedder()
    embed, begun, asked, waited = embedder.embed_query, threading.Event(), [], []

    def embed_query(text: str) -> np.ndarray:
        asked.append(text)
        begun.set()
        return embed(text)

    monkeypatch.setattr(embedder, "embed_query", embed_query)
    monkeypatch.setattr(pipeline, "learn", lambda *_: waited.append(begun.wait(20)))
    forget_queries()
    hits = pipeline.search(QUESTION, SearchFilters(collections=(collection.pk,))).hits
    assert (hits[0].passage.document_title, waited, len(asked)) == ("Manual", [True], 1)
