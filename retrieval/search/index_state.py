from __future__ import annotations

import logging
from collections.abc import Iterable

from django.db import DatabaseError

from retrieval.models import CollectionStatistics, Embedder
from retrieval.search.trace import IndexState

logger = logging.getLogger(__name__)


def read_index_state(collections: Iterable[int]) -> IndexState | None:
    """Return the name of the embedder, and the versions of the collections; None if the database does not answer."""
    versions = CollectionStatistics.objects.filter(collection__in=set(collections)).values_list("collection", "version")
    embedder = Embedder.objects.filter(is_active=True).values_list("name", flat=True)
    try:
        return IndexState({str(pk): version for pk, version in versions}, embedder.first() or "")
    except DatabaseError as error:
        logger.warning("The state of the index was not read: %s", error)
        return None
