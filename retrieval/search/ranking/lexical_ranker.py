from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db.models import Q

from core.database import fetch_rows
from retrieval.index.term_statistics import build_configuration_condition, read_lexemes
from retrieval.models import Chunk
from retrieval.protocols import Ranker
from retrieval.rights.search_filters import build_document_condition, filter_by_document
from retrieval.search.ranking.lexical_query import (
    ROUNDING,
    LexicalQuery,
    build_candidate_query,
    build_queries,
    choose_rarest,
)
from retrieval.search.ranking.plans import SearchPlan
from retrieval.search.ranking.statement_timeout import statement_timeout
from retrieval.search.ranking.tsquery import MatchesTsQuery, join_with_and
from retrieval.text.terms import SYMBOL, compute_lexeme_dimension, expand_identifiers
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters, StoredChunk

if TYPE_CHECKING:
    from retrieval.types import Vectors


Span = tuple[int, int]

# Hyphens and similar characters join a word, so that codes and paths are matched whole.
_WORD = re.compile(rf"\w+(?:[.\-/\\:@#+>'’]{{1,3}}\w+)*[+#]{{0,2}}|{SYMBOL.pattern}")


def count_matches(query: str, filters: SearchFilters, *, timeout_seconds: float = 2.0) -> int:
    """Return how many passages the keyword search would find.

    Raises: InvalidQuery; RetrieverFailed after ``timeout_seconds``.
    """
    with statement_timeout(Retriever.LEXICAL, timeout_seconds):
        return sum(
            filter_by_document(Chunk.objects.filter(collection__in=one.collections), filters)
            .filter(~Q(collection__in=one.mixed) | Q(configuration=one.configuration))
            .filter(MatchesTsQuery("search_vector", one.tsquery))
            .count()
            for one in build_queries(query, filters.collections, readers=filters.readers)
        )


def find_matched_spans(texts: Mapping[int, str], terms: Mapping[int, Sequence[str]]) -> dict[int, tuple[Span, ...]]:
    """Return, by chunk id, the [start, end) offsets of the words in ``texts`` whose lexeme is in ``terms``."""
    wanted = {pk: frozenset(terms[pk]) for pk in texts if terms.get(pk)}
    if not wanted:
        return {}
    rows = Chunk.objects.filter(pk__in=wanted).values_list(
        "pk", "configuration", "collection__text_search_configuration"
    )
    configuration_of = {pk: own or common for pk, own, common in rows}
    words = {expand_identifiers(word) for pk in configuration_of for word in _WORD.findall(texts[pk])}
    lexemes = read_lexemes(sorted(words), sorted(set(configuration_of.values())))
    return {
        pk: tuple(
            match.span()
            for match in _WORD.finditer(texts[pk])
            if not wanted[pk].isdisjoint(lexemes[configuration, expand_identifiers(match.group())])
        )
        for pk, configuration in configuration_of.items()
    }


# A binary `sparsevec`: dimensions, number of terms and an unused field as 32-bit words, then the terms' indexes (from
# 0) and weights.
_HEADER_BYTES = 12
# The first query reads about FIRST_LOOK passages, each further one WIDER_LOOK times as many.
FIRST_LOOK = 2000
WIDER_LOOK = 8
# PostgreSQL's planner would scan the whole table, which takes ten times as long.
PLANNING = {"enable_seqscan": "off", "plan_cache_mode": "force_custom_plan"}


@dataclass(frozen=True, slots=True)
class LexemeWeights:
    """The BM25 weights of a query's lexemes in chunks.

    ``weights`` maps each lexeme, highest idf first, to an array with a weight for each chunk of ``ids``.
    """

    ids: list[int]
    weights: dict[str, Vectors]


