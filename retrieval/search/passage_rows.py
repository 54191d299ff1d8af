"""Chunks as the rest of the site sees them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from retrieval.context import Passage
from retrieval.documents.formats import page_unit
from retrieval.exceptions import RetrievalError
from retrieval.index.closeness import current_calibration
from retrieval.index.encoding import encode_query
from retrieval.infrastructure.statements import fetch
from retrieval.models import Chunk
from retrieval.text.block import from_rows
from retrieval.text.questions import LEAST_LIKENESS, ask_alike, normalize

logger = logging.getLogger(__name__)

# A passage's fields, and where they stand.
_FIELDS = {
    "chunk_id": "chunk.id",
    "document_id": "chunk.document_id",
    "document_title": "document.title",
    "document_url": "document.url",
    "source": "document.source",
    "collection": "collection.slug",
    "collection_name": "collection.name",
    **{
        name: f"chunk.{name}"
        for name in ("ordinal", "start", "page", "heading_path", "content", "content_hash", "token_count", "blocks")
    },
    "end": 'chunk."end"',
    "page_unit": "document.media_type",
}
_SELECT = (
    f"SELECT {', '.join(_FIELDS.values())} FROM retrieval_chunk AS chunk "
    "JOIN retrieval_document AS document ON document.id = chunk.document_id "
    "JOIN retrieval_collection AS collection ON collection.id = chunk.collection_id "
)


def load_passages(chunk_ids: Iterable[int]) -> dict[int, Passage]:
    """The passages with these ids, by id; one that is gone is missing."""
    rows = fetch(f"{_SELECT} WHERE chunk.id = ANY(%s::bigint[])", [list(chunk_ids)])
    return {row[0]: _passage(row) for row in rows}


def load_metadata(chunk_ids: Iterable[int]) -> dict[int, dict[str, object]]:
    """The metadata of each chunk's document, by chunk id, with its id and the slug of its collection."""
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list(
        "pk", "document__metadata", "document", "collection__slug"
    )
    return {pk: {**metadata, "document": document, "collection": slug} for pk, metadata, document, slug in rows}


def find_given(question: str, chunk_ids: Iterable[int]) -> frozenset[int]:
    """Those of the chunks to which a curator gave this question, or one very like it.

    Without an embedder, or a scale for its cosines, the wording alone counts.
    """
    edited = Chunk.objects.filter(pk__in=chunk_ids, questions_edited=True).order_by("pk")
    given = list(edited.values_list("pk", "canonical_questions"))
    asked = normalize(question)
    found = {pk for pk, wordings in given if asked in map(normalize, wordings)}
    calibration = current_calibration() if given and not found else None
    if calibration is None:
        return frozenset(found)
    try:
        vector = encode_query(question)
        for pk, wordings in given:
            alike = [wording for wording in wordings if ask_alike(question, wording)]
            if any(calibration.likeness(float(vector @ encode_query(each))) >= LEAST_LIKENESS for each in alike):
                found.add(pk)
    except RetrievalError as error:
        logger.warning("A question was compared with those of passages by its words alone: %s", error)
    return frozenset(found)


def load_neighbours(places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Passage]:
    """The passages at these (document id, ordinal) places, in one query; places that do not exist are missing."""
    wanted = set(places)
    if not wanted:
        return {}
    rows = fetch(
        f"{_SELECT} JOIN unnest(%s::bigint[], %s::int[]) AS wanted(document_id, ordinal) "
        "ON wanted.document_id = chunk.document_id AND wanted.ordinal = chunk.ordinal",
        [[document for document, _ in wanted], [ordinal for _, ordinal in wanted]],
    )
    return {(passage.document_id, passage.ordinal): passage for passage in map(_passage, rows)}


def _passage(row: Sequence[Any]) -> Passage:
    values = dict(zip(_FIELDS, row, strict=True))
    rows, start = values["blocks"], values["start"]
    values["heading_path"] = tuple(values["heading_path"])
    values["blocks"] = from_rows(rows, start)
    values["page_unit"] = page_unit(values["page_unit"])
    return Passage(**values)
