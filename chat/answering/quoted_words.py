"""Finds quoted words in today's documents, for citations and for approved answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from core.database import fetch

# A quote that was found in the same version is not searched again.
_FIND = """
    SELECT quoted.number, documenttext.content_hash || ':' || documenttext.recipe,
           documenttext.content_hash || ':' || documenttext.recipe = quoted.version
           OR strpos(documenttext.text, quoted.quote) > 0
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY AS quoted(document, quote, version, number)
    JOIN retrieval_documenttext AS documenttext ON documenttext.document_id = quoted.document
"""


class Quoted(Protocol):
    """A row with a quote; ``text_version`` is the version of the text in which it was found, or empty."""

    document_id: int | None
    quote: str
    text_version: str


@dataclass(frozen=True, slots=True)
class FoundQuote:
    """A quote today.

    ``version`` is `DocumentText.version`, empty without a text; ``is_found``: the text contains the quote unchanged.
    """

    version: str = ""
    is_found: bool = False


def find_quotes(quoted: Sequence[Quoted]) -> list[FoundQuote]:
    """Return what today's documents say of each quote, in one query; none without quotes."""
    found = [FoundQuote()] * len(quoted)
    if not quoted:
        return found
    rows = fetch(
        _FIND,
        [
            [each.document_id for each in quoted],
            [each.quote for each in quoted],
            [each.text_version for each in quoted],
        ],
    )
    for number, version, is_found in rows:
        found[number - 1] = FoundQuote(version, is_found)
    return found
