"""What is told in several sections: whole where there is room, else the beginning of each. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

from chat.composing.excerpt import Excerpt
from chat.grounding.evidence.units import SourceSection, sections_of
from chat.grounding.words import stems
from chat.questions.types import Question, QuestionKind
from retrieval.text.blocks import Block, BlockKind
from retrieval.text.sentences import split_sentences

FEWEST_SUBSECTIONS, MOST_SUBSECTIONS = 2, 12
# A heading says what is asked for from this likeness on.
ALIKE = 0.4
LONGEST_PROCEDURE = 2800


def outline(question: Question, section: SourceSection, most: int) -> Excerpt | None:
    """A section that is told in subsections: all of it where there is room, else each heading with its first sentences.

    It is the section itself or one above it: of a procedure the largest that can be shown whole, else the one whose
    heading is nearest to the question. None where that has no subsections, and for a section that has the steps.
    """
    is_procedure = question.kind is QuestionKind.PROCEDURE
    if is_procedure and any(block.kind is BlockKind.STEPS for block in section.blocks):
        return None
    sections = sections_of(section.source)
    at = next(number for number, each in enumerate(sections) if each.start == section.start)
    above = [at]
    for number in range(at - 1, -1, -1):
        if sections[number].level < sections[above[-1]].level:
            above.append(number)
    if is_procedure:
        for number in reversed(above):
            below = _below(sections, number)
            if below and below[-1].end - sections[number].start <= most:
                return Excerpt(section.source, ((_begin(sections[number], below), below[-1].end),))
        if (procedure := _numbered_sections(section)) is not None:
            return procedure
    alike = {number: likeness(question.text, sections[number].heading) for number in above}
    nearest = max(above, key=lambda number: alike[number])
    at = nearest if alike[nearest] >= ALIKE else at
    section, below = sections[at], _below(sections, at)
    if len(below) < FEWEST_SUBSECTIONS:
        return None
    start = _begin(section, below)
    if below[-1].end - start <= most:
        return Excerpt(section.source, ((start, below[-1].end),))
    level = min(each.level for each in below)
    direct = [each for each in below if each.level == level]
    if len(direct) > MOST_SUBSECTIONS:
        return None
    share = most // (len(direct) + 1)
    content, offset = section.source.block.content, section.source.block.start
    spans = []
    if section.blocks:
        spans.append((start, _end_of_sentences(content, section.blocks[0].moved(-offset), share) + offset))
    for each in direct:
        end = _end_of_sentences(content, each.blocks[0].moved(-offset), share) + offset if each.blocks else each.end
        spans.append((each.start, end))
    return Excerpt(section.source, tuple(spans), goes_on=True)


def _numbered_sections(section: SourceSection) -> Excerpt | None:
    """The procedure whose steps are sections that the section belongs to: whole, or each step's beginning."""
    context = section.source.block
    for procedure in context.procedures:
        if not procedure.start <= section.start < procedure.end or procedure.start < context.start:
            continue
        end = min(procedure.end, context.end)
        if end - procedure.start <= LONGEST_PROCEDURE:
            return Excerpt(section.source, ((procedure.start, end),), goes_on=end < procedure.end)
        share = LONGEST_PROCEDURE // len(procedure.steps)
        starts = [*(start for start, _end in procedure.steps), end]
        spans = [
            (
                start,
                _end_of_lines(context.content, start - context.start, following - context.start, share) + context.start,
            )
            for start, following in pairwise(starts)
            if start < end
        ]
        return Excerpt(section.source, tuple(spans), goes_on=True)
    return None


def _end_of_lines(content: str, start: int, end: int, most: int) -> int:
    """The end of the last whole paragraph of ``content[start:end]`` within ``most`` characters; of the first line at
    least."""
    if end - start <= most:
        return end
    cut = content.rfind("\n\n", start, start + most)
    return cut if cut > start else content.find("\n", start, end)


def _below(sections: Sequence[SourceSection], number: int) -> list[SourceSection]:
    """The subsections of a section, at all levels."""
    return list(takewhile(lambda each: each.level > sections[number].level, sections[number + 1 :]))


def _begin(section: SourceSection, below: Sequence[SourceSection]) -> int:
    """Where the text of a section with subsections begins: behind its own heading."""
    return section.blocks[0].start if section.blocks else below[0].start


def likeness(question: str, heading: str) -> float:
    """How far a heading says what is asked for, 0 to 1: the words that both have, by the mean of their numbers."""
    asked, words = set(stems(question)), set(stems(heading))
    return 2 * len(asked & words) / (len(asked) + len(words)) if words and asked else 0.0


def _end_of_sentences(content: str, block: Block, most: int) -> int:
    """Where the last sentence of a block ends that lies within ``most`` characters; at least the first one."""
    end = block.start
    for _start, stop, _break in split_sentences(content, max(0, block.start), min(len(content), block.end)):
        if end > block.start and stop - block.start > most:
            break
        end = stop
    return end
