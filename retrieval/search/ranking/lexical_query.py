from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.db import connection
from pgvector import SparseVector

from retrieval.index.term_statistics import (
    build_configuration_condition,
    count_passages_in,
    group_by_configuration,
    list_multilingual_collections,
    read_lexemes,
)
from retrieval.search.ranking.tsquery import join_with_and, join_with_or, limit_to_one_field, quote_lexeme
from retrieval.search.understanding.syntax import ParsedQuestion, parse_question
from retrieval.search.understanding.vocabulary import (
    TermExpansion,
    find_similar_lexemes,
    find_unknown_terms,
    read_document_frequencies,
)
from retrieval.text.terms import (
    DIMENSIONS,
    compute_inverse_document_frequency,
    compute_lexeme_dimension,
    expand_identifiers,
    list_spellings,
)
from retrieval.types import ANYBODY, ReaderRights, StoredChunk

# A quoted phrase matches neighbouring words of one field. An identifier matches whole or in parts.


def build_chunk_condition(question: ParsedQuestion, collection_ids: Sequence[int]) -> tuple[str, list[object]]:
    """Return an SQL condition, beginning with AND, for quoted phrases and excluded words, and its parameters.

    It needs the columns ``chunk_id`` and ``document_id``. It is empty without phrases and excluded words.
    """
    collections = group_by_configuration(collection_ids) if question.is_constrained else {}
    tsqueries = build_constraint_tsqueries(question, list(collections))
    if not any(tsqueries.values()):
        return "", []
    conditions, parameters = [], list[object]()
    for configuration, pks in collections.items():
        condition, values = build_configuration_condition(configuration, pks)
        conditions.append(condition)
        parameters += values
        if tsqueries[configuration]:
            conditions[-1] += " AND search_vector @@ %s::tsquery"
            parameters.append(tsqueries[configuration])
    chunks = f"SELECT id, document_id FROM retrieval_chunk WHERE {' OR '.join(conditions)}"
    return f" AND (chunk_id, document_id) IN ({chunks})", parameters


def build_constraint_tsqueries(question: ParsedQuestion, configurations: Sequence[str]) -> Mapping[str, str]:
    demanded = [*question.phrases, *question.excluded]
    if not demanded:
        return dict.fromkeys(configurations, "")
    ways = [(number, way) for number, phrase in enumerate(demanded) for way in list_spellings(phrase)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT configuration, number, phraseto_tsquery(configuration::regconfig, way)::text "
            "FROM unnest(%s::text[]) AS configuration, unnest(%s::int[], %s::text[]) AS demanded(number, way)",
            [list(configurations), [number for number, _ in ways], [way for _, way in ways]],
        )
        found: dict[tuple[str, int], list[str]] = {}
        for configuration, number, phrase in cursor.fetchall():
            found.setdefault((configuration, number), []).append(limit_to_one_field(phrase))
    tsqueries = {}
    for configuration in configurations:
        phrases = [join_with_or(found[configuration, number]) for number in range(len(demanded))]
        required, excluded = phrases[: len(question.phrases)], join_with_or(phrases[len(question.phrases) :])
        tsqueries[configuration] = join_with_and([*required, f"!( {excluded} )" if excluded else ""])
    return tsqueries


# A search first reads ``depth`` passages, then only passages that can score higher than the worst of them. Sources:
# Turtle and Flood, "Query Evaluation: Strategies and Optimizations", Information Processing & Management 1995
# (MaxScore); Broder, Carmel, Herscovici, Soffer, Zien, "Efficient Query Evaluation using a Two-Level Retrieval
# Process", CIKM 2003 ("weak AND").

# Largest number of operators in a tsquery. PostgreSQL evaluates larger ones too slowly.
LARGEST_FORMULA = 100
# Relative error of scores, which are sums of single-precision numbers.
ROUNDING = 1e-4
MOST_TERMS = 20


@dataclass(frozen=True, slots=True)
class Term:
    """A word to search, or alternatives of which the best counts.

    ``notation`` is a tsquery, which at most ``document_frequency`` passages match. ``bound`` is the most that a match
    adds to a score. ``common``: this term alone does not find a passage.
    """

    notation: str
    bound: float
    document_frequency: int
    common: bool = False


def choose_rarest(terms: Sequence[Term], passages: int) -> list[Term]:
    """Return the rarest terms, without common ones, that together match at most ``passages`` passages.

    The first is returned even if it matches more.
    """
    chosen: list[Term] = []
    total = 0
    for term in sorted((term for term in terms if not term.common), key=lambda term: term.document_frequency):
        total += term.document_frequency
        if chosen and total > passages:
            break
        chosen.append(term)
    return chosen


