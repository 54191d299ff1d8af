"""The lexical side of one question: its lexemes, what each is worth, and which of them a passage must hold one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings
from pgvector import SparseVector

from retrieval.index.lexical_fields import stored_k1
from retrieval.index.term_statistics import by_configuration, collection_states, lexemes_of
from retrieval.search.constraints import constraint_tsqueries
from retrieval.search.fuzzy import Expansion, document_frequencies, expand, unknown_terms
from retrieval.search.pruning import Term
from retrieval.search.syntax import parse
from retrieval.search.tsquery import all_of, quote
from retrieval.text.terms import DIMENSIONS, expand_identifiers, inverse_document_frequency, lexeme_dimension
from retrieval.types import ANYBODY, Reader

# A lexeme that more than this share of the passages hold scores, but does not make a passage a candidate by itself:
# visiting half of the table would cost more than all the other lexemes together, and decide nothing.
COMMON_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A question in one text-search configuration.

    ``idf`` maps each lexeme the corpus knows to its weight, > 0; ``expansions`` each typed word that it lacks to what
    may have been meant, nearest first. A passage must hold one of ``matching`` and meet ``constraint``, a tsquery.
    ``document_frequencies`` are those of all lexemes, expansions included. Each term weight that is stored is below
    ``largest_weight``. ``unknown`` counts the lexemes that the corpus lacks and nothing stands in for; each would weigh
    ``unknown_weight``.
    """

    configuration: str
    collections: tuple[int, ...]
    idf: Mapping[str, float]
    matching: tuple[str, ...]
    largest_weight: float
    expansions: Mapping[str, tuple[Expansion, ...]] = field(default_factory=dict)
    constraint: str = ""
    document_frequencies: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    unknown_weight: float = 0.0

    @property
    def terms(self) -> list[Term]:
        """What each lexeme, or expanded word, can add to a score at most; common is what is not ``matching``."""
        frequencies, matching = self.document_frequencies, self.matching
        terms = [
            Term(quote(lexeme), idf * self.largest_weight, frequencies[lexeme], lexeme not in matching)
            for lexeme, idf in self.idf.items()
        ]
        for expansions in self.expansions.values():
            for common in (False, True):
                alike = [each for each in expansions if (each.lexeme not in self.matching) == common]
                if alike:
                    terms.append(
                        Term(
                            notation=f"( {' | '.join(quote(each.lexeme) for each in alike)} )",
                            bound=max(each.weight for each in alike) * self.largest_weight,
                            document_frequency=sum(each.document_frequency for each in alike),
                            common=common,
                        )
                    )
        return terms

    @property
    def tsquery(self) -> str:
        """The matching lexemes, any of them, within the constraint, in tsquery's own notation."""
        return all_of([" | ".join(quote(lexeme) for lexeme in self.matching), self.constraint])

    @property
    def weights(self) -> SparseVector:
        """The inverse document frequencies at the lexemes' dimensions; its inner product with `bm25` is the score.

        But for what expansions add: see :attr:`alternatives`.
        """
        return sparse(self.idf)

    @property
    def alternatives(self) -> list[list[SparseVector]]:
        """For each expanded word, its expansions' weights; a passage's score grows by the best inner product of each.

        Not by their sum: a passage about *valves* and *values* does not answer a question about *vavles* twice.
        """
        return [
            [sparse({expansion.lexeme: expansion.weight}) for expansion in expansions]
            for expansions in self.expansions.values()
        ]

    @property
    def worth(self) -> Mapping[str, float]:
        """What each lexeme that can be matched is worth, expansions included."""
        worth = dict(self.idf)
        for expansions in self.expansions.values():
            for expansion in expansions:
                worth[expansion.lexeme] = max(expansion.weight, worth.get(expansion.lexeme, 0.0))
        return worth


