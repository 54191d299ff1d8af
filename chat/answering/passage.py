"""Chooses the part of a passage that an answer shows, and writes it as Markdown. PURE.

It is the passage's section if that fits a screen, else the text around the place that is closest to the question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from textwrap import dedent

from chat.answering.checking.citations import find_code, quote_for_answer
from chat.answering.checking.words import stems
from chat.answering.units import QuotableUnit, SourceSection, UnitKind, as_markdown, blocks_of, sections_of
from chat.types import ContextSource
from retrieval.text.block import Block, BlockKind
from retrieval.text.block_items import read_cells, split_items
from retrieval.text.markup import open_notes, opens_note, strip_markup
from retrieval.text.sentences import split_sentences

Span = tuple[int, int]

# About a screen of prose. A list, a procedure, a table and code are of use only as a whole, and may be longer.
LONGEST_PROSE = 900
LONGEST_BLOCK = 2_000
# An opening and its sub-sections are shown together up to this length, in characters.
LONGEST_OPENING = 1_400
# Only the last sentence can announce what follows; this many characters contain it.
LONGEST_ANNOUNCEMENT = 240
# Of a table that is longer, this much is shown around the marked row.
LONGEST_ROWS = 700


# In the last sentence of a text, these words announce what follows.
_ANNOUNCEMENT = re.compile(
    r":|\b(?:as follows|following|below|these steps|als volgt|volgende|hieronder|deze stappen)\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?]\s")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of one source that is shown: the document's text at ``spans``, in order, without what lies between them.

    ``table_head`` is shown above rows cut off from it, ``heading`` above a text that needs it. ``goes_on`` is true if
    the section is longer than the excerpt.
    """

    source: ContextSource
    spans: tuple[Span, ...]
    heading: str = ""
    table_head: str = ""
    goes_on: bool = False

    def shows(self, unit: QuotableUnit) -> bool:
        """Return whether the excerpt contains the unit."""
        return self.source.block.best.document_id == unit.source.block.best.document_id and any(
            start <= unit.start and unit.end <= end for start, end in self.spans
        )


def cut_excerpt(question: str, unit: QuotableUnit, *, is_card: bool = False) -> Excerpt:
    """Cut the excerpt around ``unit``, the place of a passage closest to the question.

    A section that fits a screen is shown whole, with as many of its sub-sections as fit. A card beside an answer adds
    the other short sections of the passage. A longer section is cut to the unit's block, the blocks that it announces,
    and as many blocks around them as fit. A longer block is cut to what fits around the unit: a procedure from its
    first step, a list with its lead-in, rows with their header.
    """
    if unit.block.kind is BlockKind.RECORDS:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head)
    section = list(unit.section.blocks)
    first, last = 0, len(section) - 1
    if _fits(unit.source, section):
        sections = _with_further_sections(unit, LONGEST_PROSE if is_card else 0)
        if len(sections) > 1:
            return _across_sections(question, unit, sections)
    else:
        at = section.index(unit.block)
        first, last = _with_announced(unit.source, section, at, at)
        if _length(unit.source, section[first].start, section[last].end) > LONGEST_BLOCK:
            return _within_block(unit)
        first, last = _grown(unit.source, section, first, last)
    spans = _clipped(unit.source, [(block.start, block.end) for block in section[first : last + 1]])
    is_cut = section[last].end > unit.source.block.end
    return _with_heading(question, unit, spans, goes_on=is_cut or last + 1 < len(section))


def _length(source: ContextSource, start: int, end: int) -> int:
    """Return the number of characters that a reader sees: addresses of links are not counted."""
    text = text_of(source, start, end)
    return end - start if "](" not in text else end - start - len(text) + len(strip_markup(text, all_links=True))


def _fits(source: ContextSource, blocks: Sequence[Block]) -> bool:
    length = _length(source, blocks[0].start, blocks[-1].end)
    return length <= (LONGEST_PROSE if len(blocks) > 1 or blocks[0].kind is BlockKind.PARAGRAPH else LONGEST_BLOCK)


def _with_further_sections(unit: QuotableUnit, longest_passage: int) -> Sequence[SourceSection]:
    """Return the unit's section with as many of the sub-sections behind it as fit.

    If all sections of the unit's passage have at most ``longest_passage`` characters together, all are returned.
    """
    sections, best = sections_of(unit.source), unit.source.block.best
    first = last = sections.index(unit.section)
    inside = [n for n, each in enumerate(sections) if each.blocks[0].start < best.end and each.end > best.start]
    if first in inside and (
        _length(unit.source, sections[inside[0]].blocks[0].start, sections[inside[-1]].end) <= longest_passage
    ):
        first, last = inside[0], inside[-1]
    level = unit.section.level
    for each in sections[last + 1 :]:
        if level is None or each.level is None or each.level <= level:
            break
        if _length(unit.source, sections[first].blocks[0].start, each.end) > LONGEST_OPENING:
            break
        last += 1
    return sections[first : last + 1]


