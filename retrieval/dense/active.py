"""The embedder that is searched."""

from __future__ import annotations

from django.db import transaction

from retrieval import conf
from retrieval.dense.index import create_index
from retrieval.exceptions import ImproperEmbedder
from retrieval.models import Embedder
from retrieval.statements import fetch


def active_embedder() -> Embedder:
    """The row of the embedder that is searched, made (with its index) at first use.

    Raises: ImproperEmbedder when the configured one differs from the one whose vectors are stored.
    """
    configured = conf.embedder()
    active = _stored()
    if active is None:
        with transaction.atomic():
            active, _ = Embedder.objects.get_or_create(
                name=configured.name, defaults={"dimension": configured.dimension, "is_active": True}
            )
            if not active.is_active:
                active.is_active = True
                active.save(update_fields=["is_active"])
            create_index(active)
    if active.name != configured.name or active.dimension != configured.dimension:
        raise ImproperEmbedder(
            f"The stored vectors are {active.name}'s ({active.dimension} wide), the settings name {configured.name} "
            f"({configured.dimension} wide): run `manage.py reembed`, or set the embedder back."
        )
    return active


def _stored() -> Embedder | None:
    """Asked for each search, so without the making of a query set, which takes longer than PostgreSQL does."""
    columns = ", ".join(str(field.column) for field in Embedder._meta.concrete_fields)
    rows = fetch(f"SELECT {columns} FROM retrieval_embedder WHERE is_active")
    return Embedder(*rows[0]) if rows else None
