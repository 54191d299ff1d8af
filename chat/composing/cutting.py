"""How much is shown around the unit that answers: the sentence and its value, the block, or the section. PURE."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from chat.composing.excerpt import Excerpt, Span
from chat.composing.outline import outline
from chat.grounding.evidence.units import QuotableUnit, SourceSection, UnitKind
from chat.grounding.words import stems
from chat.questions.analysis import is_same_question
from chat.questions.presence import find_answer_values
from chat.questions.types import Question, QuestionKind, ValueKind
from chat.types import ContextSource
from retrieval.text.blocks import Block, BlockKind
from retrieval.text.blocks.outline import shorten, split_items
from retrieval.text.sentences import split_sentences

# The most characters that are shown of one place, by what is asked.
LENGTHS = {
    QuestionKind.FACT: 320,
    QuestionKind.YES_NO: 480,
    QuestionKind.DEFINITION: 560,
    QuestionKind.CODE: 500,
    QuestionKind.REASON: 700,
    QuestionKind.COMPARISON: 1200,
    QuestionKind.LIST: 1500,
    QuestionKind.PROCEDURE: 1800,
    QuestionKind.COUNT: 400,
    QuestionKind.SUPERLATIVE: 400,
    QuestionKind.OTHER: 700,
}
_SHORT = {QuestionKind.FACT, QuestionKind.COUNT, QuestionKind.SUPERLATIVE}
_WHOLE = {QuestionKind.LIST, QuestionKind.PROCEDURE}
# The most that is shown of a section that is about nothing but what is asked.
LONGEST_SECTION = 900
# Characters between a sentence and the piece of code that it announces.
LARGEST_GAP = 12
LONGEST_TITLE = 80

_LEANS_BACK = re.compile(
    r"(?:it|its|they|their|this|that|these|those|he|she|his|her|then|so|therefore|otherwise|however|instead|both|neither"
    r"|hij|zij|ze|het|dit|dat|deze|die|haar|zijn|hun|dan|dus|daarom|daarna|daarvoor|anders|bij haar|bij hem)\b",
    re.IGNORECASE,
)


def cut_excerpt(question: Question, unit: QuotableUnit) -> Excerpt:
    """What is shown where ``unit`` is the best place: a fact with its value set off, what only its heading names with
    its heading."""
    excerpt = _cut(question, unit)
    value = _find_value(question, unit) if question.kind in _SHORT and excerpt.holds(unit.start, unit.end) else None
    return _with_heading(question, unit, excerpt) if value is None else replace(excerpt, value=value)


def _find_value(question: Question, unit: QuotableUnit) -> Span | None:
    """The only value in the unit that answers the question; None where there are several: nobody can tell which; and
    none for a role ("a nurse"), which may do something else in the sentence than what is asked for. Under a heading
    that asks the same, what opens the section answers: there it must be the only one of the section."""
    values = {unit.text[start:end]: (start, end) for start, end in find_answer_values(question, unit.text)}
    if len(values) != 1:
        return None
    if is_same_question(question, unit.section.heading):
        content, offset = unit.source.block.content, unit.source.block.start
        below = content[max(0, unit.section.blocks[0].start - offset) : unit.section.end - offset]
        if not unit.opens or len(find_answer_values(question, below)) > 1:
            return None
    ((start, end),) = values.values()
    if question.expects is ValueKind.PERSON and unit.text[start].islower():
        return None
    return unit.start + start, unit.start + end


def _cut(question: Question, unit: QuotableUnit) -> Excerpt:
    most = LENGTHS[question.kind]
    section = unit.section
    if is_same_question(question, section.heading) and section.end - section.blocks[0].start <= LONGEST_SECTION:
        return Excerpt(unit.source, tuple((_below_question(unit.source, block), block.end) for block in section.blocks))
    if unit.kind is UnitKind.ROW and unit.block.kind is BlockKind.TABLE and not _names_row(question, unit):
        return _within(replace(unit, kind=UnitKind.WHOLE), LONGEST_SECTION)
    if question.kind in _SHORT or unit.kind is UnitKind.ROW or unit.block.kind is BlockKind.RECORDS:
        return _about_section(question, section) or _around(unit, most, question)
    if question.kind is QuestionKind.CODE and unit.kind is not UnitKind.CODE and (code := _code_behind(unit)):
        return Excerpt(unit.source, ((unit.start, unit.end), (code.start, code.end)))
    if question.kind is QuestionKind.LIST and unit.kind is UnitKind.WHOLE:
        return _within(unit, most)
    if question.kind in _WHOLE and (sections := outline(question, section, most)) is not None:
        return sections
    if section.end - section.blocks[0].start <= most:
        return Excerpt(unit.source, tuple((block.start, block.end) for block in section.blocks))
    return _within(unit, most)


def _below_question(source: ContextSource, block: Block) -> int:
    """Where a block begins without the question that it answers."""
    if block.kind is not BlockKind.QUESTION or block.lead_in is None:
        return block.start
    content, offset = source.block.content, source.block.start
    below = content[max(0, block.lead_in[1] - offset) : max(0, block.end - offset)]
    return block.lead_in[1] + len(below) - len(below.lstrip()) if below.strip() else block.start


def _with_heading(question: Question, unit: QuotableUnit, excerpt: Excerpt) -> Excerpt:
    """The excerpt under its heading, where only the heading names what is asked for, or says what it is ("E-041 Dry
    running")."""
    if is_same_question(question, unit.section.heading):
        # It would stand below the question again.
        return excerpt
    if not unit.heading or excerpt.start < unit.section.blocks[0].start or unit.block.kind is BlockKind.RECORDS:
        return excerpt
    content, offset = unit.source.block.content, unit.source.block.start
    shown = set(stems(" ".join(content[start - offset : end - offset] for start, end in excerpt.spans)))
    topic, heading = set(stems(question.topic)), set(stems(unit.heading))
    says_what_it_is = question.kind is QuestionKind.DEFINITION and topic <= heading and bool(heading - topic - shown)
    return replace(excerpt, heading=unit.heading) if (topic & heading) - shown or says_what_it_is else excerpt


def _names_row(question: Question, unit: QuotableUnit) -> bool:
    """Whether the question has a word of the row that the table's head and its heading do not have: it asks for this
    row rather than for the table."""
    asked, row = set(stems(question.text)), set(stems(unit.text))
    return bool((asked & row) - set(stems(f"{unit.heading} {unit.table_head}")))


def _about_section(question: Question, section: SourceSection) -> Excerpt | None:
    """Of a section that is about nothing but what is asked ("Parking": What does parking cost?) all that holds values
    of the kind asked for; None for other sections, and where that is too much to show."""
    topic, heading = set(stems(question.topic)), set(stems(section.heading))
    if question.expects is None or not topic or not topic <= heading:
        return None
    content, offset = section.source.block.content, section.source.block.start
    spans = [
        (block.start, block.end)
        for block in section.blocks
        if find_answer_values(question, content[max(0, block.start - offset) : max(0, block.end - offset)])
    ]
    if not spans or sum(end - start for start, end in spans) > LONGEST_SECTION:
        return None
    return Excerpt(section.source, tuple(spans))


def _code_behind(unit: QuotableUnit) -> Block | None:
    """The piece of code that stands right behind a sentence or an item, which is what it speaks of."""
    behind = (block for block in unit.section.blocks if block.kind is BlockKind.CODE and block.start >= unit.end)
    code = next(behind, None)
    return code if code is not None and code.start - unit.end <= LARGEST_GAP else None


def _around(unit: QuotableUnit, most: int, question: Question) -> Excerpt:
    """A sentence with those it needs, an item with what introduces it, a row with the head of its table."""
    if unit.kind is UnitKind.CODE:
        return _within(unit, most)
    if unit.kind is UnitKind.ROW:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head)
    if unit.kind is UnitKind.ITEM:
        lead_in = unit.block.lead_in
        spans = (lead_in, (unit.start, unit.end)) if lead_in is not None else ((unit.start, unit.end),)
        return Excerpt(unit.source, spans)
    sentences = _sentences(unit)
    first = last = sentences.index((unit.start, unit.end))
    if question.expects is not None and not find_answer_values(question, unit.text):
        # The value that is asked for often stands beside the sentence that names the subject.
        first, last = _reach_value(question, unit, sentences, first, most)
    if (
        first > 0
        and _LEANS_BACK.match(unit.text.lstrip("-*• "))
        and sentences[last][1] - sentences[first - 1][0] <= most
    ):
        first -= 1
    while last + 1 < len(sentences) and sentences[last + 1][1] - sentences[first][0] <= most:
        last += 1
    return Excerpt(unit.source, ((sentences[first][0], sentences[last][1]),))


