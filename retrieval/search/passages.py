"""Chunks as the rest of the site sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from retrieval.models import Chunk
from retrieval.text.blocks.rows import from_rows, procedures_from_rows
from retrieval.types import Passage

# A passage's fields, and where a chunk has them.
_FIELDS = {
    "chunk_id": "id",
    "document_id": "document_id",
    "document_title": "document__title",
    "document_url": "document__url",
    "source": "document__source",
    "collection": "collection__slug",
    "blocks": "blocks",
    **{
        name: name
        for name in ("ordinal", "start", "end", "page", "heading_path", "content", "content_hash", "token_count")
    },
}


def load_passages(chunk_ids: Iterable[int]) -> dict[int, Passage]:
    """The passages with these ids, by id; one that is gone is missing."""
    return {row[0]: _passage(row) for row in Chunk.objects.filter(pk__in=chunk_ids).values_list(*_FIELDS.values())}


def load_metadata(chunk_ids: Iterable[int]) -> dict[int, dict[str, object]]:
    """The metadata of each chunk's document, by chunk id."""
    return dict(Chunk.objects.filter(pk__in=chunk_ids).values_list("pk", "document__metadata"))


def load_neighbours(places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Passage]:
    """The passages at these (document id, ordinal) places, in one query; places that do not exist are missing."""
    wanted = set(places)
    if not wanted:
        return {}
    rows = Chunk.objects.filter(
        document__in={document for document, _ in wanted}, ordinal__in={ordinal for _, ordinal in wanted}
    ).values_list(*_FIELDS.values())
    passages = map(_passage, rows)
    return {place: passage for passage in passages if (place := (passage.document_id, passage.ordinal)) in wanted}


def _passage(row: Sequence[Any]) -> Passage:
    values = dict(zip(_FIELDS, row, strict=True))
    rows, start = values["blocks"], values["start"]
    values["heading_path"] = tuple(values["heading_path"])
    values["blocks"], values["procedures"] = from_rows(rows, start), procedures_from_rows(rows, start)
    return Passage(**values)
