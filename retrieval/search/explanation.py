"""Search results as JSON. The trace is its own JSON: see :mod:`retrieval.dataclass_json`. Imports no Django."""

from __future__ import annotations

from typing import Any

from retrieval.dataclass_json import to_json
from retrieval.types import Hit


def hit_as_json(hit: Hit) -> dict[str, Any]:
    """A search result: the passage, its score, and what that is the sum of."""
    passage = hit.passage
    candidate = to_json(hit.candidate)
    del candidate["dropped"]
    return {
        **candidate,
        "rank": hit.rank,
        "document": {
            "id": passage.document_id,
            "title": passage.document_title,
            "url": passage.document_url,
            "collection": passage.collection,
        },
        "section": passage.section,
        "page": passage.page,
        "content": passage.content,
        "start": passage.start,
        "end": passage.end,
    }
