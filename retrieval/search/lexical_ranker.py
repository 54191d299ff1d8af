"""BM25 over PostgreSQL's text search: the ranking, its scores, and what the words of a question match."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connection

from retrieval.infrastructure.database import fetch, statement_timeout
from retrieval.models import Chunk
from retrieval.protocols import Ranker
from retrieval.rights import document_condition, restrict
from retrieval.search.lexical_query import ROUNDING, LexicalQuery, build_queries, candidates, rarest
from retrieval.search.plans import SearchPlan
from retrieval.search.tsquery import MatchesTsQuery, all_of
from retrieval.text.terms import expand_identifiers, lexeme_dimension
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters, StoredChunk

if TYPE_CHECKING:
    from retrieval.types import Vectors

# What the words of a question match: how many passages, and where in their text.
#
# Worked out when somebody looks at a search, never while one runs.

Span = tuple[int, int]

# A word with what joins it to the next one, so that codes, paths and versions are looked at as a whole.
_WORD = re.compile(r"\w+(?:[.\-/\\:@#+>'’]{1,3}\w+)*[+#]{0,2}")


def count_matches(query: str, filters: SearchFilters, *, fuzzy: bool = True, timeout_seconds: float = 2.0) -> int:
    """How many passages the lexical retriever could have ranked: those that hold a telling word and what must occur.

    0 when the documents know none of the words. Raises: InvalidQuery, and RetrieverFailed when the count takes too
    long.
    """
    with statement_timeout(Retriever.LEXICAL, timeout_seconds):
        return sum(
            restrict(Chunk.objects.filter(collection__in=one.collections), filters)
            .filter(MatchesTsQuery("search_vector", one.tsquery))
            .count()
            for one in build_queries(query, filters.collections, readers=filters.readers, fuzzy=fuzzy)
        )


def matched_spans(texts: Mapping[int, str], terms: Mapping[int, Sequence[str]]) -> dict[int, tuple[Span, ...]]:
    """For each passage the places ``[start, end)`` of the words that come down to one of its lexemes in ``terms``.

    ``texts`` are the passages' contents by chunk id. Words are reduced as they are for the index, in the language of
    the passage's collection. A passage that is gone, or without terms, has no places.
    """
    wanted = {pk: frozenset(terms[pk]) for pk in texts if terms.get(pk)}
    if not wanted:
        return {}
    configuration_of = dict(
        Chunk.objects.filter(pk__in=wanted).values_list("pk", "collection__text_search_configuration")
    )
    words: dict[str, set[str]] = defaultdict(set)
    for pk, configuration in configuration_of.items():
        words[configuration].update(_WORD.findall(texts[pk]))
    lexemes = {configuration: _lexemes(sorted(found), configuration) for configuration, found in words.items()}
    return {
        pk: tuple(
            match.span()
            for match in _WORD.finditer(texts[pk])
            if not wanted[pk].isdisjoint(lexemes[configuration][match.group()])
        )
        for pk, configuration in configuration_of.items()
    }


def _lexemes(words: Sequence[str], configuration: str) -> dict[str, list[str]]:
    """What each word comes down to in one text-search configuration; nothing for a stop word."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT word, tsvector_to_array(to_tsvector(%s::regconfig, spelt)) "
            "FROM unnest(%s::text[], %s::text[]) AS each(word, spelt)",
            [configuration, list(words), [expand_identifiers(word) for word in words]],
        )
        return dict(cursor.fetchall())


# A `sparsevec` as PostgreSQL sends it: width, number of terms and an unused word, then places from 0, then weights.
_HEADER_BYTES = 12
# Passages that the first look at the index reads, about; each further one that finds too few reads so many times more.
FIRST_LOOK = 2000
WIDER_LOOK = 8
# The GIN index is to find the passages, also when a question's words stand in half of them: the planner would read the
# whole table then, not knowing that the search vectors of its rows lie outside of them, which took ten times as long.
# And it plans for the words of each question: the number of rows that match differs by a thousand times.
PLANNING = {"enable_seqscan": "off", "plan_cache_mode": "force_custom_plan"}


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


