from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from django.db import DatabaseError

from chat.types import (
    AlternativePassage,
    VerifiedCitation,
)
from core.database import fetch_rows
from retrieval.text.chunking import drop_repeated_title, find_headings
from retrieval.types import Passage

logger = logging.getLogger(__name__)


Quoted = TypeVar("Quoted", VerifiedCitation, AlternativePassage)


def locate_quotations(quotations: Iterable[Quoted]) -> tuple[Quoted, ...]:
    """Return the quotations with the page and the headings where each quotation begins."""
    found = tuple(quotations)
    if not found:
        return found
    try:
        rows = fetch_rows(
            "SELECT document_id, pages, sections FROM retrieval_documenttext WHERE document_id = ANY(%s::bigint[])",
            [[each.passage.document_id for each in found]],
        )
    except DatabaseError as error:
        logger.warning("The pages of quotations were not looked up, those of their passages are shown: %s", error)
        return found
    outlines = {pk: (pages, sections) for pk, pages, sections in rows}
    return tuple(
        replace(each, passage=_locate_quotation(each, *outlines[each.passage.document_id]))
        if each.passage.document_id in outlines
        else each
        for each in found
    )


def _locate_quotation(quotation: Quoted, pages: list[list[int]], sections: list[tuple[int, int, str]]) -> Passage:
    passage, start = quotation.passage, quotation.start
    index = max(0, bisect_right(pages, start, key=lambda page: page[1]) - 1)
    return replace(
        passage,
        page=pages[index][0] if pages else None,
        heading_path=drop_repeated_title(passage.document_title, find_headings(sections, start)),
    )
