"""BM25 of passages whose term weights have been read: no look at the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval.text.terms import lexeme_dimension

if TYPE_CHECKING:
    from retrieval.lexical.query import LexicalQuery
    from retrieval.types import StoredChunk, Vectors

# A `sparsevec` as PostgreSQL sends it: width, number of terms and an unused word, then places from 0, then weights.
_HEADER_BYTES = 12


@dataclass(frozen=True, slots=True)
class Held:
    """What passages of a query's collections hold of it: its ``lexemes``, the most telling first, and the ``weights``
    of each in each of the passages ``ids``, shape (passages, lexemes)."""

    ids: list[int]
    lexemes: list[str]
    weights: Vectors


def bm25(queries: Sequence[LexicalQuery], read: Sequence[Held], stored: Mapping[int, StoredChunk]) -> dict[int, float]:
    """The scores of the passages, matching or not; 0 for one that shares nothing. As the database computes them.

    ``read`` is what they hold of each query.
    """
    scores = dict.fromkeys((pk for pk, chunk in stored.items() if chunk.term_weights is not None), 0.0)
    for query, each in zip(queries, read, strict=True):
        ids, lexemes, held = each.ids, each.lexemes, each.weights
        if not ids:
            continue
        place = {lexeme: number for number, lexeme in enumerate(lexemes)}
        total = np.zeros(len(ids), np.float64)
        for lexeme, weight in query.idf.items():
            total += weight * held[:, place[lexeme]]
        for expansions in query.expansions.values():
            total += np.max([near.weight * held[:, place[near.lexeme]] for near in expansions], axis=0)
        scores.update(zip(ids, total.tolist(), strict=True))
    return scores


def word_shares(queries: Sequence[LexicalQuery], read: Sequence[Held]) -> dict[int, float]:
    """The share of the question's words that each passage holds, from 0 to 1, each counting by its inverse document
    frequency: words that the documents lack count most, and what stands in for one counts by its weight."""
    shares: dict[int, float] = {}
    for query, each in zip(queries, read, strict=True):
        place = {lexeme: number for number, lexeme in enumerate(each.lexemes)}
        total = query.unknown * query.unknown_weight
        held = np.zeros(len(each.ids), np.float64)
        for lexeme, weight in query.idf.items():
            total += weight
            held += weight * (each.weights[:, place[lexeme]] > 0)
        for expansions in query.expansions.values():
            total += query.unknown_weight
            held += np.max([near.weight * (each.weights[:, place[near.lexeme]] > 0) for near in expansions], axis=0)
        if total:
            shares.update(zip(each.ids, np.minimum(1.0, held / total).tolist(), strict=True))
    return shares


def matched_lexemes(read: Sequence[Held]) -> dict[int, tuple[str, ...]]:
    """The question's lexemes in each passage, expansions included, the most telling first."""
    return {
        pk: tuple(each.lexemes[place] for place in np.flatnonzero(weights > 0))
        for each in read
        for pk, weights in zip(each.ids, each.weights, strict=True)
    }


def read_held(query: LexicalQuery, stored: Mapping[int, StoredChunk]) -> Held:
    """Of the passages whose term weights were read."""
    worth = query.worth
    lexemes = sorted(worth, key=lambda lexeme: (-worth[lexeme], lexeme))
    ids = [
        pk
        for pk, chunk in stored.items()
        if chunk.term_weights is not None and chunk.collection_id in query.collections
    ]
    held = np.zeros((len(ids), len(lexemes)), np.float32)
    if not ids or not lexemes:
        return Held(ids, lexemes, held)
    sent = [stored[pk].term_weights or b"" for pk in ids]
    lengths = [(len(each) - _HEADER_BYTES) // 8 for each in sent]
    places = np.concatenate(
        [np.frombuffer(each, ">i4", length, _HEADER_BYTES) for each, length in zip(sent, lengths, strict=True)]
    )
    weights = np.concatenate(
        [
            np.frombuffer(each, ">f4", length, _HEADER_BYTES + 4 * length)
            for each, length in zip(sent, lengths, strict=True)
        ]
    )
    rows = np.repeat(np.arange(len(ids)), lengths)
    for column, lexeme in enumerate(lexemes):
        found = np.flatnonzero(places == lexeme_dimension(lexeme) - 1)
        held[rows[found], column] = weights[found]
    return Held(ids, lexemes, held)
