"""BM25 of passages whose term weights have been read: no look at the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from retrieval.text.terms import lexeme_dimension

if TYPE_CHECKING:
    from retrieval.lexical.query import LexicalQuery
    from retrieval.types import StoredChunk, Vectors

# A `sparsevec` as PostgreSQL sends it: width, number of terms and an unused word, then places from 0, then weights.
_HEADER_BYTES = 12


def bm25(queries: Sequence[LexicalQuery], stored: Mapping[int, StoredChunk]) -> dict[int, float]:
    """The scores of the passages, matching or not; 0 for one that shares nothing. As the database computes them."""
    scores = dict.fromkeys((pk for pk, chunk in stored.items() if chunk.term_weights is not None), 0.0)
    for query in queries:
        ids, lexemes, held = _held(query, stored)
        if not ids:
            continue
        place = {lexeme: number for number, lexeme in enumerate(lexemes)}
        total = np.zeros(len(ids), np.float64)
        for lexeme, weight in query.idf.items():
            total += weight * held[:, place[lexeme]]
        for expansions in query.expansions.values():
            total += np.max([each.weight * held[:, place[each.lexeme]] for each in expansions], axis=0)
        scores.update(zip(ids, total.tolist(), strict=True))
    return scores


def matched_lexemes(queries: Sequence[LexicalQuery], stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
    """The question's lexemes in each passage, expansions included, the most telling first."""
    matched: dict[int, tuple[str, ...]] = {}
    for query in queries:
        ids, lexemes, held = _held(query, stored)
        for pk, weights in zip(ids, held, strict=True):
            matched[pk] = tuple(lexemes[place] for place in np.flatnonzero(weights > 0))
    return matched


def _held(query: LexicalQuery, stored: Mapping[int, StoredChunk]) -> tuple[list[int], list[str], Vectors]:
    """The passages of the query's collections, its lexemes, the most telling first, and the weight of each lexeme in
    each passage; shape (passages, lexemes)."""
    worth = query.worth
    lexemes = sorted(worth, key=lambda lexeme: (-worth[lexeme], lexeme))
    ids = [
        pk
        for pk, chunk in stored.items()
        if chunk.term_weights is not None and chunk.collection_id in query.collections
    ]
    held = np.zeros((len(ids), len(lexemes)), np.float32)
    if not ids or not lexemes:
        return ids, lexemes, held
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
    return ids, lexemes, held