def _reach_value(
    question: Question, unit: QuotableUnit, sentences: Sequence[Span], at: int, most: int
) -> tuple[int, int]:
    """The numbers of the first and the last sentence from the unit to the nearest one that holds such a value."""
    content, offset = unit.source.block.content, unit.source.block.start
    for distance in range(1, len(sentences)):
        for number in (at + distance, at - distance):
            if not 0 <= number < len(sentences):
                continue
            first, last = min(at, number), max(at, number)
            if sentences[last][1] - sentences[first][0] > most:
                continue
            start, end = sentences[number]
            if find_answer_values(question, content[start - offset : end - offset]):
                return first, last
    return at, at


def _within(unit: QuotableUnit, most: int) -> Excerpt:
    """The unit's block, and the blocks beside it in its section as far as there is room; shortened if too long."""
    blocks = unit.section.blocks
    first = last = blocks.index(unit.block)
    if unit.block.end - unit.block.start > most:
        return _shortened(unit, most)
    if first > 0 and _is_title(unit.source, blocks[first - 1]):
        first -= 1
    while last + 1 < len(blocks) and blocks[last + 1].end - blocks[first].start <= most:
        if _is_title(unit.source, blocks[last + 1]):
            break
        last += 1
    while first > 0 and blocks[last].end - blocks[first - 1].start <= most:
        if _is_title(unit.source, blocks[first]):
            break
        first -= 1
    return Excerpt(unit.source, tuple((block.start, block.end) for block in blocks[first : last + 1]))


