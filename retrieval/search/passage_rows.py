from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from django.db.models.functions import Left

from core.database import fetch_rows
from core.exceptions import RagsiteError
from retrieval.documents.formats import get_page_unit
from retrieval.index.active_embedder import encode_query
from retrieval.index.closeness import find_current_calibration
from retrieval.models import Chunk
from retrieval.search.assembly import FARTHEST_PLACES, Place, Stretch, get_passage_place
from retrieval.text.block import read_stored_blocks
from retrieval.text.questions import LEAST_LIKENESS, have_same_kind_and_codes, normalize_question
from retrieval.types import Passage, StoredChunk

logger = logging.getLogger(__name__)


LONGEST_CHARACTERS = 4000


def load_chunk_texts(chunk_ids: Sequence[int]) -> dict[int, str]:
    """Return title, headings and content of each chunk as one text, by chunk id. Deleted chunks are missing."""
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list(
        "pk", "document__title", "heading_path", Left("content", LONGEST_CHARACTERS)
    )
    texts = {
        pk: "\n".join(dict.fromkeys(filter(None, (title, *headings, content)))) for pk, title, headings, content in rows
    }
    return {pk: texts[pk] for pk in chunk_ids if pk in texts}


def find_chunks_with_section_number(chunk_ids: Sequence[int], noun: str, number: str) -> set[int]:
    """Return the ids of chunks with a heading or list item that has this number, for a question about "section 3.2".

    ``noun`` is the word before the number.
    """
    item = r"(?:[-*] )?(?:[^\W\d_]{2,20} )?" if "." in number else rf"(?:[-*] )?{re.escape(noun)} ?"
    begins = re.compile(
        rf"(?:^|\n)[ ]{{0,24}}(?:#{{1,6}} (?:[^\W\d_]{{2,20}} )?|{item}){re.escape(number)}[.):]?(?= [^\W_]|\n|$)", re.I
    )
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list("pk", "heading_path", Left("content", LONGEST_CHARACTERS))
    return {
        pk
        for pk, headings, content in rows
        if any(begins.match(f"# {heading}") for heading in headings[-1:]) or begins.search(content)
    }


NO_VECTOR = np.empty(0, np.float32)


def load_stored_chunks(
    chunk_ids: Sequence[int], embedder_id: int | None, *, terms: bool = True
) -> dict[int, StoredChunk]:
    """Return the chunks' index data by id. Deleted chunks are missing.

    A chunk that ``embedder_id`` has not encoded has an empty vector. BM25 weights are read only if ``terms`` is true.
    Raises: DatabaseError.
    """
    columns = ["chunk.configuration", "sparsevec_send(chunk.bm25)" if terms else "NULL::bytea"]
    joined = ""
    if embedder_id is not None:
        columns.append("halfvec_send(vector)")
        joined = (
            "LEFT JOIN retrieval_chunkembedding AS encoded "
            "ON encoded.chunk_id = chunk.id AND encoded.document_id = chunk.document_id "
            f"AND encoded.embedder_id = {embedder_id:d} "
        )
    else:
        columns.append("NULL::bytea")
    rows = fetch_rows(
        "SELECT chunk.id, chunk.collection_id, language, CASE WHEN questions_edited THEN canonical_questions END, "
        f"{', '.join(columns)} FROM retrieval_chunk AS chunk "
        f"JOIN retrieval_document AS document ON document.id = chunk.document_id {joined}"
        "WHERE chunk.id = ANY(%s::bigint[])",
        [list(chunk_ids)],
    )
    found = {
        pk: StoredChunk(
            # `halfvec_send` returns two 16-bit header words, then big-endian half-precision numbers.
            vector=NO_VECTOR if sent is None else np.frombuffer(sent, ">f2", offset=4).astype(np.float32),
            collection_id=collection,
            configuration=configuration,
            language=language,
            term_weights=term_weights,
            given_questions=tuple(given or ()),
        )
        for pk, collection, language, given, configuration, term_weights, sent in rows
    }
    # Sums of floats depend on the order of addition, so the rows are put in the caller's order.
    return {pk: found[pk] for pk in chunk_ids if pk in found}


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
    "media_type": "document.media_type",
}
_SELECT = (
    f"SELECT {', '.join(_FIELDS.values())} FROM retrieval_chunk AS chunk "
    "JOIN retrieval_document AS document ON document.id = chunk.document_id "
    "JOIN retrieval_collection AS collection ON collection.id = chunk.collection_id "
)


def load_passages(chunk_ids: Iterable[int]) -> dict[int, Passage]:
    rows = fetch_rows(f"{_SELECT} WHERE chunk.id = ANY(%s::bigint[])", [list(chunk_ids)])
    return {row[0]: _build_passage(row) for row in rows}


def load_metadata(chunk_ids: Iterable[int]) -> dict[int, dict[str, object]]:
    rows = Chunk.objects.filter(pk__in=chunk_ids).values_list(
        "pk", "document__metadata", "document", "collection__slug"
    )
    return {pk: {**metadata, "document": document, "collection": slug} for pk, metadata, document, slug in rows}


def find_chunks_with_curator_question(question: str, given: Mapping[int, Sequence[str]]) -> frozenset[int]:
    """Return the chunks for which a curator entered this question, or a very similar one.

    ``given`` maps chunk ids to the curators' questions.
    """
    asked = normalize_question(question)
    found = {pk for pk, wordings in given.items() if asked in map(normalize_question, wordings)}
    calibration = find_current_calibration() if given and not found else None
    if calibration is None:
        return frozenset(found)
    try:
        vector = encode_query(question)
        for pk, wordings in given.items():
            alike = [wording for wording in wordings if have_same_kind_and_codes(question, wording)]
            if any(
                calibration.convert_to_likeness(float(vector @ encode_query(each))) >= LEAST_LIKENESS for each in alike
            ):
                found.add(pk)
    except RagsiteError as error:
        logger.warning("A question was compared with those of passages by its words alone: %s", error)
    return frozenset(found)


def load_neighbours(stretches: Sequence[Stretch], expand: int) -> dict[Place, Passage]:
    """Return the passages around those in ``stretches``, by document id and ordinal.

    A stretch is a passage and a range of text around it. The result has passages at most ``expand`` ordinals away from
    it, and passages that overlap the range, at most FARTHEST_PLACES ordinals away.
    """
    rows = fetch_rows(
        f"{_SELECT} JOIN unnest(%s::bigint[], %s::int[], %s::int[], %s::int[]) AS wanted(document_id, ordinal, first, "
        "past) ON wanted.document_id = chunk.document_id AND chunk.ordinal <> wanted.ordinal "
        f"AND chunk.ordinal BETWEEN wanted.ordinal - {FARTHEST_PLACES:d} AND wanted.ordinal + {FARTHEST_PLACES:d} "
        f"AND (abs(chunk.ordinal - wanted.ordinal) <= {expand:d} "
        'OR (chunk.start < wanted.past AND chunk."end" > wanted.first))',
        [list(column) for column in zip(*stretches, strict=True)],
    )
    return {get_passage_place(passage): passage for passage in map(_build_passage, rows)}


def _build_passage(row: Sequence[Any]) -> Passage:
    values = dict(zip(_FIELDS, row, strict=True))
    rows, start = values["blocks"], values["start"]
    values["heading_path"] = tuple(values["heading_path"])
    values["blocks"] = read_stored_blocks(rows, start)
    values["page_unit"] = get_page_unit(values["page_unit"])
    return Passage(**values)
