"""Chunks as the rest of the site sees them."""

from __future__ import annotations

from collections.abc import Iterable

from retrieval.models import Chunk
from retrieval.types import Passage

_FIELDS = (
    "id",
    "document_id",
    "document__title",
    "document__url",
    "document__source",
    "collection__slug",
    "ordinal",
    "start",
    "end",
    "page",
    "heading_path",
    "content",
    "content_hash",
    "token_count",
)


def load_passages(chunk_ids: Iterable[int]) -> dict[int, Passage]:
    """The passages with these ids, by id; one that is gone is missing."""
    return {row[0]: _passage(row) for row in Chunk.objects.filter(pk__in=chunk_ids).values_list(*_FIELDS)}


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
    ).values_list(*_FIELDS)
    passages = map(_passage, rows)
    return {place: passage for passage in passages if (place := (passage.document_id, passage.ordinal)) in wanted}


def _passage(row: tuple[object, ...]) -> Passage:
    values = dict(zip(_FIELDS, row, strict=True))
    return Passage(
        chunk_id=values["id"],  # type: ignore[arg-type]
        document_id=values["document_id"],  # type: ignore[arg-type]
        document_title=str(values["document__title"]),
        document_url=str(values["document__url"]),
        source=str(values["document__source"]),
        collection=str(values["collection__slug"]),
        ordinal=values["ordinal"],  # type: ignore[arg-type]
        start=values["start"],  # type: ignore[arg-type]
        end=values["end"],  # type: ignore[arg-type]
        page=values["page"],  # type: ignore[arg-type]
        heading_path=tuple(values["heading_path"]),  # type: ignore[arg-type]
        content=str(values["content"]),
        content_hash=str(values["content_hash"]),
        token_count=values["token_count"],  # type: ignore[arg-type]
    )