def build_queries(
    question: str,
    collection_ids: Sequence[int],
    *,
    readers: Sequence[Reader] = (ANYBODY,),
    fuzzy: bool = True,
) -> list[LexicalQuery]:
    """One query for each text-search configuration among the collections; none where no lexeme is known or meant.

    Frequencies are summed over all the collections searched, so that scores from different ones can be compared.
    With ``fuzzy``, words that none of them knows are expanded. Quoted words are meant as they are written. Words that
    stand only in documents which one of the ``readers`` may not see are unknown, and nothing is expanded to them.
    Raises: InvalidQuery.
    """
    parsed = parse(question)
    collections = by_configuration(collection_ids)
    if not collections:
        return []
    spoken = expand_identifiers(parsed.text)
    lexemes = {configuration: found for (configuration, _), found in lexemes_of([spoken], list(collections)).items()}
    states = collection_states(collection_ids)
    passages = sum(state.chunks for state in states)
    largest_weight = 1 + max([settings.BM25_K1, *(stored_k1(state.weighting) for state in states)])
    frequencies = document_frequencies(
        {lexeme for found in lexemes.values() for lexeme in found}, collection_ids, readers
    )
    unknown: dict[str, dict[str, tuple[str, ...]]] = {}
    if fuzzy and any(lexeme not in frequencies for found in lexemes.values() for lexeme in found):
        unknown = unknown_terms(expand_identifiers(parsed.unquoted), list(collections), frequencies)
    constraints = constraint_tsqueries(parsed, list(collections))
    queries = []
    for configuration, pks in collections.items():
        expansions = _expand_unknown(unknown, configuration, pks, collection_ids, passages, readers)
        known = {lexeme: frequencies[lexeme] for lexeme in lexemes[configuration] if lexeme in frequencies}
        held = known | {
            expansion.lexeme: expansion.document_frequency for meant in expansions.values() for expansion in meant
        }
        if held:
            idf = {lexeme: inverse_document_frequency(frequency, passages) for lexeme, frequency in known.items()}
            stood_in_for = {lexeme for typed in expansions for lexeme in unknown.get(typed, {}).get(configuration, ())}
            queries.append(
                LexicalQuery(
                    configuration,
                    pks,
                    idf,
                    _choose_matching(held, passages),
                    largest_weight,
                    expansions,
                    constraints[configuration],
                    held,
                    unknown=len({*lexemes[configuration]} - known.keys() - stood_in_for),
                    unknown_weight=inverse_document_frequency(0, passages),
                )
            )
    return queries


def _expand_unknown(
    unknown: Mapping[str, Mapping[str, Sequence[str]]],
    configuration: str,
    pks: tuple[int, ...],
    collection_ids: Sequence[int],
    passages: int,
    readers: Sequence[Reader],
) -> dict[str, tuple[Expansion, ...]]:
    """What each word that no collection knows may mean in one configuration; without those that mean nothing."""
    expansions = {
        typed: tuple(
            expansion
            for lexeme in of_word.get(configuration, ())
            for expansion in expand(typed, lexeme, configuration, pks, collection_ids, passages, readers)
        )
        for typed, of_word in unknown.items()
    }
    return {typed: meant for typed, meant in expansions.items() if meant}


def _choose_matching(frequencies: Mapping[str, int], passages: int) -> tuple[str, ...]:
    """The lexemes that make a passage a candidate: those that are not common, or the rarest one."""
    selective = [lexeme for lexeme, frequency in frequencies.items() if frequency <= COMMON_SHARE * passages]
    return tuple(selective or [min(frequencies, key=lambda lexeme: (frequencies[lexeme], lexeme))])


def sparse(weights: Mapping[str, float]) -> SparseVector:
    """The weights at their lexemes' dimensions."""
    by_dimension: dict[int, float] = {}
    for lexeme, weight in weights.items():
        dimension = lexeme_dimension(lexeme) - 1
        by_dimension[dimension] = by_dimension.get(dimension, 0.0) + weight
    return SparseVector(by_dimension, DIMENSIONS)
