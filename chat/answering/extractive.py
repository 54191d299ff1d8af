from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chat.answering.checking.citations import find_markers
from chat.answering.evidence import Evidence
from chat.answering.excerpt_markdown import find_unit_in_markdown, render_excerpt
from chat.answering.excerpts import Excerpt
from chat.answering.results import (
    MOST_ALTERNATIVES,
    build_alternative_passage,
    build_excerpts,
    build_whole_passage_of_excerpt,
    count_alternatives_to_show,
)
from chat.answering.units import QuotableUnit, QuotableUnitKind
from chat.exceptions import NoAnswerFound
from chat.types import AlternativePassage, ContextSource, VerifiedCitation
from core.tracing import span
from retrieval.text.block import BlockKind

NAME = "extractive"


@dataclass(frozen=True, slots=True)
class Quotation:
    """An answer that quotes a document, with its citations.

    All citations cite the sentence or table row (``is_row``) closest to the question. ``alternatives`` are other
    passages to show.
    """

    text: str
    citations: tuple[VerifiedCitation, ...]
    is_row: bool
    alternatives: tuple[AlternativePassage, ...]


@span("composition")
def quote_documents(question: str, results: Sequence[ContextSource], evidence: Evidence) -> Quotation:
    """Return an answer that quotes the best passage, with other passages of a similar score.

    Raises: NoAnswerFound if the documents probably do not answer the question.
    """
    if not evidence.is_answerable:
        raise NoAnswerFound
    found = build_excerpts(question, results, evidence, is_answered=True)
    first = next(found, None)
    if first is None:
        raise NoAnswerFound
    excerpt, unit = first
    text = render_excerpt(excerpt)
    alternatives: list[AlternativePassage] = []
    if "given" not in evidence.features:
        whole = build_whole_passage_of_excerpt(question, excerpt)
        alternatives += [whole] if whole is not None else []
        alternatives += (
            build_alternative_passage(*each) for each in islice(found, count_alternatives_to_show(results))
        )
    return Quotation(
        text,
        tuple(_build_citations(text, excerpt, unit)),
        unit.kind is QuotableUnitKind.ROW or unit.block.kind is BlockKind.RECORDS,
        tuple(alternatives[:MOST_ALTERNATIVES]),
    )


def _build_citations(text: str, excerpt: Excerpt, unit: QuotableUnit) -> Iterator[VerifiedCitation]:
    marked = find_unit_in_markdown(text, unit)
    block = excerpt.source.block
    for marker in find_markers(text):
        yield VerifiedCitation(
            marker=marker.number,
            passage=block.passage_at(unit.start),
            quote=unit.text,
            start=unit.start,
            end=unit.end,
            marker_start=marker.start,
            marker_end=marker.end,
            support=1.0,
            verbatim=True,
            marked_start=None if marked is None else marked[0],
            marked_end=None if marked is None else marked[1],
        )
