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
from chat.grounding.answerability import Evidence
from chat.grounding.blocks import BlockKind, QuotableBlock
from chat.grounding.citations import quote_for_answer
from chat.grounding.code_spans import find_code
from chat.grounding.relevance import ScoredBlock
from chat.grounding.weighing import gather_evidence
from chat.types import Source

LARGEST_EXCERPTS = 3
# A further block must come this close to the best one, and differ from those picked.
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
    """Blocks of one source that follow one another, shown as one: the document's text from ``start`` to ``end``.

    The document's own numbers in brackets are written so that they name no source; in code they are as they were.
    """

    source: Source
    start: int
    end: int
    kind: BlockKind
    table_head: str = ""

    @property
    def text(self) -> str:
        offset = self.source.block.start
        return quote_for_answer(self.source.block.content[self.start - offset : self.end - offset])


class ExtractiveGenerator:
    """An AnswerGenerator without a language model."""

    name = "extractive"

    def __init__(self, weigh: Weigh = gather_evidence) -> None:
        self._weigh = weigh

    async def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """The excerpts, verbatim, one piece each. Raises: NoAnswer."""
        previous: Excerpt | None = None
        for excerpt in await sync_to_async(self.excerpts, thread_sensitive=False)(question, sources):
            if previous is not None and _is_of_same_table(previous, excerpt):
                yield "\n" + _render(replace(excerpt, table_head=""))
            else:
                yield ("\n\n" if previous else "") + _render(excerpt)
            previous = excerpt

    def excerpts(self, question: str, sources: Sequence[Source]) -> list[Excerpt]:
        """What is shown: the best excerpt first, as an answer begins, then the others in the order of the sources.

        Raises: NoAnswer when the documents probably do not answer.
        """
        evidence = self._weigh(question, sources)
        blocks, scored = evidence.blocks, evidence.scored
        if not scored or not evidence.answerability.is_answerable:
            raise NoAnswer
        picked: list[ScoredBlock] = []
        for candidate in scored:
            if len(picked) == LARGEST_EXCERPTS or candidate.score < CLOSE_ENOUGH * scored[0].score:
                break
            if not any(_says_the_same(candidate, other) for other in picked):
                picked.append(candidate)
        best, *rest = (_excerpt(blocks, blocks.index(each.block)) for each in picked)
        rest.sort(key=lambda excerpt: (excerpt.source.marker, excerpt.start))
        kept: list[Excerpt] = []
        for excerpt in (best, *rest):
            if not any(
                excerpt.source is other.source and excerpt.start < other.end and other.start < excerpt.end
                for other in kept
            ):
                kept.append(excerpt)
        return kept


def _says_the_same(one: ScoredBlock, other: ScoredBlock) -> bool:
    if one.block.text == other.block.text:
        return True
    if one.vector is None or other.vector is None or one.block.kind is BlockKind.ROW:
        return False
    return float(np.dot(one.vector, other.vector)) > TOO_SIMILAR


def _excerpt(blocks: Sequence[QuotableBlock], index: int) -> Excerpt:
    """A block with its surroundings, as far as it needs them and they belong to it."""
    block = blocks[index]
    previous = blocks[index - 1] if index > 0 else None
    start, end = block.start, block.end
    if block.kind is not BlockKind.SENTENCE:
        if block.kind is BlockKind.CODE and previous and previous.kind is BlockKind.SENTENCE and _announces(previous):
            # What a piece of code is for stands in the sentence that announces it.
            start = previous.start if _belong_together(previous, block) else start
        return Excerpt(block.source, start, end, block.kind, block.table_head)
    if (
        previous
        and previous.paragraph == block.paragraph
        and _belong_together(previous, block)
        and _LEANS_BACK.match(block.text.lstrip("-*• "))
        and end - previous.start <= EXCERPT_CHARACTERS
    ):
        start = previous.start
    last = block
    for following in blocks[index + 1 :]:
        is_list = _announces(last) or (_is_item(following) and _is_item(last))
        limit = LIST_CHARACTERS if is_list else EXCERPT_CHARACTERS
        if not _belong_together(last, following) or following.end - start > limit:
            break
        end = following.end
        last = following
    return Excerpt(block.source, start, end, BlockKind.SENTENCE)


def _announces(block: QuotableBlock) -> bool:
    return block.text.rstrip("*_ ").endswith(":")


def _belong_together(one: QuotableBlock, following: QuotableBlock) -> bool:
    """Whether two blocks stand in one paragraph, or the first announces the next paragraph."""
    if one.source is not following.source or one.heading != following.heading:
        return False
    return following.paragraph - one.paragraph in ((0, 1) if _announces(one) else (0,))


def _is_item(block: QuotableBlock) -> bool:
    return bool(re.match(r"[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]", block.text))


def _is_of_same_table(one: Excerpt, other: Excerpt) -> bool:
    """Whether the two are rows of one Markdown table, so that its head need not be said again."""
    if not one.table_head or one.table_head != other.table_head or one.source is not other.source:
        return False
    first, second = sorted([one, other], key=lambda excerpt: excerpt.start)
    block = first.source.block
    lines = block.content[first.start - block.start : second.end - block.start].split("\n")
    return all(line.strip().startswith("|") and line.strip().endswith("|") for line in lines)


def _render(excerpt: Excerpt) -> str:
    """The excerpt with its marker, where that is no part of code and no table cell of its own."""
    marker = f"[{excerpt.source.marker}]"
    text = f"{quote_for_answer(excerpt.table_head)}\n{excerpt.text}" if excerpt.table_head else excerpt.text
    codes = find_code(text)
    if codes and codes[-1].is_open:
        # Code that is too long is cut in its middle.
        text = f"{text}\n\n{codes[-1].fence}"
    last_line = text.rsplit("\n", 1)[-1].strip()
    if len(last_line) > 1 and last_line[0] == "|" == last_line[-1] and last_line[-2] != "\\":
        return f"{text.rstrip()[:-1].rstrip()} {marker} |"
    if excerpt.kind is BlockKind.CODE or last_line.startswith(("|", "```", "~~~")):
        return f"{text}\n\n{marker}"
    return f"{text} {marker}"