def _across_sections(question: str, unit: QuotableUnit, sections: Sequence[SourceSection]) -> Excerpt:
    """Return the excerpt of several sections. The first one's heading is shown unless the unit is in it."""
    start, end = sections[0].blocks[0].start, sections[-1].end
    spans = _clipped(unit.source, [(start, end)])
    if sections[0] == unit.section:
        return _with_heading(question, unit, spans, goes_on=end > unit.source.block.end)
    return Excerpt(unit.source, spans, heading=sections[0].heading, goes_on=end > unit.source.block.end)


def _with_announced(source: ContextSource, section: Sequence[Block], first: int, last: int) -> tuple[int, int]:
    """The range of blocks, extended by the block that announces its first, and those that its last announces."""
    while first > 0 and _announces(source, section[first - 1]):
        first -= 1
    while last + 1 < len(section) and (
        _announces(source, section[last]) or _introduces(section[last], section[last + 1])
    ):
        last += 1
    return first, last


def _announces(source: ContextSource, block: Block) -> bool:
    """Return whether the last sentence announces what follows: "as follows", "these steps", a colon."""
    if block.kind is not BlockKind.PARAGRAPH:
        return text_of(source, block.start, block.end).rstrip(" \n*_").endswith(":")
    text = text_of(source, max(block.start, block.end - LONGEST_ANNOUNCEMENT), block.end)
    return bool(_ANNOUNCEMENT.search(_SENTENCE_END.split(text)[-1]))


def _introduces(block: Block, following: Block) -> bool:
    """Return whether a short text introduces the table behind it, as in "The hours differ by ward"."""
    is_short = block.kind is BlockKind.PARAGRAPH and block.end - block.start <= LONGEST_ANNOUNCEMENT
    return is_short and following.kind is BlockKind.TABLE


def _grown(source: ContextSource, section: Sequence[Block], first: int, last: int) -> tuple[int, int]:
    """The range of blocks, extended by blocks before it, then by blocks after it, as far as they fit."""
    while first > 0 and _length(source, section[first - 1].start, section[last].end) <= LONGEST_PROSE:
        first -= 1
    while last + 1 < len(section) and _length(source, section[first].start, section[last + 1].end) <= LONGEST_PROSE:
        last += 1
    return first, last


def _within_block(unit: QuotableUnit) -> Excerpt:
    """The sentences, items, rows or lines around the unit, in a block that is too long."""
    content, offset = unit.source.block.content, unit.source.block.start
    block = unit.block.moved(-offset)
    if unit.kind is UnitKind.CODE:
        return Excerpt(unit.source, ((unit.start, unit.end),), goes_on=True)
    if unit.kind is UnitKind.SENTENCE:
        found = split_sentences(content, max(0, block.start), min(len(content), block.end))
        pieces = [(start + offset, end + offset) for start, end, _break in found]
    else:
        pieces = split_items(content, unit.block, offset)
    first = last = next((at for at, (start, end) in enumerate(pieces) if start <= unit.start < end), -1)
    if first < 0:
        return Excerpt(unit.source, ((unit.start, unit.end),), table_head=unit.table_head, goes_on=True)
    longest = LONGEST_ROWS if unit.kind is UnitKind.ROW else LONGEST_PROSE
    while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= longest:
        last += 1
    while first > 0 and pieces[last][1] - pieces[first - 1][0] <= longest:
        first -= 1
    if unit.block.kind is BlockKind.STEPS:
        # A reader needs a procedure from its first step.
        first = 0
        while last + 1 < len(pieces) and pieces[last + 1][1] - pieces[first][0] <= LONGEST_BLOCK:
            last += 1
    spans = [(pieces[first][0], pieces[last][1])]
    lead_in = unit.block.lead_in
    if unit.kind is UnitKind.ITEM and lead_in is not None and lead_in[0] >= offset and first > 0:
        spans.insert(0, lead_in)
    table_head = unit.table_head if first > 0 else ""
    return Excerpt(unit.source, tuple(spans), table_head=table_head, goes_on=last + 1 < len(pieces))


def _clipped(source: ContextSource, spans: Sequence[Span]) -> tuple[Span, ...]:
    """The spans as far as they lie in the source."""
    first, last = source.block.start, source.block.end
    inside = ((max(start, first), min(end, last)) for start, end in spans)
    return tuple((start, end) for start, end in inside if start < end)


