"""Answers in the documents' own words: the sentences that answer the question, picked, put in order and cited.

Needs no model beside the embedder, invents nothing, and works offline. It cannot reason over what it finds; it declines
when the documents probably do not answer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from asgiref.sync import sync_to_async

from chat.exceptions import NoAnswer
from chat.grounding.citations import quoted_in_answer
from chat.grounding.code_spans import code_in
from chat.grounding.evidence.answerability import Evidence
from chat.grounding.evidence.parts import Part, PartKind
from chat.grounding.evidence.scoring import ScoredPart
from chat.grounding.evidence.weighing import evidence_for
from chat.types import Source

LARGEST_EXCERPTS = 3
# A further part must come this close to the best one, and differ from those picked.
CLOSE_ENOUGH = 0.85
TOO_SIMILAR = 0.93
# A sentence is shown with those that follow it, up to this many characters: the answer often stands right behind the
# sentence that names the subject.
EXCERPT_CHARACTERS = 360
LIST_CHARACTERS = 700

Weigh = Callable[[str, Sequence[Source]], Evidence]

_LEANS_BACK = re.compile(
    r"(?:it|its|they|their|this|that|these|those|he|she|his|her|then|so|therefore|otherwise|however|instead|both|neither"
    r"|hij|zij|ze|het|dit|dat|deze|die|haar|zijn|hun|dan|dus|daarom|daarna|daarvoor|anders|bij haar|bij hem)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Parts of one source that follow one another, shown as one: the document's text from ``start`` to ``end``.

    The document's own numbers in brackets are written so that they name no source; in code they are as they were.
    """

    source: Source
    start: int
    end: int
    kind: PartKind
    lead: str = ""

    @property
    def text(self) -> str:
        offset = self.source.block.start
        return quoted_in_answer(self.source.block.content[self.start - offset : self.end - offset])


class ExtractiveGenerator:
    """An AnswerGenerator without a language model."""

    name = "extractive"

    def __init__(self, weigh: Weigh = evidence_for) -> None:
        self._weigh = weigh

    async def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """The excerpts, verbatim, one piece each. Raises: NoAnswer."""
        excerpts = await sync_to_async(self.excerpts, thread_sensitive=False)(question, sources)
        before: Excerpt | None = None
        for excerpt in excerpts:
            if before is not None and _is_of_same_table(before, excerpt):
                yield "\n" + _shown(replace(excerpt, lead=""))
            else:
                yield ("\n\n" if before else "") + _shown(excerpt)
            before = excerpt

    def excerpts(self, question: str, sources: Sequence[Source]) -> list[Excerpt]:
        """What is shown: the best excerpt first, as an answer begins, then the others in the order of the sources.

        Raises: NoAnswer when the documents probably do not answer.
        """
        evidence = self._weigh(question, sources)
        parts, scored = evidence.parts, evidence.scored
        if not scored or not evidence.answerability.is_answerable:
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


def _says_the_same(one: ScoredPart, other: ScoredPart) -> bool:
    if one.part.text == other.part.text:
        return True
    if one.vector is None or other.vector is None or one.part.kind is PartKind.ROW:
        return False
    return float(np.dot(one.vector, other.vector)) > TOO_SIMILAR


def _excerpt(parts: Sequence[Part], index: int) -> Excerpt:
    """A part with its surroundings, as far as it needs them and they belong to it."""
    part = parts[index]
    if part.kind is PartKind.CODE and index > 0 and _introduces(parts[index - 1], part):
        # What a piece of code is for stands in the sentence that announces it.
        return Excerpt(part.source, parts[index - 1].start, part.end, part.kind)
    if part.kind is not PartKind.SENTENCE:
        return Excerpt(part.source, part.start, part.end, part.kind, part.lead)
    start, end = part.start, part.end
    leans_back = index > 0 and _belongs(parts[index - 1], part) and _LEANS_BACK.match(part.text.lstrip("-*• "))
    if leans_back and end - parts[index - 1].start <= EXCERPT_CHARACTERS:
        start = parts[index - 1].start
    last = part
    for following in parts[index + 1 :]:
        introduced = _announces(last)
        limit = LIST_CHARACTERS if introduced or (_is_item(following) and _is_item(last)) else EXCERPT_CHARACTERS
        if not _belongs(last, following, introduced=introduced) or following.end - start > limit:
            break
        end = following.end
        last = following
    return Excerpt(part.source, start, end, PartKind.SENTENCE)


def _introduces(one: Part, other: Part) -> bool:
    return one.kind is PartKind.SENTENCE and _announces(one) and _belongs(one, other, introduced=True)


def _announces(part: Part) -> bool:
    return part.text.rstrip("*_ ").endswith(":")


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


def _is_of_same_table(one: Excerpt, other: Excerpt) -> bool:
    """Whether the two are rows of one Markdown table, so that its head need not be said again."""
    if not one.lead or one.lead != other.lead or one.source is not other.source:
        return False
    first, second = sorted([one, other], key=lambda excerpt: excerpt.start)
    block = first.source.block
    lines = block.content[first.start - block.start : second.end - block.start].split("\n")
    return all(line.strip().startswith("|") and line.strip().endswith("|") for line in lines)


def _shown(excerpt: Excerpt) -> str:
    marker = f"[{excerpt.source.marker}]"
    text = f"{quoted_in_answer(excerpt.lead)}\n{excerpt.text}" if excerpt.lead else excerpt.text
    codes = code_in(text)
    if codes and codes[-1].is_open:
        # Code that is too long ends in its middle: the marker must not become a part of it.
        text = f"{text}\n\n{codes[-1].fence}"
    last_line = text.rsplit("\n", 1)[-1].strip()
    if len(last_line) > 1 and last_line[0] == "|" == last_line[-1] and last_line[-2] != "\\":
        # Behind a table row a marker would begin a cell of its own: it goes into the last one.
        return f"{text.rstrip()[:-1].rstrip()} {marker} |"
    # At the end of a line of code it would become part of it.
    if excerpt.kind is PartKind.CODE or last_line.startswith(("|", "```", "~~~")):
        return f"{text}\n\n{marker}"
    return f"{text} {marker}"