def read_lexeme_weights(query: LexicalQuery, stored: Mapping[int, StoredChunk]) -> LexemeWeights:
    """Return the BM25 weights of the query's lexemes in the chunks that have its text-search configuration."""
    sent = {
        pk: chunk.term_weights
        for pk, chunk in stored.items()
        if chunk.term_weights is not None and query.can_match_chunk(chunk)
    }
    if not sent:
        return LexemeWeights([], {})
    lengths = [(len(each) - _HEADER_BYTES) // 8 for each in sent.values()]
    entries = list(zip(sent.values(), lengths, strict=True))
    places = np.concatenate([np.frombuffer(each, ">i4", length, _HEADER_BYTES) for each, length in entries])
    weights = np.concatenate(
        [np.frombuffer(each, ">f4", length, _HEADER_BYTES + 4 * length) for each, length in entries]
    )
    rows = np.repeat(np.arange(len(sent)), lengths)
    held, of_query = {}, query.lexeme_weights
    for lexeme in sorted(of_query, key=lambda lexeme: (-of_query[lexeme], lexeme)):
        found = np.flatnonzero(places == compute_lexeme_dimension(lexeme) - 1)
        held[lexeme] = np.zeros(len(sent), np.float32)
        held[lexeme][rows[found]] = weights[found]
    return LexemeWeights(list(sent), held)


class Bm25Ranker(Ranker):
    retriever = Retriever.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan
        self._last_read: tuple[Mapping[int, StoredChunk], list[tuple[LexicalQuery, LexemeWeights]]] | None = None

    def rank(self, depth: int) -> Ranking:
        """Return the ``depth`` best passages by BM25; none if no passage has a word of the question.

        Raises: RetrieverFailed.
        """
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds, PLANNING):
            rows = [row for query in self._lexical_queries for row in _find_best_chunks(query, self._filters, depth)]
        rows.sort(key=lambda row: (-row[1], row[0]))
        return Ranking(
            retriever=self.retriever,
            chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(rows[:depth], start=1)),
            expansions=collect_expansions(self._lexical_queries),
            # A word is unknown only if all configurations (languages) lack it.
            unknown_words=tuple(
                word
                for query in self._lexical_queries[:1]
                for word in query.unknown_words
                if all(word in each.unknown_words for each in self._lexical_queries)
            ),
        )

    def score(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the same BM25 scores as the database; 0 for a chunk without a word of the question."""
        scores = dict.fromkeys((pk for pk, chunk in stored.items() if chunk.term_weights is not None), 0.0)
        for query, held in self._read_query_weights(stored):
            total = np.zeros(len(held.ids), np.float64)
            for lexeme, weight in query.idf.items():
                total += weight * held.weights[lexeme]
            for expansions in query.expansions.values():
                total += np.max([near.weight * held.weights[near.lexeme] for near in expansions], axis=0)
            scores.update(zip(held.ids, total.tolist(), strict=True))
        return scores

    def compute_word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """Return the share of the question's words in each chunk, weighted by idf, from 0 to 1."""
        shares: dict[int, float] = {}
        for query, held in self._read_query_weights(stored):
            total = query.unknown * query.unknown_weight
            found = np.zeros(len(held.ids), np.float64)
            for lexeme, weight in query.idf.items():
                total += weight
                found += weight * (held.weights[lexeme] > 0)
            for expansions in query.expansions.values():
                total += query.unknown_weight
                found += np.max([near.weight * (held.weights[near.lexeme] > 0) for near in expansions], axis=0)
            if total:
                shares.update(zip(held.ids, np.minimum(1.0, found / total).tolist(), strict=True))
        return shares

    def find_matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        return {
            pk: tuple(lexeme for lexeme, weights in held.weights.items() if weights[place] > 0)
            for _, held in self._read_query_weights(stored)
            for place, pk in enumerate(held.ids)
        }

    def _read_query_weights(self, stored: Mapping[int, StoredChunk]) -> list[tuple[LexicalQuery, LexemeWeights]]:
        if self._last_read is None or self._last_read[0] is not stored:
            read = [(query, read_lexeme_weights(query, stored)) for query in self._lexical_queries]
            self._last_read = stored, [(query, held) for query, held in read if held.ids]
        return self._last_read[1]

    @cached_property
    def _lexical_queries(self) -> list[LexicalQuery]:
        tuned = self._plan.settings
        return build_queries(
            self._question,
            self._filters.collections,
            readers=self._filters.readers,
            fuzzy=tuned.fuzzy,
        )


def _find_best_chunks(query: LexicalQuery, filters: SearchFilters, depth: int) -> list[tuple[int, float]]:
    """Return ids and BM25 scores of the ``depth`` best passages, best first."""
    try:
        passing, passing_values = build_document_condition(filters)
    except EmptyResultSet:
        return []
    analysed, analysed_values = build_configuration_condition(query.configuration, query.collections)
    products, weights = _build_inner_products(query)

    def fetch_best_rows(notation: str) -> list[tuple[int, float]]:
        rows = fetch_rows(
            f"SELECT id, {products} AS distance FROM retrieval_chunk "
            f"WHERE {analysed} AND search_vector @@ %s::tsquery{passing} "
            f"ORDER BY distance, id LIMIT {depth:d}",
            [*weights, *analysed_values, join_with_and([notation, query.constraint]), *passing_values],
        )
        # The operator <#> is the negative inner product.
        return [(pk, 0.0 - distance) for pk, distance in rows]

    terms = query.terms
    selective = sum(not term.common for term in terms)
    if not selective:
        return []
    passages, looked_at = FIRST_LOOK, 0
    while True:
        chosen = choose_rarest(terms, passages)
        passages *= WIDER_LOOK
        if len(chosen) == looked_at:
            continue
        looked_at = len(chosen)
        rows = fetch_best_rows(" | ".join(term.notation for term in chosen))
        if looked_at == selective:
            return rows
        if len(rows) == depth:
            threshold = rows[-1][1]
            others = sum(term.bound for term in terms if term not in chosen)
            return (
                rows
                if others < threshold * (1 - ROUNDING)
                else fetch_best_rows(build_candidate_query(terms, threshold))
            )


def _build_inner_products(query: LexicalQuery) -> tuple[str, list[str]]:
    product = "(bm25 <#> %s::sparsevec)"
    parts, parameters = [product], [query.weights.to_text()]
    for alternatives in query.expansion_vectors:
        parts.append(f"least({', '.join([product] * len(alternatives))})")
        parameters += [weights.to_text() for weights in alternatives]
    return " + ".join(parts), parameters


def collect_expansions(queries: Sequence[LexicalQuery]) -> dict[str, tuple[str, ...]]:
    expanded: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for typed, expansions in query.expansions.items():
            lexemes = [*expanded.get(typed, ()), *(expansion.lexeme for expansion in expansions)]
            expanded[typed] = tuple(dict.fromkeys(lexemes))
    return expanded
