"""Texts to fit a calibration on: passages of the site with their questions, and a few that ship with the product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.dense.calibration.shipped import SHIPPED
from retrieval.ingest.chunking.chunker import embedding_text
from retrieval.models import Chunk
from retrieval.text.sentences import split_sentences

MOST_PASSAGES = 240
FEWEST_PASSAGES = 40
SENTENCES_OF_EACH = 3
SHORTEST_SENTENCE, LONGEST_SENTENCE = 20, 600


@dataclass(frozen=True, slots=True)
class FittingPassage:
    """A passage as it is embedded: ``text``, of which its own begins at ``own``, with the places of a few of its
    ``sentences`` in its own text, the ``heading`` above it, and a ``question`` that it answers."""

    text: str
    own: int
    heading: str
    question: str
    sentences: tuple[tuple[int, int], ...]

    def sentence_texts(self) -> list[str]:
        """The sentences as the units of an answer are encoded, with their heading."""
        own = self.text[self.own :]
        return [f"{self.heading} {own[start:end]}".strip() for start, end in self.sentences]


def load_material() -> list[FittingPassage]:
    """Passages of the site, at most MOST_PASSAGES, and those that ship with the product behind them.

    Which ones depends on what the passages say alone: the hashes of their texts are their order.
    """
    found: dict[str, FittingPassage] = {}
    chunks = Chunk.objects.prefetch_related("document").order_by("content_hash", "pk")
    wanted = chunks.only("content", "content_hash", "heading_path", "canonical_questions", "document")
    for chunk in wanted.iterator(chunk_size=200):
        if len(found) == MOST_PASSAGES:
            break
        question = next(iter(chunk.canonical_questions), "") or next(iter(reversed(chunk.heading_path)), "")
        sentences = tuple(_sentences(chunk.content))
        if question and sentences and chunk.content_hash not in found:
            text = embedding_text(chunk.document.title, chunk.heading_path, chunk.content)
            heading = next(iter(reversed(chunk.heading_path)), "")
            own = len(text) - len(chunk.content)
            found[chunk.content_hash] = FittingPassage(text, own, heading, question, sentences)
    return [*found.values(), *_shipped()]


def _shipped() -> Iterator[FittingPassage]:
    for question, heading, content in SHIPPED:
        text = f"{heading}\n{content}"
        yield FittingPassage(text, len(heading) + 1, heading, question, tuple(_sentences(content)))


def _sentences(content: str) -> Iterator[tuple[int, int]]:
    """The first sentences that say something, and are not cut off by what an embedder reads at once."""
    number = 0
    for start, end, _ in split_sentences(content, 0, len(content)):
        if number < SENTENCES_OF_EACH and SHORTEST_SENTENCE <= end - start <= LONGEST_SENTENCE:
            number += 1
            yield start, end
