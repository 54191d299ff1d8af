"""List the facts on a document's page: the document's values of the fields that filter searches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import Q
from django.utils.formats import date_format

from retrieval.models import Document, MarkedFilter
from retrieval.models.collection import BUILT_IN_FILTERS
from retrieval.rights.offered_filters import write_plain_number

_LONGEST = 200


@dataclass(frozen=True, slots=True)
class MetadataFact:
    label: str
    text: str


def list_metadata_facts(document: Document) -> list[MetadataFact]:
    """Return the values to show of a document's metadata, in the order of its collection's filters.

    Fields that every document has are left out.
    """
    # A draft's working copy uses the filters of its collection.
    within = Q(collection=document.collection_id) | Q(collection__drafts__working_copy=document.collection_id)
    marked = MarkedFilter.objects.filter(within).exclude(field__in=BUILT_IN_FILTERS).order_by("position", "pk")
    facts = (MetadataFact(each.name, _format_fact(document.metadata.get(each.field), each.kind)) for each in marked)
    return [fact for fact in facts if fact.text]


def _format_fact(value: object, kind: str) -> str:
    values: Iterable[object] = value if isinstance(value, list) else [value]
    texts = (
        _format_value(each, kind)
        for each in values
        if isinstance(each, str | int | float) and not isinstance(each, bool)
    )
    return ", ".join(filter(None, texts))[:_LONGEST]


def _format_value(value: str | float, kind: str) -> str:
    if kind == MarkedFilter.Kind.DATES:
        try:
            return date_format(date.fromisoformat(str(value)[:10]), "DATE_FORMAT")
        except ValueError:
            return ""
    return write_plain_number(float(value)) if isinstance(value, int | float) else value.strip()