def _with_heading(question: str, unit: QuotableUnit, spans: tuple[Span, ...], *, goes_on: bool) -> Excerpt:
    """The excerpt under its heading, if only the heading contains one of the question's words, or if it announces a
    list that begins the excerpt: what a warranty does not cover reads like what it does.
    """
    shown = set(stems(" ".join(text_of(unit.source, start, end) for start, end in spans)))
    heading = unit.section.heading
    begins = next((block for block in unit.section.blocks if block.start <= spans[0][0] < block.end), None)
    lists = (BlockKind.LIST, BlockKind.STEPS)
    announces = begins is not None and begins.kind in lists and begins.lead_in is None
    needs_heading = announces or bool((set(stems(question)) & set(stems(heading))) - shown)
    return Excerpt(unit.source, spans, heading=heading if needs_heading else "", goes_on=goes_on)


def text_of(source: ContextSource, start: int, end: int) -> str:
    """The document's ``text[start:end]``, as far as it lies in the source."""
    offset = source.block.start
    return source.block.content[max(0, start - offset) : max(0, end - offset)]


# Excerpts as the text of an answer: Markdown, with a marker behind each stretch of a document.

LONGEST_MARKER = len(" … [999]")
# What says that a block is longer than what is shown.
GOES_ON = "…"
# Headings inside an excerpt are shown as lines in bold type: they are no headings of the answer.
_HTML_TABLE = re.compile(r"(?:<table\b|<tr\b).*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)
_ROW = re.compile(r"\|.*\|")
_RULE = re.compile(r"\|(?=[ :|]*+-)[ :|-]*+")
# Of Jekyll, Liquid, Hugo and ERB: what they would write there is not known.
_TEMPLATE_TAG = re.compile(r"\{%[^{}\n]{0,300}%\}|\{\{[^{}\n]{0,300}\}\}|<%[^<>\n]{0,300}%>")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*+\n){2,}+")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]++([^\n]*+)$", re.MULTILINE)


def render(excerpt: Excerpt, *, is_cited: bool = True) -> str:
    """Return the excerpt as Markdown.

    With ``is_cited``, a marker follows each span: inside the last cell of a table, and below code.
    """
    pieces = list(_stretches(excerpt))
    if excerpt.table_head:
        pieces[0] = f"{quote_for_answer(excerpt.table_head)}\n{pieces[0]}"
    else:
        pieces = [_without_bars(piece) for piece in pieces]
    if excerpt.heading:
        pieces[0] = f"**{quote_for_answer(excerpt.heading.replace('*', ''))}**\n\n{pieces[0]}"
    if excerpt.goes_on:
        pieces[-1] = _with_ellipsis(pieces[-1].rstrip())
    marker = f"[{excerpt.source.marker}]" if is_cited else ""
    return "\n\n".join(_with_marker(piece, marker) for piece in pieces)


def find_marked(shown: str, unit: QuotableUnit) -> Span | None:
    """The span of a unit in the rendered excerpt; None if it is the whole excerpt, or is written differently there."""
    words = _prose(unit.text.strip())
    at = shown.find(words)
    is_all = len(shown) - len(words) <= LONGEST_MARKER
    return None if at < 0 or is_all else (at, at + len(words))


def _stretches(excerpt: Excerpt) -> Iterator[str]:
    """Yield the text of the spans. Spans with only white space, pictures or titles of notes between them are joined."""
    content, offset = excerpt.source.block.content, excerpt.source.block.start
    stretches = [(_from_title_of_note(content, excerpt.spans[0][0] - offset) + offset, excerpt.spans[0][1])]
    for start, end in excerpt.spans[1:]:
        if _says_something(content[stretches[-1][1] - offset : start - offset]):
            stretches.append((start, end))
        else:
            stretches[-1] = stretches[-1][0], end
    unfenced = list(_unfenced_code(excerpt.source))
    for start, end in stretches:
        pieces = []
        for first, last, is_code in _parted(start, end, unfenced):
            text = content[first - offset : last - offset]
            if text.strip():
                pieces.append(_fenced(text) if is_code else _prose(text))
        yield "\n\n".join(pieces)


def _from_title_of_note(content: str, start: int) -> int:
    """Return the start of the title of the note or tab that the text opens; the text's own start if it opens none."""
    before = content[:start].rstrip()
    begin = before.rfind("\n") + 1
    return begin if opens_note(before[begin:]) else start


def _says_something(between: str) -> bool:
    lines = (line for line in between.split("\n") if not opens_note(line))
    return bool(strip_markup("\n".join(lines)).strip())


def _unfenced_code(source: ContextSource) -> Iterator[Span]:
    """Code of the document without fences: a file of source code, or code marked by its indentation."""
    offset = source.block.start
    fences = [(code.start + offset, code.end + offset) for code in find_code(source.block.content) if code.fence]
    for block in blocks_of(source):
        if block.kind is BlockKind.CODE:
            start = block.start if block.lead_in is None else block.lead_in[1]
            if not any(first < block.end and start < last for first, last in fences):
                yield start, block.end


