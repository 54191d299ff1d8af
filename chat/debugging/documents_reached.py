"""What may be searched, and shown, when somebody looks into another person's answer."""

from __future__ import annotations

from dataclasses import replace

from chat.models import Answer
from chat.streaming.asking import filters_of
from retrieval.rights import filters_for
from retrieval.types import SearchFilters


def filters_of_both(answer: Answer, viewer: object) -> SearchFilters:
    """What the answer was searched in, as far as ``viewer`` may read it too; no collection where that is nothing.

    Raises: InvalidQuery when the asker may no longer read the conversation's collection.
    """
    asked = filters_of(answer)
    seen = filters_for(viewer)
    readable = set(seen.collections)
    return replace(
        asked,
        collections=tuple(pk for pk in asked.collections if pk in readable),
        readers=(*asked.readers, *seen.readers),
    )
