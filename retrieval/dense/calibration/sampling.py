"""An embedder's cosines over pairs of texts: near ones, of one passage, and ones that have nothing in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.dense.calibration.scales import Compared, Sample
from retrieval.dense.passage_tokens import place_tokens
from retrieval.dense.token_vectors import PassageTokens, TokenEncoding, packed
from retrieval.protocols import TokenEmbedder

if TYPE_CHECKING:
    from retrieval.dense.calibration.material import FittingPassage
    from retrieval.protocols import TextEmbedder
    from retrieval.types import Vectors

Report = Callable[[int, int], None]

BATCH = 16
# How far off in the list the passages are that a text is compared with, beside its own.
OTHERS = (1, 7)
# A sentence is compared with itself too, so that the upper end of each scale is seen.
SELF_EVERY = 4


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """``question`` and ``sentences`` as they were encoded alone, and the signs of the passage's ``tokens``; vectors
    alone of an embedder without token vectors."""

    question: Vectors
    sentences: tuple[Vectors, ...]
    question_tokens: TokenEncoding | None = None
    sentence_tokens: tuple[TokenEncoding, ...] = ()
    tokens: PassageTokens | None = None
    heading: str = ""
    places: tuple[tuple[int, int], ...] = ()


def encode_material(passages: Sequence[FittingPassage], embedder: TextEmbedder, report: Report) -> list[EncodedPassage]:
    """Each passage encoded as it would be for an answer. Raises: EmbeddingFailed."""
    encoded: list[EncodedPassage] = []
    for first in range(0, len(passages), BATCH):
        batch = passages[first : first + BATCH]
        encoded += _with_tokens(batch, embedder) if isinstance(embedder, TokenEmbedder) else _plain(batch, embedder)
        report(len(encoded), len(passages))
    return encoded


def _with_tokens(batch: Sequence[FittingPassage], embedder: TokenEmbedder) -> Iterator[EncodedPassage]:
    texts = embedder.encode([each.text for each in batch])
    sentences = iter(embedder.encode([text for each in batch for text in each.sentence_texts()]))
    for passage, text in zip(batch, texts, strict=True):
        question = embedder.encode_query(passage.question)
        alone = tuple(next(sentences) for _ in passage.sentences)
        yield EncodedPassage(
            question=question.vector,
            sentences=tuple(each.vector for each in alone),
            question_tokens=question,
            sentence_tokens=alone,
            tokens=place_tokens(passage.text, passage.own, embedder, packed(text)),
            heading=passage.heading,
            places=passage.sentences,
        )


def _plain(batch: Sequence[FittingPassage], embedder: TextEmbedder) -> Iterator[EncodedPassage]:
    vectors = iter(embedder.embed_documents([text for each in batch for text in each.sentence_texts()]))
    for passage in batch:
        yield EncodedPassage(embedder.embed_query(passage.question), tuple(next(vectors) for _ in passage.sentences))


def sample(encoded: Sequence[EncodedPassage]) -> Sample:
    """The cosines of each question and each sentence with sentences of its own passage, and of others in the list."""
    found: dict[Compared, list[Vectors]] = {each: [] for each in Compared}
    for number, passage in enumerate(encoded):
        for other in (passage, *(encoded[(number + step) % len(encoded)] for step in OTHERS)):
            for place, vector in enumerate(other.sentences):
                found[Compared.QUESTION_TEXT].append(np.atleast_1d(passage.question @ vector))
                _compare_tokens(passage.question_tokens, other, place, found, Compared.QUESTION_TOKENS)
            for place, vector in enumerate(passage.sentences):
                target = (place + 1) % len(other.sentences)
                if other is passage and number % SELF_EVERY == 0:
                    target = place
                elif other is passage and len(passage.sentences) == 1:
                    continue
                found[Compared.TEXTS].append(np.atleast_1d(vector @ other.sentences[target]))
                if passage.sentence_tokens:
                    _compare_tokens(passage.sentence_tokens[place], other, target, found, Compared.TEXT_TOKENS)
    return {
        each: np.concatenate(cosines).astype(np.float32) if cosines else np.zeros(0, np.float32)
        for each, cosines in found.items()
    }


def _compare_tokens(
    asked: TokenEncoding | None, other: EncodedPassage, place: int, found: dict[Compared, list[Vectors]], kind: Compared
) -> None:
    """Adds the cosines of the telling tokens of ``asked`` with the nearest of a sentence, and with the nearest signs;
    of a question also that of its vector with the mean of the signs."""
    if asked is None or other.tokens is None:
        return
    telling = asked.token_vectors[asked.tokens.telling()]
    exact, signs = other.sentence_tokens[place].token_vectors, _signs(other, other.tokens, place)
    is_question = kind is Compared.QUESTION_TOKENS
    if len(telling) and len(exact):
        found[kind].append((telling @ exact.T).max(axis=1))
    if len(telling) and len(signs):
        found[Compared.QUESTION_SIGNS if is_question else Compared.TEXT_SIGNS].append((telling @ signs.T).max(axis=1))
    if len(signs) and is_question:
        mean = signs.sum(axis=0)
        found[Compared.QUESTION_MEAN].append(
            np.atleast_1d(asked.vector @ mean / max(float(np.linalg.norm(mean)), 1e-6))
        )


def _signs(passage: EncodedPassage, tokens: PassageTokens, place: int) -> Vectors:
    """The signs of a sentence's tokens and of its heading's, as unit vectors."""
    rows = [*tokens.within(*passage.places[place]), *tokens.naming(passage.heading)]
    bits = np.unpackbits(tokens.signs[rows], axis=1).astype(np.float32)
    signed: Vectors = (bits * 2 - 1) / np.float32(np.sqrt(max(1, bits.shape[1])))
    return signed


def separation(encoded: Sequence[EncodedPassage]) -> float:
    """How well the cosines tell the sentences of a question's own passage from those of another: the probability that
    the nearest one of its own is nearer than the nearest of another (the area under the ROC curve)."""
    own = [max(float(each.question @ vector) for vector in each.sentences) for each in encoded]
    others = []
    for number, each in enumerate(encoded):
        other = encoded[(number + OTHERS[0]) % len(encoded)]
        others.append(max(float(each.question @ vector) for vector in other.sentences))
    ranks = np.sort(np.array(others))
    below = np.searchsorted(ranks, own, "left") + np.searchsorted(ranks, own, "right")
    return float(below.mean() / 2 / len(ranks))
