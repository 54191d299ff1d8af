"""The lexical side of one question: its lexemes, what each is worth, and which of them a passage must hold one of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Sum
from pgvector import SparseVector

from retrieval.lexical.terms import DIMENSIONS, expand_identifiers, inverse_document_frequency, lexeme_dimension
from retrieval.models import Collection, CollectionStatistics, Lexeme

# A lexeme that more than this share of the passages hold scores, but does not make a passage a candidate by itself:
# visiting half of the table would cost more than all the other lexemes together, and decide nothing.
COMMON_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A question in one text-search configuration. ``idf`` maps each lexeme the corpus knows to its weight, > 0."""

    configuration: str
    collections: tuple[int, ...]
    idf: Mapping[str, float]
    matching: tuple[str, ...]

    @property
    def tsquery(self) -> str:
        """The matching lexemes, any of them, in tsquery's own notation."""
        return " | ".join(_quote(lexeme) for lexeme in self.matching)

    @property
    def weights(self) -> SparseVector:
        """The inverse document frequencies at the lexemes' dimensions; its inner product with `bm25` is the score."""
        weights: dict[int, float] = {}
        for lexeme, weight in self.idf.items():
            dimension = lexeme_dimension(lexeme) - 1
            weights[dimension] = weights.get(dimension, 0.0) + weight
        return SparseVector(weights, DIMENSIONS)


def build_queries(question: str, collection_ids: Sequence[int]) -> list[LexicalQuery]:
    """One query for each text-search configuration among the collections; none where no lexeme is known.

    Frequencies are summed over all the collections searched, so that scores from different ones can be compared.
    """
    by_configuration: dict[str, list[int]] = {}
    for pk, configuration in Collection.objects.filter(pk__in=collection_ids).values_list(
        "pk", "text_search_configuration"
    ):
        by_configuration.setdefault(configuration, []).append(pk)
    if not by_configuration:
        return []
    lexemes = _lexemes(expand_identifiers(question), sorted(by_configuration))
    passages = CollectionStatistics.objects.filter(pk__in=collection_ids).aggregate(n=Sum("chunks"))["n"] or 0
    frequencies: dict[str, int] = dict(
        Lexeme.objects.filter(
            collection__in=collection_ids, lexeme__in={lexeme for found in lexemes.values() for lexeme in found}
        )
        .values_list("lexeme")
        .annotate(frequency=Sum("document_frequency"))
    )
    queries = []
    for configuration in sorted(by_configuration):
        known = [lexeme for lexeme in lexemes[configuration] if lexeme in frequencies]
        if not known:
            continue
        selective = [lexeme for lexeme in known if frequencies[lexeme] <= COMMON_SHARE * passages]
        queries.append(
            LexicalQuery(
                configuration=configuration,
                collections=tuple(by_configuration[configuration]),
                idf={lexeme: inverse_document_frequency(frequencies[lexeme], passages) for lexeme in known},
                matching=tuple(selective or [min(known, key=lambda lexeme: (frequencies[lexeme], lexeme))]),
            )
        )
    return queries


def _lexemes(text: str, configurations: Sequence[str]) -> dict[str, list[str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT configuration, tsvector_to_array(to_tsvector(configuration::regconfig, %s)) "
            "FROM unnest(%s::text[]) AS configuration",
            [text, list(configurations)],
        )
        return dict(cursor.fetchall())


def _quote(lexeme: str) -> str:
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"
