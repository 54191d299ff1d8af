"""BM25 over PostgreSQL's text search.

The GIN index on the search vector finds the passages that hold a lexeme of the question; the inner product of their
stored term weights with the question's inverse document frequencies is BM25, exactly.

Source: Robertson, Walker, Jones, Hancock-Beaulieu, Gatford, "Okapi at TREC-3", 1994.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from django.db import connection
from django.db.models import QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Least
from pgvector.django import MaxInnerProduct

from retrieval.access import restrict
from retrieval.lexical.pruning import ROUNDING, candidates, rarest
from retrieval.lexical.query import LexicalQuery, build_queries, sparse
from retrieval.lexical.tsquery import MatchesTsQuery, all_of
from retrieval.models import Chunk
from retrieval.ranking.plans import SearchPlan
from retrieval.resilience.timeouts import statement_timeout
from retrieval.types import RankedChunk, Ranking, Retriever, SearchFilters

# Passages that the first look at the index reads, about; each further one that finds too few reads so many times more.
FIRST_LOOK = 2000
WIDER_LOOK = 8


class Bm25Ranker:
    """The lexical retriever of one search."""

    retriever = Retriever.LEXICAL

    def __init__(self, question: str, filters: SearchFilters, plan: SearchPlan) -> None:
        self._question = question
        self._filters = filters
        self._plan = plan

    def rank(self, depth: int) -> Ranking:
        """The best ``depth`` passages by BM25, with the lexemes each shares with the question, or with what was
        probably meant by words that the documents lack.

        Empty when the question holds no lexeme the documents know. Raises: RetrieverFailed.
        """
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds):
            _keep_to_the_index()
            rows = [row for query in self._queries for row in _best(query, self._filters, depth)]
            rows.sort(key=lambda row: (-row[1], row[0]))
            rows = rows[:depth]
            return Ranking(
                retriever=self.retriever,
                chunks=tuple(RankedChunk(pk, place, score) for place, (pk, score) in enumerate(rows, start=1)),
                matched_terms=matched_lexemes(self._queries, [pk for pk, _ in rows]),
                expansions=expanded_terms(self._queries),
            )

    def score(self, chunk_ids: Sequence[int]) -> dict[int, float]:
        """BM25 of the passages given, matching or not; 0 for one that shares nothing. Raises: RetrieverFailed."""
        with statement_timeout(self.retriever, self._plan.retriever_timeout_seconds):
            scores = dict.fromkeys(chunk_ids, 0.0)
            for query in self._queries:
                scores.update(_scored(Chunk.objects.filter(pk__in=chunk_ids, collection__in=query.collections), query))
            return scores

    @cached_property
    def _queries(self) -> list[LexicalQuery]:
        tuned = self._plan.settings
        return build_queries(
            self._question,
            self._filters.collections,
            readers=self._filters.readers,
            fuzzy=tuned.fuzzy,
            compounds=tuned.compounds,
        )


def _keep_to_the_index() -> None:
    """Have the GIN index find the passages, also when a question's words stand in half of them.

    The planner would read the whole table then, not knowing that the search vectors of its rows lie outside of them:
    that took ten times as long.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('enable_seqscan', 'off', true)")


def _best(query: LexicalQuery, filters: SearchFilters, depth: int) -> list[tuple[int, float]]:
    """Ids and scores of the best passages: of those with rare terms, then of all that may still be among them."""
    chunks = restrict(Chunk.objects.filter(collection__in=query.collections), filters)

    def best(notation: str) -> list[tuple[int, float]]:
        matching = chunks.filter(MatchesTsQuery("search_vector", all_of([notation, query.constraint])))
        return _scored(matching, query, depth)

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


def _scored(chunks: QuerySet[Chunk], query: LexicalQuery, depth: int | None = None) -> list[tuple[int, float]]:
    """Ids and scores, best first."""
    distance: Combinable = MaxInnerProduct("bm25", query.weights)
    for alternatives in query.alternatives:
        # Inner products are negative here: the least is the best.
        products = [MaxInnerProduct("bm25", weights) for weights in alternatives]
        distance = distance + (Least(*products) if len(products) > 1 else products[0])
    # The distance itself is selected, because what is made of it in SQL would be computed a second time for each row.
    rows = chunks.annotate(distance=distance).order_by("distance", "pk").values_list("pk", "distance")
    return [(pk, 0.0 - distance) for pk, distance in rows[:depth]]


def matched_lexemes(queries: Sequence[LexicalQuery], chunk_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The question's lexemes in each passage, expansions included, the most telling first.

    They are told by their term weights, which stand in the row, as those that score; the search vector may be outside.
    """
    matched: dict[int, tuple[str, ...]] = {}
    if not chunk_ids:
        return matched
    for query in queries:
        worth = query.worth
        lexemes = sorted(worth, key=lambda lexeme: (-worth[lexeme], lexeme))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, ARRAY(SELECT place FROM unnest(%s::sparsevec[]) WITH ORDINALITY AS term(weights, place) "
                "WHERE bm25 <#> weights < 0 ORDER BY place) "
                "FROM retrieval_chunk WHERE id = ANY(%s) AND collection_id = ANY(%s)",
                [[sparse({lexeme: 1.0}).to_text() for lexeme in lexemes], list(chunk_ids), list(query.collections)],
            )
            for pk, places in cursor.fetchall():
                matched[pk] = tuple(lexemes[place - 1] for place in places)
    return matched


def expanded_terms(queries: Sequence[LexicalQuery]) -> dict[str, tuple[str, ...]]:
    """For each word that the documents lack, the lexemes that stood in for it, nearest first."""
    expanded: dict[str, tuple[str, ...]] = {}
    for query in queries:
        for typed, expansions in query.expansions.items():
            lexemes = [*expanded.get(typed, ()), *(expansion.lexeme for expansion in expansions)]
            expanded[typed] = tuple(dict.fromkeys(lexemes))
    return expanded