class Bm25Ranker(Ranker):
    """The lexical retriever of one search."""

    retriever = Retriever.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan
        self._last_read: tuple[Mapping[int, StoredChunk], list[Held]] | None = None

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` passages by BM25, with what was probably meant by words that the documents lack.

        Empty when the question holds no lexeme the documents know. Raises: RetrieverFailed.
        """
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds, PLANNING):
            rows = [row for query in self._queries for row in _best(query, self._filters, depth)]
        rows.sort(key=lambda row: (-row[1], row[0]))
        return Ranking(
            retriever=self.retriever,
            chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(rows[:depth], start=1)),
            expansions=expanded_terms(self._queries),
        )

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """As :class:`Ranker`; 0 for a passage that shares nothing with the question."""
        return bm25(self._queries, self._read(stored), stored)

    def matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        """As :class:`Ranker`."""
        return matched_lexemes(self._read(stored))

    def word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """As :class:`Ranker`."""
        return word_shares(self._queries, self._read(stored))

    def _read(self, stored: Mapping[int, StoredChunk]) -> list[Held]:
        """Kept for the second who asks: scores and terms are told of the same passages."""
        if self._last_read is None or self._last_read[0] is not stored:
            self._last_read = stored, [read_held(query, stored) for query in self._queries]
        return self._last_read[1]

    @cached_property
    def _queries(self) -> list[LexicalQuery]:
        tuned = self._plan.settings
        return build_queries(
            self._question,
            self._filters.collections,
            readers=self._filters.readers,
            fuzzy=tuned.fuzzy,
        )


def _best(query: LexicalQuery, filters: SearchFilters, depth: int) -> list[tuple[int, float]]:
    """Ids and scores of the best passages: of those with rare terms, then of all that may still be among them."""
    try:
        passing, passing_values = document_condition(filters)
    except EmptyResultSet:
        return []
    products, weights = _inner_products(query)

    def best(notation: str) -> list[tuple[int, float]]:
        rows = fetch(
            f"SELECT id, {products} AS distance FROM retrieval_chunk "
            f"WHERE collection_id = ANY(%s::bigint[]) AND search_vector @@ %s::tsquery{passing} "
            f"ORDER BY distance, id LIMIT {depth:d}",
            [*weights, list(query.collections), all_of([notation, query.constraint]), *passing_values],
        )
        # Inner products are negative here: the least is the best.
        return [(pk, 0.0 - distance) for pk, distance in rows]

    terms = query.terms
    selective = sum(not term.common for term in terms)
    if not selective:
        return []
    passages, looked_at = FIRST_LOOK, 0
    while True:
        chosen = rarest(terms, passages)
        passages *= WIDER_LOOK
        if len(chosen) == looked_at:
            continue
        looked_at = len(chosen)
        rows = best(" | ".join(term.notation for term in chosen))
        if looked_at == selective:
            return rows
        if len(rows) == depth:
            threshold = rows[-1][1]
            others = sum(term.bound for term in terms if term not in chosen)
            return rows if others < threshold * (1 - ROUNDING) else best(candidates(terms, threshold))


def _inner_products(query: LexicalQuery) -> tuple[str, list[str]]:
    """The negative score of a row of chunks in SQL, and its parameters."""
    product = "(bm25 <#> %s::sparsevec)"
    parts, parameters = [product], [query.weights.to_text()]
    for alternatives in query.alternatives:
        parts.append(f"least({', '.join([product] * len(alternatives))})")
        parameters += [weights.to_text() for weights in alternatives]
    return " + ".join(parts), parameters


def expanded_terms(queries: Sequence[LexicalQuery]) -> dict[str, tuple[str, ...]]:
    """For each word that the documents lack, the lexemes that stood in for it, nearest first."""
    expanded: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for typed, expansions in query.expansions.items():
            lexemes = [*expanded.get(typed, ()), *(expansion.lexeme for expansion in expansions)]
            expanded[typed] = tuple(dict.fromkeys(lexemes))
    return expanded