def _parted(start: int, end: int, codes: Sequence[Span]) -> Iterator[tuple[int, int, bool]]:
    """The pieces between ``start`` and ``end``, in order; the third element says whether the piece is code."""
    for first, last in codes:
        first, last = max(first, start), min(last, end)
        if first < last:
            yield start, first, False
            yield first, last, True
            start = last
    yield start, end, False


def _fenced(code: str) -> str:
    longest = max((len(ticks) for ticks in re.findall("`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    lines = dedent(code.strip("\n").rstrip())
    return f"{fence}\n{lines}\n{fence}"


def _prose(text: str) -> str:
    """Text without code outside fences, as Markdown; fenced text stays as it is."""
    text = open_notes(_dedented(text))
    pieces, position = [], 0
    for code in [*(code for code in find_code(text) if code.fence), None]:
        upto = len(text) if code is None else code.start
        prose = _outside_code_spans(text[position:upto], lambda words: strip_markup(_TEMPLATE_TAG.sub("", words)))
        prose = _HEADING.sub(_as_bold, _HTML_TABLE.sub(_table_as_markdown, prose))
        pieces.append(_BLANK_LINES.sub("\n\n", prose))
        if code is not None:
            pieces.append(text[code.start : code.end])
            position = code.end
    return quote_for_answer("".join(pieces).lstrip("\n"))


def _outside_code_spans(text: str, rewrite: Callable[[str], str]) -> str:
    pieces, position = [], 0
    for code in find_code(text):
        pieces += [rewrite(text[position : code.start]), text[code.start : code.end]]
        position = code.end
    return "".join([*pieces, rewrite(text[position:])])


def _table_as_markdown(match: re.Match[str]) -> str:
    table = match.group()
    rows = re.findall(r"<tr\b.*?(?=<tr\b|\Z)", table, re.DOTALL | re.IGNORECASE)
    return "\n".join(
        as_markdown(row, is_head=number == 0 and table.startswith("<table")) for number, row in enumerate(rows)
    )


def _without_bars(text: str) -> str:
    """The text, with table rows cut off from their head written as "**first cell** – second – third": Markdown would
    show their bars.
    """
    lines: list[str] = []
    in_code = is_headed = False
    given = text.split("\n")
    for number, line in enumerate(given):
        in_code ^= line.lstrip().startswith(("```", "~~~"))
        is_row = not in_code and bool(_ROW.fullmatch(line.strip()))
        if is_row and not is_headed:
            is_headed = number + 1 < len(given) and bool(_RULE.fullmatch(given[number + 1].strip()))
        if not is_row:
            is_headed = False
        if is_row and not is_headed:
            if cells := [cell for cell in read_cells(line) if cell]:
                lines += [" – ".join([f"**{cells[0].strip('*')}**", *cells[1:]]), ""]
        else:
            lines.append(line)
    return "\n".join(lines).rstrip("\n")


def _as_bold(match: re.Match[str]) -> str:
    heading = match[1].rstrip(" \t#").replace("*", "")
    return f"**{heading}**" if heading else ""


def _dedented(text: str) -> str:
    """Remove the indentation of text that was cut out of an indented block.

    All lines but the first lose the indentation that they share. If the first line is indented, lines below it with
    at least its indentation lose that much.
    """
    if depth := len(text) - len(text.lstrip(" ")):
        lines = text.split("\n")
        inside = list(takewhile(lambda line: not line.strip() or not line[:depth].strip(), lines))
        return "\n".join([*(line[depth:] for line in inside), *lines[len(inside) :]])
    first, newline, rest = text.partition("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest.split("\n") if line.strip()]
    depth = min(indents, default=0)
    if not depth:
        return text
    return first + newline + "\n".join(line[depth:] if line[:depth].isspace() else line for line in rest.split("\n"))


def _with_ellipsis(text: str) -> str:
    codes = find_code(text)
    if codes and codes[-1].fence and not codes[-1].is_open and codes[-1].end == len(text):
        code, _, fence = text.rpartition("\n")
        return f"{code}\n{GOES_ON}\n{fence}"
    return f"{text} {GOES_ON}"


def _with_marker(text: str, marker: str) -> str:
    codes = find_code(text)
    if codes and codes[-1].is_open:
        # Code that is too long is cut in its middle.
        text = f"{text}\n\n{codes[-1].fence}"
    if not marker:
        return text
    last_line = text.rsplit("\n", 1)[-1].strip()
    if len(last_line) > 1 and last_line[0] == "|" == last_line[-1] and last_line[-2] != "\\":
        return f"{text.rstrip()[:-1].rstrip()} {marker} |"
    if last_line.startswith(("|", "```", "~~~")) or (codes and codes[-1].fence and codes[-1].end >= len(text.rstrip())):
        return f"{text}\n\n{marker}"
    return f"{text} {marker}"
