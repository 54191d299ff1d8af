"""List the filters that readers can choose, with the values in the documents that they may read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.core.cache import caches
from django.db import connection
from django.db.models import Count, Max, Min, Q, QuerySet
from django.utils.timezone import localtime
from django.utils.translation import get_language, get_language_info
from django.utils.translation import gettext as _

from core.user_types import AnyUser
from retrieval.documents.formats import find_format
from retrieval.exceptions import InvalidQuery
from retrieval.models import CollectionStatistics, Document, MarkedFilter
from retrieval.models.collection import BUILT_IN_FILTERS
from retrieval.rights.search_filters import (
    DATE_COLUMNS,
    VALUE_COLUMNS,
    build_day_expression,
    build_filters,
    build_number_expression,
    filter_days,
    filter_numbers,
    hash_restrictions,
    list_matching_documents,
)
from retrieval.types import SearchFilters

MOST_VALUES = 100
LONGEST_VALUE = 200
_KEPT_SECONDS = 60
# These fields have their own keys in the API's `filters`.
_PARTS = {"language": "languages", "format": "formats"}
# Each entry of a list is a value; objects and empty texts are not.
_VALUES_SQL = """
    SELECT element #>> '{{}}', count(DISTINCT id)
    FROM (SELECT id, metadata -> %s AS value FROM retrieval_document WHERE id IN ({passing}) AND metadata ? %s) AS held,
    LATERAL jsonb_array_elements(
        CASE jsonb_typeof(value) WHEN 'array' THEN value ELSE jsonb_build_array(value) END
    ) AS element
    WHERE jsonb_typeof(element) IN ('string', 'number', 'boolean')
      AND length(element #>> '{{}}') BETWEEN 1 AND %s
    GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s
"""

Kind = MarkedFilter.Kind


@dataclass(frozen=True, slots=True)
class OfferedValue:
    value: str
    label: str
    documents: int


@dataclass(frozen=True, slots=True)
class OfferedFilter:
    """A filter with the values in the documents that a reader may read.

    ``values`` are sorted by label; if ``has_more``, they are the most frequent ones. ``first`` and ``last`` are the
    lowest and highest date (ISO) or number, as text.
    """

    field: str
    label: str
    kind: str
    values: tuple[OfferedValue, ...] = ()
    has_more: bool = False
    first: str = ""
    last: str = ""

    @property
    def filters_key(self) -> str:
        """The key in the API's `filters` object for the values of this filter."""
        return _PARTS.get(self.field) or ("metadata_any" if self.kind == Kind.VALUES else self.kind)


def list_offered_filters(user: AnyUser, collection: str = "") -> tuple[OfferedFilter, ...]:
    """Return the filters that ``user`` can choose in a collection, or in a search of all collections.

    A filter without values in documents that ``user`` may read is left out. The result is empty if the collection is
    missing or unreadable.
    """
    try:
        filters = build_filters(user, collection)
    except InvalidQuery:
        return ()
    # A draft's working copy uses the filters of the collection that it will replace.
    within = Q(collection__in=filters.collections) | Q(collection__drafts__working_copy__in=filters.collections)
    rows = MarkedFilter.objects.filter(within).order_by("collection__name", "collection", "position", "pk")
    marked = {row.field: row for row in reversed(rows)}
    ordered = [marked[field] for field in dict.fromkeys(row.field for row in rows)]
    if not ordered:
        return ()
    key = _build_filters_cache_key(filters, ordered)
    # A collection's version changes with the metadata of its documents, but not with the days on which they were added
    # or changed. So cached days may be a minute old.
    return (
        caches["process"].get_or_set(key, lambda: tuple(_load_offered_filters(filters, ordered)), _KEPT_SECONDS) or ()
    )


def _build_filters_cache_key(filters: SearchFilters, marked: Sequence[MarkedFilter]) -> str:
    versions = CollectionStatistics.objects.filter(collection__in=filters.collections).order_by("collection")
    parts = (
        [(row.field, row.label, row.kind) for row in marked],
        filters.collections,
        filters.readers,
        hash_restrictions(filters.collections, filters.readers),
        list(versions.values_list("collection", "version")),
        get_language(),
    )
    return f"filters:{hashlib.sha256(repr(parts).encode()).hexdigest()}"


def _load_offered_filters(filters: SearchFilters, marked: Iterable[MarkedFilter]) -> Iterable[OfferedFilter]:
    rows = list_matching_documents(filters).filter(text__isnull=False).order_by()
    for each in marked:
        kind = BUILT_IN_FILTERS[each.field][1] if each.field in BUILT_IN_FILTERS else each.kind
        if kind == Kind.VALUES:
            values = list_field_values(rows, each.field, MOST_VALUES + 1)
            shown = sorted(values[:MOST_VALUES], key=lambda value: value.label.casefold())
            if values:
                yield OfferedFilter(each.field, each.name, kind, tuple(shown), len(values) > MOST_VALUES)
        elif (extent := _find_value_range(rows, each.field, kind)) is not None:
            yield OfferedFilter(each.field, each.name, kind, first=extent[0], last=extent[1])


def list_field_values(rows: QuerySet[Document], field: str, most: int) -> list[OfferedValue]:
    """Return the ``most`` most frequent values of ``field``, with their numbers of documents."""
    if field in VALUE_COLUMNS:
        column = VALUE_COLUMNS[field]
        counted = rows.exclude(**{column: ""}).values_list(column).annotate(number=Count("pk"))
        found = [(str(value), number) for value, number in counted.order_by("-number", column)[:most]]
    else:
        sql, parameters = rows.values("pk").query.sql_with_params()
        with connection.cursor() as cursor:
            cursor.execute(_VALUES_SQL.format(passing=sql), [field, *parameters, field, LONGEST_VALUE, most])
            found = cursor.fetchall()
    return [OfferedValue(value, get_value_label(field, value), number) for value, number in found]


def get_value_label(field: str, value: str) -> str:
    """Return a label for a field's value, such as "English" for `en`; by default the value."""
    if field == "language":
        try:
            return str(_(get_language_info(value)["name"]))
        except KeyError:
            return value
    if field == "format":
        known = find_format(value)
        return known.label if known and known.label else value
    return value


def _find_value_range(rows: QuerySet[Document], field: str, kind: str) -> tuple[str, str] | None:
    if field in DATE_COLUMNS:
        ends = rows.aggregate(first=Min(DATE_COLUMNS[field]), last=Max(DATE_COLUMNS[field]))
        first, last = (localtime(end).date().isoformat() if end else "" for end in (ends["first"], ends["last"]))
        return (first, last) if first else None
    if kind == Kind.DATES:
        ends = filter_days(rows, field).aggregate(
            first=Min(build_day_expression(field)), last=Max(build_day_expression(field))
        )
    else:
        ends = filter_numbers(rows, field).aggregate(
            first=Min(build_number_expression(field)), last=Max(build_number_expression(field))
        )
    return None if ends["first"] is None else (write_plain_number(ends["first"]), write_plain_number(ends["last"]))


def write_plain_number(number: float | str) -> str:
    return f"{number:.15g}" if isinstance(number, float) else str(number)
