"""Answers in the documents' own words: the sentences that answer the question, picked, put in order and cited.

Needs no model beside the embedder, invents nothing, and works offline. It cannot reason over what it finds; it declines
when the best evidence is weak.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np
from asgiref.sync import sync_to_async

from chat.evidence import ScoredPart, score_parts
from chat.exceptions import NoAnswer
from chat.parts import Part, PartKind, parts_of
from chat.types import Source
from chat.vectors import vectors_or_none

LARGEST_EXCERPTS = 3
# A further part must come this close to the best one, and differ from those picked.
CLOSE_ENOUGH = 0.85
TOO_SIMILAR = 0.93
# A sentence is shown with those that follow it, up to this many characters: the answer often stands right behind the
# sentence that names the subject.
EXCERPT_CHARACTERS = 360
LIST_CHARACTERS = 700

_LEANS_BACK = re.compile(
    r"(?:it|its|they|their|this|that|these|those|he|she|his|her|then|so|therefore|otherwise|however|instead|both|neither"
    r"|hij|zij|ze|het|dit|dat|deze|die|haar|zijn|hun|dan|dus|daarom|daarna|daarvoor|anders|bij haar|bij hem)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class EvidenceThreshold:
    """Evidence below which the documents are taken not to answer. docs/quality.md has the figures behind the
    numbers."""

    score: float = 0.40
    coverage: float = 0.20


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Parts of one source that follow one another, shown as one: the document's text from ``start`` to ``end``."""

    source: Source
    start: int
    end: int
    kind: PartKind
    lead: str = ""

    @property
    def text(self) -> str:
        offset = self.source.block.start
        return self.source.block.content[self.start - offset : self.end - offset]


class ExtractiveGenerator:
    """An AnswerGenerator without a language model."""

    name = "extractive"

    def __init__(self, threshold: EvidenceThreshold | None = None) -> None:
        self._threshold = threshold or EvidenceThreshold()

    async def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """The excerpts, verbatim, one piece each. Raises: NoAnswer."""
        excerpts = await sync_to_async(self.excerpts, thread_sensitive=False)(question, sources)
        for number, excerpt in enumerate(excerpts):
            yield ("\n\n" if number else "") + _shown(excerpt)

    def excerpts(self, question: str, sources: Sequence[Source]) -> list[Excerpt]:
        """What is shown: the best excerpt first, as an answer begins, then the others in the order of the sources.

        Raises: NoAnswer when the evidence is weak.
        """
        parts = parts_of(sources)
        scored = score_parts(question, parts, vectors_or_none)
        if not scored or not self._is_strong(scored):
            raise NoAnswer
        picked: list[ScoredPart] = []
        for candidate in scored:
            if len(picked) == LARGEST_EXCERPTS or candidate.score < CLOSE_ENOUGH * scored[0].score:
                break
            if not any(_says_the_same(candidate, other) for other in picked):
                picked.append(candidate)
        excerpts = [_excerpt(parts, parts.index(found.part)) for found in picked]
        best, rest = excerpts[0], sorted(excerpts[1:], key=lambda excerpt: (excerpt.source.marker, excerpt.start))
        return _without_overlap([best, *rest])

    def _is_strong(self, scored: Sequence[ScoredPart]) -> bool:
        coverage = max(part.coverage for part in scored[:5])
        return scored[0].score >= self._threshold.score and coverage >= self._threshold.coverage


def _says_the_same(one: ScoredPart, other: ScoredPart) -> bool:
    if one.part.text == other.part.text:
        return True
    if one.vector is None or other.vector is None or one.part.kind is PartKind.ROW:
        return False
    return float(np.dot(one.vector, other.vector)) > TOO_SIMILAR


def _excerpt(parts: Sequence[Part], index: int) -> Excerpt:
    """A part with its surroundings, as far as it needs them and they belong to it."""
    part = parts[index]
    if part.kind is not PartKind.SENTENCE:
        return Excerpt(part.source, part.start, part.end, part.kind, part.lead)
    start, end = part.start, part.end
    leans_back = index > 0 and _belongs(parts[index - 1], part) and _LEANS_BACK.match(part.text.lstrip("-*• "))
    if leans_back and end - parts[index - 1].start <= EXCERPT_CHARACTERS:
        start = parts[index - 1].start
    last = part
    for following in parts[index + 1 :]:
        introduced = last.text.rstrip("*_ ").endswith(":")
        limit = LIST_CHARACTERS if introduced or (_is_item(following) and _is_item(last)) else EXCERPT_CHARACTERS
        if not _belongs(last, following, introduced=introduced) or following.end - start > limit:
            break
        end = following.end
        last = following
    return Excerpt(part.source, start, end, PartKind.SENTENCE)


def _belongs(one: Part, other: Part, *, introduced: bool = False) -> bool:
    if one.source is not other.source or one.heading != other.heading:
        return False
    return other.paragraph == one.paragraph or (introduced and other.paragraph == one.paragraph + 1)


def _is_item(part: Part) -> bool:
    return bool(re.match(r"[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]", part.text))


def _without_overlap(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    kept: list[Excerpt] = []
    for excerpt in excerpts:
        if not any(
            excerpt.source is other.source and excerpt.start < other.end and other.start < excerpt.end for other in kept
        ):
            kept.append(excerpt)
    return kept


def _shown(excerpt: Excerpt) -> str:
    marker = f"[{excerpt.source.marker}]"
    if excerpt.kind is PartKind.ROW and excerpt.lead:
        return f"{excerpt.lead}\n{excerpt.text}\n\n{marker}"
    # A marker at the end of a line of code or of a table row would become part of it.
    last_line = excerpt.text.rsplit("\n", 1)[-1].lstrip()
    if excerpt.kind is PartKind.CODE or last_line.startswith(("|", "```", "~~~")):
        return f"{excerpt.text}\n\n{marker}"
    return f"{excerpt.text} {marker}"
