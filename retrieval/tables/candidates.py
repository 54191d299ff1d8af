"""The tables that a question may be about: few, and only those that the search may see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db.models import Count, Q, QuerySet

from retrieval.access import restrict
from retrieval.models import Chunk, Table, TableRow
from retrieval.tables.concepts import CONCEPTS, CONCEPTS_OF_STEM
from retrieval.tables.lexicon import GRAMMAR_WORDS
from retrieval.tables.links import KnownTable
from retrieval.tables.reading import LONGEST_LABEL, Column
from retrieval.tables.words import Token, tokenize
from retrieval.types import SearchFilters

MOST_TABLES = 12
_MOST_OF_DOCUMENT = 6
_MOST_BY_WORDS = 4
_LONGEST_SPAN = 8
# Of longer tables only the rows that the question names are read, by their labels.
_MOST_ROWS_READ = 5_000
_MOST_ROWS_NAMED = 200


def find_candidates(question: str, filters: SearchFilters, chunk_ids: Sequence[int]) -> list[KnownTable]:
    """The tables of the hits' documents, and those whose cells, caption or columns the question names."""
    visible = _visible(filters)
    tokens = tokenize(question)
    labels = _labels_in(tokens)
    chosen = [*_of_hits(visible, chunk_ids), *_by_labels(visible, labels), *_by_terms(visible, tokens)]
    tables = {table.pk: table for table in chosen}
    return [_know(table, labels) for table in list(tables.values())[:MOST_TABLES]]


def name_tables(filters: SearchFilters, document_ids: Iterable[int], most: int) -> list[tuple[str, list[str]]]:
    """Captions and columns of at most so many tables that the search may see, those of these documents first; empty
    when it may see none."""
    visible = _visible(filters)
    near = visible.filter(document__in=set(document_ids))
    named = list(near[:most])
    named += visible.exclude(pk__in=[table.pk for table in named])[: most - len(named)]
    return [(table.caption, [column[0] for column in table.columns]) for table in named]


def _visible(filters: SearchFilters) -> QuerySet[Table]:
    return restrict(Table.objects.filter(document__collection__in=filters.collections), filters)


def _of_hits(visible: QuerySet[Table], chunk_ids: Sequence[int]) -> Iterable[Table]:
    """The tables that hold a hit first, in the order of the hits, then the others of the first documents."""
    places = {
        chunk["id"]: chunk
        for chunk in Chunk.objects.filter(pk__in=chunk_ids).values("id", "document_id", "start", "end")
    }
    hits = [places[pk] for pk in chunk_ids if pk in places]
    tables = list(visible.filter(document__in={hit["document_id"] for hit in hits}))
    for hit in hits:
        for table in tables:
            if table.document_id == hit["document_id"] and table.start < hit["end"] and hit["start"] < table.end:
                yield table
    for hit in hits[:3]:
        yield from [table for table in tables if table.document_id == hit["document_id"]][:_MOST_OF_DOCUMENT]


def _by_labels(visible: QuerySet[Table], labels: Sequence[str]) -> list[Table]:
    """The tables of which most of the question's words are a cell."""
    named = (
        TableRow.objects.filter(labels__overlap=labels, table__in=visible)
        .values("table")
        .annotate(rows=Count("pk"))
        .order_by("-rows", "table")[:_MOST_BY_WORDS]
    )
    return list(visible.filter(pk__in=[row["table"] for row in named]))


def _by_terms(visible: QuerySet[Table], tokens: Sequence[Token]) -> list[Table]:
    wanted = {token.stem for token in tokens if token.norm not in GRAMMAR_WORDS}
    if not wanted:
        return []
    concepts = {concept for word in wanted for concept in CONCEPTS_OF_STEM.get(word, ())}
    wanted |= {word for concept in concepts for word in CONCEPTS[concept][1]}
    held = Counter(
        {
            pk: len(wanted & set(terms))
            for pk, terms in visible.filter(terms__overlap=list(wanted)).values_list("pk", "terms")[:500]
        }
    )
    best = [pk for pk, _ in held.most_common(_MOST_BY_WORDS)]
    return list(visible.filter(pk__in=best))


def _labels_in(tokens: Sequence[Token]) -> list[str]:
    """The stretches of the question that may be a cell, as labels are written."""
    labels = {
        "".join(token.norm for token in tokens[first : first + length])
        for length in range(1, _LONGEST_SPAN + 1)
        for first in range(len(tokens) - length + 1)
        if length > 1 or (tokens[first].norm not in GRAMMAR_WORDS and len(tokens[first].norm) > 1)
    }
    return sorted(label for label in labels if len(label) <= LONGEST_LABEL)


def _know(table: Table, labels: Sequence[str]) -> KnownTable:
    columns = tuple(Column(*column) for column in table.columns)
    text_columns = [at for at, column in enumerate(columns) if column.kind == "text"]
    rows = table.rows.order_by("ordinal")
    if table.row_count > _MOST_ROWS_READ:
        rows = rows.filter(Q(labels__overlap=labels) | Q(ordinal__lt=100))[:_MOST_ROWS_NAMED]
    texts: dict[int, Counter[str]] = {at: Counter() for at in text_columns}
    for values in rows.values_list("values", flat=True):
        for at in text_columns:
            if values[at] and len(values[at]) <= LONGEST_LABEL * 2:
                texts[at][values[at]] += 1
    return KnownTable(table.pk, table.caption, columns, table.row_count, texts)