def build_candidate_query(terms: Sequence[Term], threshold: float) -> str:
    """Return a tsquery for passages whose score may reach ``threshold``; empty if none can."""
    ordered = sorted(terms, key=lambda term: (term.common, -term.bound, term.notation))
    needed = threshold - ROUNDING * max(1.0, abs(threshold))
    # Each removed term counts as if every passage contained it, so that no candidate is missed.
    granted = sum(term.bound for term in ordered[MOST_TERMS:])
    del ordered[MOST_TERMS:]
    while granted < needed and ordered:
        try:
            return _TsqueryBuilder(ordered).build_tsquery(needed - granted) or ""
        except _TsqueryTooLarge:
            granted += ordered.pop().bound
    return " | ".join(term.notation for term in terms if not term.common)


class _TsqueryTooLarge(Exception):
    pass


class _TsqueryBuilder:
    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._left = LARGEST_FORMULA
        self._rest = [0.0] * (len(terms) + 1)
        for place in reversed(range(len(terms))):
            self._rest[place] = self._rest[place + 1] + terms[place].bound

    def build_tsquery(self, needed: float) -> str | None:
        """Return a tsquery for the passages whose score may reach ``needed``; None if no passage can reach it.

        A score is at most the sum of the ``bound`` of each term in the passage.
        """
        return self._build_tsquery_from_term(0, needed, False)

    def _build_tsquery_from_term(self, place: int, needed: float, is_candidate: bool) -> str | None:
        """Return the part of the tsquery for the terms from index ``place`` on.

        These terms must add at least ``needed`` to the score. A passage needs a term that is not common;
        ``is_candidate``: an earlier term is one. The result is "" if no further terms are needed, and None if they
        cannot add enough.
        """
        if is_candidate and needed <= 0:
            return ""
        if self._rest[place] < needed or place == len(self._terms):
            return None
        term = self._terms[place]
        if term.common and not is_candidate:
            return None
        held = self._build_tsquery_from_term(place + 1, needed - term.bound, True)
        lacking = self._build_tsquery_from_term(place + 1, needed, is_candidate)
        if held is None or lacking == "":
            return lacking
        self._left -= 1
        if self._left < 0:
            raise _TsqueryTooLarge
        with_term = f"{term.notation} & ( {held} )" if held else term.notation
        return with_term if lacking is None else f"{with_term} | {lacking}"


