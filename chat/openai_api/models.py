"""The names under which the site's documents appear as OpenAI's "models"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from retrieval.models import Collection

ALL = "ragsite"
_ONE = f"{ALL}/"


def collection_in(model: str) -> str:
    """The short name of the collection that is asked; empty, for all of them, unless the name is `ragsite/<slug>`.

    Clients come with names of OpenAI's models built in; those ask everything, too.
    """
    return model.removeprefix(_ONE) if model.startswith(_ONE) else ""


def model_of(collection: str) -> str:
    return f"{_ONE}{collection}" if collection else ALL


def list_models(collections: Iterable[Collection]) -> list[dict[str, Any]]:
    """The models of a caller who may read these collections: all of them at once, then each."""
    each = [(model_of(one.slug), one.name, int(one.created_at.timestamp())) for one in collections]
    everything = (ALL, _("All documents"), min((created for *_rest, created in each), default=0))
    return [
        {"id": model, "object": "model", "created": created, "owned_by": ALL, "name": name}
        for model, name, created in (everything, *each)
    ]
