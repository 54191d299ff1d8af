"""Answers in the documents' own words: the best passage, with the place closest to the question marked.

They need no model beside the embedder, invent nothing, and work offline. They do not reason over the passages; they
decline if the documents probably do not answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chat.answering.citations import find_markers
from chat.answering.evidence import Evidence, nearest_unit, places
from chat.answering.passage import Excerpt, cut_excerpt, find_marked, render
from chat.answering.units import QuotableUnit, UnitKind
from chat.answering.words import stem_set
from chat.exceptions import NoAnswer
from chat.types import ContextSource, VerifiedCitation
from retrieval.infrastructure.tracing import span
from retrieval.text.block import BlockKind

NAME = "extractive"

# A second passage is shown that comes as near to the question but for this much, and
NEARLY_AS_CLOSE = 0.05
# of whose words no more than this share stand in the first.
SAME_WORDS = 0.7


@dataclass(frozen=True, slots=True)
class Quotation:
    """An answer's text, and its citations: each marks the place of its passage that is closest to the question.
    ``is_row`` is true if the first citation is a row of a table.
    """

    text: str
    citations: tuple[VerifiedCitation, ...]
    is_row: bool


@span("composition")
def quote(question: str, sources: Sequence[ContextSource], evidence: Evidence) -> Quotation:
    """The best passage, and a second one that is nearly as good and says something else. Raises: NoAnswer if the
    documents probably do not answer.
    """
    if not evidence.is_answerable:
        raise NoAnswer
    shown: list[tuple[Excerpt, QuotableUnit]] = []
    for source in _candidates(sources, evidence):
        unit = nearest_unit(question, source)
        if unit is not None and not (shown and _say_the_same(unit, shown[0][1])):
            shown.append((cut_excerpt(question, unit), unit))
    if not shown:
        raise NoAnswer
    text = ""
    citations: list[VerifiedCitation] = []
    for excerpt, unit in shown:
        text += "\n\n" if text else ""
        piece = render(excerpt)
        citations += _citations(piece, len(text), excerpt, unit)
        text += piece
    unit = shown[0][1]
    is_row = unit.kind is UnitKind.ROW or unit.block.kind is BlockKind.RECORDS
    return Quotation(text, tuple(citations), is_row)


def _candidates(sources: Sequence[ContextSource], evidence: Evidence) -> Iterator[ContextSource]:
    """The best source that has anything to quote, and the second one if it is nearly as good. A passage to which a
    curator gave the question is returned alone.

    Sources that answer by themselves come first. The best one by rank may be in the question's language and about
    something else, while the source that makes the question answerable is in another language.
    """
    ranked = sorted(
        sources, key=lambda source: (source.marker not in evidence.alone, -source.block.score, source.marker)
    )
    best = list(islice(filter(places, ranked), 2))
    yield from best[:1]
    if len(best) < 2 or "given" in evidence.features:
        return
    first, second = (evidence.closeness.get(source.marker) for source in best)
    if first is not None and second is not None and second >= first - NEARLY_AS_CLOSE:
        yield best[1]


def _say_the_same(unit: QuotableUnit, first: QuotableUnit) -> bool:
    words, known = stem_set(unit.text), stem_set(first.source.block.best.content)
    return bool(words) and len(words & known) >= SAME_WORDS * len(words)


def _citations(piece: str, at: int, excerpt: Excerpt, unit: QuotableUnit) -> Iterator[VerifiedCitation]:
    """A citation of ``unit`` for each marker in ``piece``, the rendered excerpt, which begins at offset ``at`` of the
    answer.
    """
    marked = find_marked(piece, unit)
    block = excerpt.source.block
    for marker in find_markers(piece):
        yield VerifiedCitation(
            marker=marker.number,
            passage=block.passage_at(unit.start),
            quote=unit.text,
            start=unit.start,
            end=unit.end,
            marker_start=at + marker.start,
            marker_end=at + marker.end,
            support=1.0,
            verbatim=True,
            marked_start=None if marked is None else at + marked[0],
            marked_end=None if marked is None else at + marked[1],
        )
