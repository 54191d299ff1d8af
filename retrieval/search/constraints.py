"""What a question's syntax demands of a passage, as a restriction on rows: the same for every retriever.

A phrase is matched as PostgreSQL matches phrases: its lexemes follow each other within one field, stop words count as
places that any word may take, and a phrase of nothing but stop words demands nothing. An identifier in it may be
written whole or in parts (see :func:`retrieval.text.terms.spellings`): ``"MX-9920-W"`` finds ``MX-9920-W``,
``mx9920w`` and ``MX 9920 W``, and not ``MX-9902-W``. A phrase that two passages share the halves of is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.index.term_statistics import by_configuration
from retrieval.infrastructure.servers import connection
from retrieval.search.syntax import ParsedQuestion
from retrieval.search.tsquery import all_of, any_of, within_one_field
from retrieval.text.terms import spellings


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the passages of these collections must match; ``tsquery`` is empty where nothing is demanded of them."""

    collections: tuple[int, ...]
    tsquery: str


def constraints_for(question: ParsedQuestion, collection_ids: Sequence[int]) -> tuple[Constraint, ...]:
    """What the question demands of the passages of these collections; empty when it demands nothing of any."""
    if not question.is_constrained:
        return ()
    collections = by_configuration(collection_ids)
    tsqueries = constraint_tsqueries(question, list(collections))
    if not any(tsqueries.values()):
        return ()
    return tuple(Constraint(pks, tsqueries[configuration]) for configuration, pks in collections.items())


def chunk_condition(constraints: Sequence[Constraint]) -> tuple[str, list[object]]:
    """That the chunk ``chunk_id`` of ``document_id`` meets the constraints, in SQL, with its parameters; empty without
    any.

    To be put behind another condition. The planner may answer it from the GIN index, or check it row by row while the
    vector index is scanned.
    """
    if not constraints:
        return "", []
    conditions, parameters = [], list[object]()
    for constraint in constraints:
        conditions.append("collection_id = ANY(%s::bigint[])")
        parameters.append(list(constraint.collections))
        if constraint.tsquery:
            conditions[-1] += " AND search_vector @@ %s::tsquery"
            parameters.append(constraint.tsquery)
    chunks = f"SELECT id, document_id FROM retrieval_chunk WHERE {' OR '.join(conditions)}"
    return f" AND (chunk_id, document_id) IN ({chunks})", parameters


def constraint_tsqueries(question: ParsedQuestion, configurations: Sequence[str]) -> Mapping[str, str]:
    """For each configuration the tsquery that passages must match; empty where the question demands nothing."""
    demanded = [*question.phrases, *question.excluded]
    if not demanded:
        return dict.fromkeys(configurations, "")
    ways = [(number, way) for number, phrase in enumerate(demanded) for way in spellings(phrase)]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT configuration, number, phraseto_tsquery(configuration::regconfig, way)::text "
            "FROM unnest(%s::text[]) AS configuration, unnest(%s::int[], %s::text[]) AS demanded(number, way)",
            [list(configurations), [number for number, _ in ways], [way for _, way in ways]],
        )
        found: dict[tuple[str, int], list[str]] = {}
        for configuration, number, phrase in cursor.fetchall():
            found.setdefault((configuration, number), []).append(within_one_field(phrase))
    tsqueries = {}
    for configuration in configurations:
        phrases = [any_of(found[configuration, number]) for number in range(len(demanded))]
        required, excluded = phrases[: len(question.phrases)], any_of(phrases[len(question.phrases) :])
        tsqueries[configuration] = all_of([*required, f"!( {excluded} )" if excluded else ""])
    return tsqueries