def _is_title(source: ContextSource, block: Block) -> bool:
    """Whether a block is a line that reads like a title: short, of one line, and without a full stop. In a PDF the
    entries of a list of codes begin so."""
    text = source.block.content[max(0, block.start - source.block.start) : max(0, block.end - source.block.start)]
    is_line = block.kind is BlockKind.PARAGRAPH and 0 < len(text) <= LONGEST_TITLE and "\n" not in text.strip()
    return is_line and text.rstrip()[-1:] not in ".:;,!?"


def _shortened(unit: QuotableUnit, most: int) -> Excerpt:
    """Of a block that is too long: what stands around the unit, or of a list as a whole its beginning and outline."""
    content, offset = unit.source.block.content, unit.source.block.start
    if unit.kind in (UnitKind.WHOLE, UnitKind.CODE):
        shown = shorten(content, unit.block, most, offset)
        return Excerpt(unit.source, shown.spans, goes_on=shown.goes_on)
    if unit.kind is UnitKind.SENTENCE:
        pieces = _sentences(unit)
    else:
        pieces = split_items(content, unit.block, offset)
    at = next((number for number, (start, end) in enumerate(pieces) if start <= unit.start < end), None)
    if at is None:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head)
    first = last = at
    while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= most:
        last += 1
    while first > 0 and pieces[last][1] - pieces[first - 1][0] <= most:
        first -= 1
    spans: tuple[Span, ...] = ((pieces[first][0], pieces[last][1]),)
    if unit.block.lead_in is not None and unit.block.lead_in[0] >= offset and unit.kind is not UnitKind.SENTENCE:
        spans = (unit.block.lead_in, *spans)
    return Excerpt(unit.source, spans, table_head=unit.table_head)


def _sentences(unit: QuotableUnit) -> list[Span]:
    """The sentences of the unit's paragraph."""
    content, offset = unit.source.block.content, unit.source.block.start
    start, end = max(0, unit.block.start - offset), min(len(content), unit.block.end - offset)
    sentences = [(first + offset, last + offset) for first, last, _break in split_sentences(content, start, end)]
    return sentences if (unit.start, unit.end) in sentences else [(unit.start, unit.end)]
