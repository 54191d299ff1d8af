"""Build the filters of a search, which include the rights of the user. Apply them to documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from functools import reduce
from operator import or_
from typing import TypeVar

from django.conf import settings
from django.db import connection
from django.db.models import (
    Case,
    F,
    FloatField,
    Model,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.fields.json import HasKey, KeyTextTransform
from django.db.models.functions import Cast, Collate, Left
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual, Regex
from django.utils.timezone import make_aware
from django.utils.translation import gettext as _

from core.user_types import AnyUser
from retrieval.exceptions import InvalidQuery
from retrieval.models import Collection, Document
from retrieval.models.collection import CollectionQuerySet
from retrieval.models.narrowing import build_readable_condition, build_reader_rights
from retrieval.types import DateRange, NumberRange, ReaderRights, SearchFilters

# Columns of documents by the names that filters use.
DATE_COLUMNS = {"added": "created_at", "changed": "updated_at"}
VALUE_COLUMNS = {"language": "language", "format": "media_type"}
_DAY = r"^\d{4}-\d{2}-\d{2}$"
# Longer numbers could exceed the range of a double.
_NUMBER = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?$"

Row = TypeVar("Row", bound=Model)


def build_filters(user: AnyUser, collection: str = "", **wanted: object) -> SearchFilters:
    """Return filters for the documents that ``user`` may read, in the named collection or in all.

    "All" leaves out working copies. It also leaves out collections that callers must name, unless documents are wanted
    or there are no others. Raises: InvalidQuery, with the same message for a missing and an unreadable collection.
    """
    filters = _build_search_filters(Collection.objects.readable_by(user), collection, wanted)
    return replace(filters, readers=find_limiting_rights(filters.collections, user))


def build_unrestricted_filters(collection: str = "", **wanted: object) -> SearchFilters:
    """Return filters that ignore the rights to read, for management commands. Raises: InvalidQuery."""
    return replace(_build_search_filters(Collection.objects.all(), collection, wanted), readers=())


def _build_search_filters(collections: CollectionQuerySet, collection: str, wanted: dict[str, object]) -> SearchFilters:
    collections = collections.filter(slug=collection) if collection else collections.in_service()
    rows = list(collections.order_by("pk").values_list("pk", "is_searched_by_name"))
    # Wanted documents may be in collections that are only searched if the caller names them.
    is_chosen = collection or wanted.get("documents") or all(by_name for _pk, by_name in rows)
    ids = tuple(pk for pk, by_name in rows if is_chosen or not by_name)
    if collection and not ids:
        raise InvalidQuery(_("There is no collection named %r.") % collection)
    return SearchFilters(collections=ids, **wanted)  # type: ignore[arg-type]


def hash_restrictions(collections: Iterable[int], readers: Sequence[ReaderRights]) -> str:
    """Return a hash of ``readers`` and of the documents' own lists of groups; "" if ``readers`` is empty."""
    if not readers:
        return ""
    key = settings.DOCUMENT_GROUPS_KEY
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), sum(hashtextextended(id || ':' || (metadata -> %s)::text, 0)) FROM retrieval_document "
            "WHERE collection_id = ANY(%s) AND metadata ? %s",
            [key, list(collections), key],
        )
        narrowed = cursor.fetchone()
    return hashlib.sha256(repr((readers, narrowed)).encode()).hexdigest()


def find_limiting_rights(collections: Iterable[int], user: AnyUser) -> tuple[ReaderRights, ...]:
    """Return the rights of ``user`` that limit a search of these collections, as a tuple.

    The tuple is empty if ``user`` may read all documents of these collections.
    """
    readers = build_reader_rights(user)
    some = {pk for reader in readers for pk in set(collections) - set(reader.collections)}
    return readers if some and Document.objects.filter_restricted().filter(collection__in=some).exists() else ()


def list_matching_documents(filters: SearchFilters) -> QuerySet[Document]:
    return _filter_rows(Document.objects.filter(collection__in=filters.collections), filters, "")


def check_filter_fields(filters: SearchFilters) -> None:
    """Raise InvalidQuery if no document has the field of a filter, or if a filter's range does not fit its field.

    A range of dates needs a field with dates, and a range of numbers needs a field with numbers.

    Documents that the reader may not read are ignored, so that the error reveals nothing about them.
    """
    readable = list_matching_documents(SearchFilters(collections=filters.collections, readers=filters.readers))
    ranged = [each.field for each in filters.dates] + [each.field for each in filters.numbers]
    for name in dict.fromkeys([*filters.metadata_any, *ranged]):
        if name in DATE_COLUMNS or name in VALUE_COLUMNS:
            continue
        if not readable.filter(HasKey(F("metadata"), name)).exists():
            raise InvalidQuery(_("No document that you may read has the metadata “%s”.") % name[:60])
    for name in (each.field for each in filters.dates):
        if name in VALUE_COLUMNS or (name not in DATE_COLUMNS and not filter_days(readable, name).exists()):
            raise InvalidQuery(_("“%s” has no dates (YYYY-MM-DD), so it takes no range of dates.") % name[:60])
    for name in (each.field for each in filters.numbers):
        if name in VALUE_COLUMNS or name in DATE_COLUMNS or not filter_numbers(readable, name).exists():
            raise InvalidQuery(_("“%s” has no numbers, so it takes no range of numbers.") % name[:60])


