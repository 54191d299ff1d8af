"""What a marker is taken to stand for."""

from __future__ import annotations

import pytest

from chat.answering import verify
from chat.types import VerifiedCitation
from retrieval import conf
from tests.unit.chat.test_evidence import source

CONTENT = """Before the work:

- Switch the pump off.
- Close both valves.
- Let it cool.

The working pressure is 10 bar. The test pressure is
1.5 times the working pressure.

It weighs 3450 grams.
"""


def verified(text: str) -> list[tuple[int, str]]:
    citations = verify(text, [source(CONTENT), source("Nothing of use is said here.", marker=2)])
    for citation in citations:
        if citation.marker == 1:
            assert citation.quote == CONTENT[citation.start - 100 : citation.end - 100]
    return [(citation.marker, citation.quote) for citation in citations]


def test_a_sentence_over_two_lines_is_quoted_whole() -> None:
    text = "The working pressure is 10 bar. The test pressure is\n1.5 times the working pressure. [1]"
    assert verified(text) == [(1, text.removesuffix(" [1]"))]


def test_a_list_with_one_marker_is_quoted_whole() -> None:
    text = "Before the work:\n\n- Switch the pump off.\n- Close both valves.\n- Let it cool. [1]"
    assert verified(text) == [(1, text.removesuffix(" [1]"))]


def test_other_words_are_traced_to_what_they_come_closest_to() -> None:
    (citation,) = verify("The pump has a weight of 3450 grams [1].", [source(CONTENT)])
    assert citation.quote == "It weighs 3450 grams."
    assert citation.support is not None
    assert 0.3 < citation.support < 1.0


def test_every_mention_has_its_citation_in_order() -> None:
    assert verified("It weighs 3450 grams. [1] Close both valves. [1] It weighs 3450 grams. [1]") == [
        (1, "It weighs 3450 grams."),
        (1, "Close both valves."),
        (1, "It weighs 3450 grams."),
    ]


def test_an_embedder_that_is_away_does_not_end_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrieval.exceptions import EmbeddingFailed

    class Away:
        def embed_documents(self, texts: list[str]) -> None:
            raise EmbeddingFailed("The embedding server does not answer.")

    monkeypatch.setattr(conf, "embedder", Away)
    citations: tuple[VerifiedCitation, ...] = verify("The pump weighs 3450 grams [1].", [source(CONTENT)])
    assert citations[0].quote == "It weighs 3450 grams."
