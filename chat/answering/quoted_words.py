"""Find the quotations of stored answers in the current documents, or similar words if a quotation is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from core.database import fetch_rows
from retrieval.text.sentences import split_sentences

# A quote is not searched again in the version that contained it. White space is ignored, because a new extraction may
# break lines elsewhere.
_FIND = """
    SELECT quoted.number, documenttext.content_hash || ':' || documenttext.recipe,
           CASE WHEN documenttext.content_hash || ':' || documenttext.recipe = quoted.version THEN 2
                WHEN strpos(documenttext.text, quoted.quote) > 0 THEN 2
                WHEN strpos(translate(documenttext.text, E' \\n\\t', ''),
                            translate(quoted.quote, E' \\n\\t', '')) > 0 THEN 1
                ELSE 0 END
    FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY AS quoted(document, quote, version, number)
    JOIN retrieval_documenttext AS documenttext ON documenttext.document_id = quoted.document
"""


class RowWithQuote(Protocol):
    """Protocol of rows with a quote. ``text_version``: the last document version with the quote, or empty."""

    document_id: int | None
    quote: str
    text_version: str


@dataclass(frozen=True, slots=True)
class FoundQuote:
    """The result of a search for a quote in the current text of a document.

    - ``version``: the `DocumentText.version` of the text; empty if the document has no text.
    - ``is_found``: the text contains exactly the quote.
    - ``has_same_words``: the text contains the quote, perhaps with other white space.
    """

    version: str = ""
    is_found: bool = False
    has_same_words: bool = False


def find_quotes_in_current_texts(quoted: Sequence[RowWithQuote]) -> list[FoundQuote]:
    """Return for each quote whether the current text of its document contains it. This takes at most one query."""
    found = [FoundQuote()] * len(quoted)
    if not quoted:
        return found
    rows = fetch_rows(
        _FIND,
        [
            [each.document_id for each in quoted],
            [each.quote for each in quoted],
            [each.text_version for each in quoted],
        ],
    )
    for number, version, likeness in rows:
        found[number - 1] = FoundQuote(version, likeness == 2, likeness > 0)
    return found


# Select the passages that rank highest for the words of the quote. The score of a passage in the quote's own section is
# multiplied by 1.25.
_FIND_NEAR = """
    WITH quoted AS (
        SELECT number, document, section, greatest(3, 2 + length(quote) / 500) AS most,
               replace(plainto_tsquery(coalesce((
                   SELECT nullif(configuration, '') FROM retrieval_chunk WHERE document_id = document LIMIT 1
               ), 'simple')::regconfig, quote)::text, '&', '|')::tsquery AS words
        FROM unnest(%s::bigint[], %s::text[], %s::text[]) WITH ORDINALITY AS given(document, quote, section, number)
    )
    SELECT number, content, start FROM quoted CROSS JOIN LATERAL (
        SELECT content, start FROM retrieval_chunk WHERE document_id = quoted.document
        ORDER BY ts_rank(search_vector, words) * CASE array_to_string(heading_path, ' › ')
                     WHEN section THEN 1.25 ELSE 1 END DESC, ordinal
        LIMIT quoted.most
    ) AS near
    ORDER BY number, start
"""
# A passage with a smaller share of the quote's words is about something else.
LEAST_LIKENESS = 0.4
_GAP = 3


@dataclass(frozen=True, slots=True)
class SimilarText:
    """The words in the current text of a document that are most similar to a quote.

    ``text`` begins at ``start`` in the document.
    """

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class RowWithQuoteAndSection(RowWithQuote, Protocol):
    section: str


def find_similar_texts(quoted: Sequence[RowWithQuoteAndSection]) -> list[SimilarText | None]:
    """Return for each quote the most similar words in the current text of its document; None if there are none.

    This takes at most one query.
    """
    found: list[list[SimilarText]] = [[] for _ in quoted]
    if not quoted:
        return []
    rows = fetch_rows(
        _FIND_NEAR,
        [[each.document_id for each in quoted], [each.quote for each in quoted], [each.section for each in quoted]],
    )
    for number, content, start in rows:
        found[number - 1].append(SimilarText(content, start))
    return [choose_nearest(each.quote, places) for each, places in zip(quoted, found, strict=True)]


def choose_nearest(quote: str, passages: Sequence[SimilarText]) -> SimilarText | None:
    """Return the sentences whose words are most similar to the quote; None if all are below LEAST_LIKENESS."""
    wanted = Counter(quote.lower().split())
    best, most = None, LEAST_LIKENESS
    for passage in _join_neighbours(passages):
        for start, end in _list_windows(passage.text, len(quote)):
            words = Counter(passage.text[start:end].lower().split())
            total = words.total() + wanted.total()
            likeness = 2 * (words & wanted).total() / total if total else 0.0
            if likeness > most:
                best, most = SimilarText(passage.text[start:end], passage.start + start), likeness
    return best


def _join_neighbours(passages: Sequence[SimilarText]) -> list[SimilarText]:
    joined: list[SimilarText] = []
    for passage in passages:
        last = joined[-1] if joined else None
        if last is None or passage.start > last.end + _GAP:
            joined.append(passage)
        elif passage.end > last.end:
            between = " " * (passage.start - last.end)
            joined[-1] = SimilarText(last.text + between + passage.text[max(0, last.end - passage.start) :], last.start)
    return joined


def _list_windows(text: str, length: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of single sentences, and of successive ones up to about 1.5 times ``length``."""
    sentences = [(start, end) for start, end, _break in split_sentences(text, 0, len(text))]
    for first, (start, _end) in enumerate(sentences):
        for number, (_start, end) in enumerate(sentences[first:]):
            if number and end - start > 1.5 * length + 40:
                break
            yield start, end
