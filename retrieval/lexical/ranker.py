"""BM25 over PostgreSQL's text search.

The GIN index on the search vector finds the passages that hold a lexeme of the question; the inner product of their
stored term weights with the question's inverse document frequencies is BM25, exactly.

Source: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford, "Okapi at TREC-3", 1994.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from django.core.exceptions import EmptyResultSet

from retrieval.database.statements import fetch
from retrieval.lexical import scoring
from retrieval.lexical.pruning import ROUNDING, candidates, rarest
from retrieval.lexical.query import LexicalQuery, build_queries
from retrieval.lexical.tsquery import all_of
from retrieval.protocols import Ranker
from retrieval.ranking.plans import SearchPlan
from retrieval.resilience.timeouts import statement_timeout
from retrieval.rights.access import document_condition
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters, StoredChunk

# Passages that the first look at the index reads, about; each further one that finds too few reads so many times more.
FIRST_LOOK = 2000
WIDER_LOOK = 8
# The GIN index is to find the passages, also when a question's words stand in half of them: the planner would read the
# whole table then, not knowing that the search vectors of its rows lie outside of them, which took ten times as long.
# And it plans for the words of each question: the number of rows that match differs by a thousand times.
PLANNING = {"enable_seqscan": "off", "plan_cache_mode": "force_custom_plan"}


class Bm25Ranker(Ranker):
    """The lexical retriever of one search."""

    retriever = Retriever.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan
        self._last_read: tuple[Mapping[int, StoredChunk], list[scoring.Held]] | None = None

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
        return scoring.bm25(self._queries, self._read(stored), stored)

    def matched_terms(self, stored: Mapping[int, StoredChunk]) -> dict[int, tuple[str, ...]]:
        """As :class:`Ranker`."""
        return scoring.matched_lexemes(self._read(stored))

    def word_shares(self, stored: Mapping[int, StoredChunk]) -> dict[int, float]:
        """As :class:`Ranker`."""
        return scoring.word_shares(self._queries, self._read(stored))

    def _read(self, stored: Mapping[int, StoredChunk]) -> list[scoring.Held]:
        """Kept for the second who asks: scores and terms are told of the same passages."""
        if self._last_read is None or self._last_read[0] is not stored:
            self._last_read = stored, [scoring.read_held(query, stored) for query in self._queries]
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
