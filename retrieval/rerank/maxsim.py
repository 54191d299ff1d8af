"""Late interaction with the embedder's own token vectors: no second model, and no second pass over the passages.

The question was encoded for the vector retriever, and the passages when they were ingested, so that reranking is one
query and one matrix product. A word weighs as much as it tells in the collections searched; its pieces share its
weight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from django.db import DatabaseError

from retrieval import conf
from retrieval.dense.active import searched_embedder
from retrieval.dense.encoding import encode_query
from retrieval.dense.token_vectors import best_matches, unpacked, weighted_mean
from retrieval.exceptions import RerankFailed, RetrievalError
from retrieval.ingest.chunking.chunker import embedding_text
from retrieval.lexical.statistics import WORD, by_configuration, frequencies_in, lexemes_of, passages_in, words_in
from retrieval.models import Chunk
from retrieval.protocols import Reranker, TokenEmbedder
from retrieval.search.stored import load_stored
from retrieval.text.terms import inverse_document_frequency
from retrieval.types import Candidates, Retriever, WordMatch

if TYPE_CHECKING:
    import numpy.typing as npt

    from retrieval.dense.token_vectors import TokenEncoding, Tokens
    from retrieval.types import Vectors


@dataclass(frozen=True, slots=True)
class _Stored:
    """Passages that have token vectors, and the collections they are of."""

    signs: dict[int, bytes]
    collections: list[int]


class MaxSim(Reranker):
    """A `Reranker`: the mean over the question's words of the best match each finds in the passage, from -1 to 1."""

    builds_on = Retriever.VECTOR

    def score(self, query: str, candidates: Candidates, timeout_seconds: float) -> Mapping[int, float]:
        """One score for each chunk that has token vectors.

        Raises: RerankFailed when the embedder gives none, or the database does not answer.
        """
        encoding = _encoded(query)
        telling = _telling(encoding)
        try:
            stored = _stored(candidates)
            if not stored.signs or not len(telling):
                return {}
            weights = _weights(query, encoding.tokens, stored.collections)[telling]
        except DatabaseError as error:
            raise RerankFailed(f"The token vectors could not be read: {error}") from error
        matches = best_matches(encoding.token_vectors[telling], list(stored.signs.values()))
        scores = weighted_mean(matches, weights)
        return {pk: float(score) for pk, score in zip(stored.signs, scores, strict=True)}

    def word_matches(self, query: str, chunk_ids: Sequence[int]) -> dict[int, tuple[WordMatch, ...]]:
        """As :class:`Reranker`. The stored signs tell which token was the nearest; no passage is encoded again."""
        encoding = _encoded(query)
        telling = _telling(encoding)
        candidates = _stored(Candidates(chunk_ids))
        if not candidates.signs or not len(telling):
            return {}
        weights = _weights(query, encoding.tokens, candidates.collections)[telling]
        shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(telling), 1 / len(telling))
        vectors = encoding.token_vectors[telling]
        asked = [encoding.tokens.spans[index] for index in telling]
        judged = Chunk.objects.filter(pk__in=candidates.signs)
        chunks = judged.prefetch_related("document").defer("search_vector", "bm25")
        return {
            chunk.pk: tuple(
                _met(query, asked, shares, chunk, unpacked(candidates.signs[chunk.pk], vectors.shape[1]), vectors)
            )
            for chunk in chunks
            if candidates.signs[chunk.pk]
        }


def _met(
    query: str, asked: Sequence[tuple[int, int]], shares: Vectors, chunk: Chunk, passage: Vectors, question: Vectors
) -> Iterator[WordMatch]:
    """One match a word: its pieces' mean similarity, and what its best piece met."""
    text = embedding_text(chunk.document.title, chunk.heading_path, chunk.content)
    tokens = _token_embedder().tokenize(text)
    spans = [span for span, told in zip(tokens.spans, tokens.telling(), strict=True) if told]
    if len(spans) != len(passage):
        return  # the document's title was changed since: its tokens are not those that were kept
    similarities = question @ passage.T
    for word in WORD.finditer(query):
        pieces = [index for index, (start, _) in enumerate(asked) if word.start() <= start < word.end()]
        if not pieces:
            continue
        best = max(pieces, key=lambda index: similarities[index].max())
        yield WordMatch(
            word=word.group(),
            met=_word_at(text, *spans[int(similarities[best].argmax())]),
            similarity=float(np.mean([similarities[index].max() for index in pieces])),
            weight=float(sum(shares[index] for index in pieces)),
        )


def _word_at(text: str, start: int, end: int) -> str:
    """The whole word that a piece of it belongs to."""
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end]


def _token_embedder() -> TokenEmbedder:
    embedder = conf.embedder()
    if not isinstance(embedder, TokenEmbedder):
        raise RerankFailed("The configured embedder gives no token vectors: choose another reranker, or none.")
    return embedder


def _encoded(query: str) -> TokenEncoding:
    # Asked first, so that an embedder behind a network is not called for what it does not have.
    _token_embedder()
    try:
        tokens = encode_query(query).tokens
    except RetrievalError as error:
        raise RerankFailed(f"The question could not be encoded: {error}") from error
    if tokens is None:
        raise RerankFailed("The embedder was changed while it was asked.")
    return tokens


def _telling(encoding: TokenEncoding) -> npt.NDArray[np.intp]:
    """The places of the question's tokens that count: the telling ones; all, where none is."""
    telling = encoding.tokens.telling()
    return np.flatnonzero(telling) if telling.any() else np.arange(len(telling))


def _stored(candidates: Candidates) -> _Stored:
    """The token signs of the candidates that have them: the vector retriever's, the others from the database."""
    known = dict(candidates.stored)
    if missing := [pk for pk in candidates.chunk_ids if pk not in known]:
        try:
            embedder = searched_embedder()
        except RetrievalError as error:
            raise RerankFailed(str(error)) from error
        known |= load_stored(missing, embedder.pk, terms=False)
    judged = {pk: stored for pk, stored in known.items() if stored.token_signs is not None}
    return _Stored(
        signs={pk: stored.token_signs or b"" for pk, stored in sorted(judged.items())},
        collections=sorted({stored.collection_id for stored in judged.values()}),
    )


def _weights(query: str, tokens: Tokens, collections: Sequence[int]) -> Vectors:
    """Each piece's share of its word's inverse document frequency; shape (pieces,)."""
    words = list(WORD.finditer(query))
    telling = _inverse_document_frequencies(words_in(query), collections)
    weights = np.zeros(len(tokens.pieces), np.float32)
    for word in words:
        pieces = [index for index, (start, _) in enumerate(tokens.spans) if word.start() <= start < word.end()]
        if pieces:
            weights[pieces] = telling[word.group().lower()] / len(pieces)
    return weights


def _inverse_document_frequencies(words: Sequence[str], collections: Sequence[int]) -> dict[str, float]:
    """How much each word tells in these collections: 0 for a stop word, the most for one that they do not hold."""
    # The rarest of the lexemes that a word is reduced to, by the analysis of any of the collections.
    reduced = lexemes_of(words, list(by_configuration(collections)))
    frequencies = frequencies_in(collections, set().union(*reduced.values()))
    passages = passages_in(collections)
    rarest: dict[str, int] = {}
    for (_, word), lexemes in reduced.items():
        for lexeme in lexemes:
            rarest[word] = min(frequencies.get(lexeme, 0), rarest.get(word, passages))
    return {word: inverse_document_frequency(rarest[word], passages) if word in rarest else 0.0 for word in words}
