from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.db.models import QuerySet

from ragsite.models import AuditEntry
from retrieval.models import Collection
from retrieval.rights.access import seen_whole_by


def may_read_labels(user: Any) -> bool:
    """Whether ``user`` may read what objects are called: titles of documents stand there, of all collections."""
    return not Collection.objects.exclude(pk__in=seen_whole_by(user)).exists()


def json_lines(entries: QuerySet[AuditEntry], *, with_labels: bool = True) -> Iterator[str]:
    """The entries, oldest first, each as one line of JSON."""
    ordered = entries.select_related("actor", "object_person").order_by("at", "pk")
    for entry in ordered.iterator(chunk_size=2000):
        yield json.dumps(as_json(entry, with_label=with_labels), ensure_ascii=False) + "\n"


def as_json(entry: AuditEntry, *, with_label: bool = True) -> dict[str, Any]:
    """Without the label, also without the details, which may name collections."""
    return {
        "id": entry.pk,
        "at": entry.at.isoformat(),
        "action": entry.action,
        "actor": _person(entry.actor),
        "key": entry.key or None,
        "via": entry.via,
        "address": entry.address or None,
        "object": {
            "type": entry.object_type,
            "id": entry.object_id,
            "label": entry.object_label if with_label else "",
            "person": _person(entry.object_person),
        },
        "details": entry.details if with_label else {},
    }


def _person(person: Any) -> dict[str, Any] | None:
    return None if person is None else {"user_id": person.user_id, "name": person.name}