# A lexeme in more than this share of the passages selects no candidates, because reading them takes too long.
COMMON_SHARE = 0.5
# Lowest similarity of a likely correction. Corrected names have .64 to .87, unrelated words .2 to .5.
NEARLY_THE_WORD = 0.58


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A question, analysed by one text-search configuration of PostgreSQL, such as ``english`` or ``dutch``.

    - ``collections``: ids of the collections with documents in this configuration.
    - ``mixed``: ids of those collections that have documents in other configurations too.
    - ``idf``: weights of the question's lexemes, except those that no passage contains.
    - ``expansions``: similar words for each word that no passage contains, nearest first.
    - ``matching``: lexemes of which a passage must contain one.
    - ``constraint``: a tsquery that a passage must match.
    - ``unknown``: number of lexemes that no passage contains and that have no similar words.
    - ``unknown_words``: words that no passage contains and that have no likely correction.
    """

    configuration: str
    collections: tuple[int, ...]
    mixed: tuple[int, ...]
    idf: Mapping[str, float]
    matching: tuple[str, ...]
    largest_weight: float
    expansions: Mapping[str, tuple[TermExpansion, ...]] = field(default_factory=dict)
    constraint: str = ""
    document_frequencies: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    unknown_weight: float = 0.0
    unknown_words: tuple[str, ...] = ()

    @property
    def terms(self) -> list[Term]:
        frequencies, matching = self.document_frequencies, self.matching
        terms = [
            Term(quote_lexeme(lexeme), idf * self.largest_weight, frequencies[lexeme], lexeme not in matching)
            for lexeme, idf in self.idf.items()
        ]
        for expansions in self.expansions.values():
            for common in (False, True):
                alike = [each for each in expansions if (each.lexeme not in self.matching) == common]
                if alike:
                    terms.append(
                        Term(
                            notation=f"( {' | '.join(quote_lexeme(each.lexeme) for each in alike)} )",
                            bound=max(each.weight for each in alike) * self.largest_weight,
                            document_frequency=sum(each.document_frequency for each in alike),
                            common=common,
                        )
                    )
        return terms

    @property
    def tsquery(self) -> str:
        return join_with_and([" | ".join(quote_lexeme(lexeme) for lexeme in self.matching), self.constraint])

    def can_match_chunk(self, chunk: StoredChunk) -> bool:
        pk = chunk.collection_id
        return pk in self.collections and (pk not in self.mixed or chunk.configuration == self.configuration)

    @property
    def weights(self) -> SparseVector:
        return to_sparse_vector(self.idf)

    @property
    def expansion_vectors(self) -> list[list[SparseVector]]:
        """The similar words for each unknown word, as sparse vectors with the weight of one lexeme."""
        return [
            [to_sparse_vector({expansion.lexeme: expansion.weight}) for expansion in expansions]
            for expansions in self.expansions.values()
        ]

    @property
    def lexeme_weights(self) -> Mapping[str, float]:
        weights = dict(self.idf)
        for expansions in self.expansions.values():
            for expansion in expansions:
                weights[expansion.lexeme] = max(expansion.weight, weights.get(expansion.lexeme, 0.0))
        return weights


def build_queries(
    question: str,
    collection_ids: Sequence[int],
    *,
    readers: Sequence[ReaderRights] = (ANYBODY,),
    fuzzy: bool = True,
) -> list[LexicalQuery]:
    """Return one query for each text-search configuration (language) of the collections; none if no word can match.

    Document frequencies are summed over all collections. If ``fuzzy`` is true, an unquoted word that ``readers`` can
    find in no passage is replaced by similar words. Raises: InvalidQuery.
    """
    parsed = parse_question(question)
    collections = group_by_configuration(collection_ids)
    if not collections:
        return []
    spoken = expand_identifiers(parsed.text)
    lexemes = {configuration: found for (configuration, _), found in read_lexemes([spoken], list(collections)).items()}
    passages = count_passages_in(collection_ids)
    frequencies = read_document_frequencies(
        {lexeme for found in lexemes.values() for lexeme in found}, collection_ids, readers
    )
    unknown: dict[str, dict[str, tuple[str, ...]]] = {}
    if fuzzy and any(lexeme not in frequencies for found in lexemes.values() for lexeme in found):
        unknown = find_unknown_terms(expand_identifiers(parsed.unquoted), list(collections), frequencies)
    constraints = build_constraint_tsqueries(parsed, list(collections))
    queries = []
    for configuration, pks in collections.items():
        expansions = {
            typed: meant
            for typed, of_word in unknown.items()
            if (
                meant := tuple(
                    expansion
                    for lexeme in of_word.get(configuration, ())
                    for expansion in find_similar_lexemes(
                        typed, lexeme, configuration, pks, collection_ids, passages, readers
                    )
                )
            )
        }
        known = {lexeme: frequencies[lexeme] for lexeme in lexemes[configuration] if lexeme in frequencies}
        held = known | {
            expansion.lexeme: expansion.document_frequency for meant in expansions.values() for expansion in meant
        }
        if held:
            selective = [lexeme for lexeme, frequency in held.items() if frequency <= COMMON_SHARE * passages]
            idf = {
                lexeme: compute_inverse_document_frequency(frequency, passages) for lexeme, frequency in known.items()
            }
            stood_in_for = {lexeme for typed in expansions for lexeme in unknown.get(typed, {}).get(configuration, ())}
            queries.append(
                LexicalQuery(
                    configuration,
                    pks,
                    list_multilingual_collections(pks),
                    idf,
                    tuple(selective or [min(held, key=lambda lexeme: (held[lexeme], lexeme))]),
                    1 + settings.BM25_K1,
                    expansions,
                    constraints[configuration],
                    held,
                    unknown=len({*lexemes[configuration]} - known.keys() - stood_in_for),
                    unknown_weight=compute_inverse_document_frequency(0, passages),
                    unknown_words=tuple(
                        typed
                        for typed in unknown
                        if max((near.weight for near in expansions.get(typed, ())), default=0.0)
                        < NEARLY_THE_WORD * compute_inverse_document_frequency(1, passages)
                    ),
                )
            )
    return queries


def to_sparse_vector(weights: Mapping[str, float]) -> SparseVector:
    by_dimension: dict[int, float] = {}
    for lexeme, weight in weights.items():
        dimension = compute_lexeme_dimension(lexeme) - 1
        by_dimension[dimension] = by_dimension.get(dimension, 0.0) + weight
    return SparseVector(by_dimension, DIMENSIONS)