def filter_by_document(rows: QuerySet[Row], filters: SearchFilters) -> QuerySet[Row]:
    """Return the rows whose `document` passes the filters. The collection is not checked."""
    return _filter_rows(rows, filters, "document__")


def build_document_condition(filters: SearchFilters) -> tuple[str, list[object]]:
    """Return an SQL condition on ``document_id`` that begins with AND, and its parameters; empty without filters.

    Raises: EmptyResultSet if no document can pass.
    """
    if not filters:
        return "", []
    passing = _filter_rows(Document.objects.order_by(), filters, "").values("pk")
    sql, parameters = passing.query.sql_with_params()
    return f" AND document_id IN ({sql})", list(parameters)


def _filter_rows(rows: QuerySet[Row], filters: SearchFilters, path: str) -> QuerySet[Row]:
    if filters.readers:
        rows = rows.filter(build_readable_condition(filters.readers, path))
    if filters.documents:
        rows = rows.filter(**{f"{path}pk__in": filters.documents})
    if filters.languages:
        rows = rows.filter(**{f"{path}language__in": filters.languages})
    if filters.formats:
        rows = rows.filter(**{f"{path}media_type__in": filters.formats})
    if filters.metadata:
        rows = rows.filter(**{f"{path}metadata__contains": dict(filters.metadata)})
    for key, values in filters.metadata_any.items():
        rows = rows.filter(_build_any_condition(key, values, path))
    for dates in filters.dates:
        rows = _filter_dates(rows, dates, path)
    for numbers in filters.numbers:
        rows = _filter_numbers(rows, numbers, path)
    return rows


def _build_any_condition(key: str, values: Sequence[object], path: str) -> Q:
    alternatives = [Q(**{f"{path}metadata__contains": {key: form}}) for value in values for form in (value, [value])]
    return reduce(or_, alternatives, Q(pk__in=[]))


def _filter_dates(rows: QuerySet[Row], dates: DateRange, path: str) -> QuerySet[Row]:
    """Return the rows whose date is valid and in the range. Fields in DATE_COLUMNS use the site's time zone."""
    if dates.field in DATE_COLUMNS:
        column = f"{path}{DATE_COLUMNS[dates.field]}"
        if dates.first is not None:
            rows = rows.filter(**{f"{column}__gte": make_aware(datetime.combine(dates.first, time.min))})
        if dates.last is not None:
            rows = rows.filter(**{f"{column}__lte": make_aware(datetime.combine(dates.last, time.max))})
        return rows
    first, last = dates.first or date.min, dates.last or date.max
    day = build_day_expression(dates.field, path)
    return filter_days(rows, dates.field, path).filter(
        GreaterThanOrEqual(day, Value(first.isoformat())), LessThanOrEqual(day, Value(last.isoformat()))
    )


def _filter_numbers(rows: QuerySet[Row], numbers: NumberRange, path: str) -> QuerySet[Row]:
    number = build_number_expression(numbers.field, path)
    if numbers.least is not None:
        rows = rows.filter(GreaterThanOrEqual(number, Value(numbers.least)))
    if numbers.most is not None:
        rows = rows.filter(LessThanOrEqual(number, Value(numbers.most)))
    return rows


def build_day_expression(field: str, path: str = "") -> Combinable:
    """Return an SQL expression for the first ten characters of a metadata value, which sort as ISO dates.

    Every database sorts them in the same order, because the collation is C.
    """
    return Collate(Left(KeyTextTransform(field, f"{path}metadata"), 10), "C")


def build_number_expression(field: str, path: str = "") -> Combinable:
    """Return an SQL expression for the number in a metadata value; NULL if it is not a number."""
    written = KeyTextTransform(field, f"{path}metadata")
    return Case(When(Regex(written, Value(_NUMBER)), then=Cast(written, FloatField())), output_field=FloatField())


def filter_days(rows: QuerySet[Row], field: str, path: str = "") -> QuerySet[Row]:
    return rows.filter(Regex(build_day_expression(field, path), Value(_DAY)))


def filter_numbers(rows: QuerySet[Row], field: str, path: str = "") -> QuerySet[Row]:
    return rows.filter(Regex(KeyTextTransform(field, f"{path}metadata"), Value(_NUMBER)))
