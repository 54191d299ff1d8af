"""Find the blocks of a text: paragraphs, lists, tables and so on."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from retrieval.text.block import Block, BlockKind
from retrieval.text.block_lines import (
    BULLET,
    LineRole,
    MarkdownLine,
    SectionTitle,
    closes_fence,
    is_delimiter,
    is_hidden,
    is_horizontal_rule,
    opens_admonition,
    opens_fence,
    read_field,
    read_first_field,
    read_lines,
    read_list_item_number,
)
from retrieval.text.sentences import split_sentences, strip_range
from retrieval.text.word_lists import fill_in

# Raise this number when blocks are found in another way. Documents are then read again.
BLOCKS_VERSION = "4"
# This limits the memory that a malicious document can use.
MOST_BLOCKS = 500_000
# Longer texts are read in parts of this length, to limit the memory.
_STRETCH_CHARACTERS = 1_000_000

Headings = Sequence[tuple[int, str]]


def find_blocks(text: str, headings: Headings, *, is_code: bool = False) -> list[Block]:
    """Return the blocks of a stored text in reading order, without overlaps, in linear time.

    Headings and front matter are left out. ``headings`` are pairs (start, title). If ``is_code`` is true, the text
    after each heading is one block.
    """
    title_of = {text.rfind("\n", 0, start) + 1: title for start, title in headings if 0 <= start < len(text)}
    ordered = sorted(title_of.items())
    starts = [start for start, _ in ordered]
    drafts = _find_code(text, starts) if is_code else _find_text_blocks(text, ordered)
    blocks = []
    for start, end, kind, lead_in in islice(drafts, MOST_BLOCKS):
        number = bisect_right(starts, start)
        section_end = starts[number] if number < len(starts) else len(text)
        blocks.append(Block(start, end, kind, starts[number - 1] if number else None, section_end, lead_in))
    return blocks


_Found = tuple[int, int, BlockKind, tuple[int, int] | None]


def _find_code(text: str, starts: Sequence[int]) -> Iterator[_Found]:
    for start, end in pairwise([0, *starts, len(text)]):
        first, last = strip_range(text, start, end)
        if first < last:
            yield max(start, text.rfind("\n", start, first) + 1), last, BlockKind.CODE, None


def _find_text_blocks(text: str, headings: Headings) -> Iterator[_Found]:
    starts = [start for start, _ in headings]
    for begin, end in _cut_text(text, starts):
        stretch = text[begin:end]
        own = headings[bisect_left(starts, begin) : bisect_left(starts, end)]
        lines, titles = read_lines(stretch, [(start - begin, title) for start, title in own], is_start=begin == 0)
        for draft in join_blocks(stretch, titles, Scanner(lines).scan()):
            lead_in = draft.lead_in and (draft.lead_in[0] + begin, draft.lead_in[1] + begin)
            yield draft.start + begin, draft.end + begin, draft.kind, lead_in


def _cut_text(text: str, starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + _STRETCH_CHARACTERS)
        if end < len(text):
            heading = bisect_right(starts, end) - 1
            if heading >= 0 and starts[heading] > begin:
                end = starts[heading]
            else:
                end = text.rfind("\n", begin, end) + 1 or text.find("\n", end) + 1 or len(text)
        yield begin, end
        begin = end


_CODE_INDENT = 4
# A list with more characters than _LONG_LIST, and on average _LONG_ITEMS per item, is split into paragraphs.
_LONG_LIST = 3_000
_LONG_ITEMS = 600


@dataclass(slots=True)
class BlockDraft:
    """A block that may still be joined with the next ones."""

    kind: BlockKind
    start: int
    end: int
    section: int
    first_number: int = 0
    last_number: int = 0
    is_single: bool = False
    lead_in: tuple[int, int] | None = None


class Scanner:
    def __init__(self, lines: list[MarkdownLine]) -> None:
        self._lines = lines
        self._container = 0
        self._last_comment_end = max((at for at, line in enumerate(lines) if "-->" in line.body), default=-1)
        self._unclosed_section = -1
        self._drafts: list[BlockDraft] = []

    def scan(self) -> list[BlockDraft]:
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            if line.role == LineRole.TEXT:
                if line.indent < self._container:
                    self._container = 0
                at = self._read(at)
            else:
                self._container *= line.role != LineRole.HEADING
                at += 1
        return self._drafts

    def _read(self, at: int) -> int:
        body = self._lines[at].body
        if body.startswith("<table") and (table_end := self._find_table_end(at)):
            return self._add_block(BlockKind.TABLE, at, table_end)
        end = self._skip_hidden_lines(at)
        if end > at:
            return end
        if fence := opens_fence(body):
            return self._add_block(BlockKind.CODE, at, self._find_fence_end(at, fence))
        if body.startswith(">>> "):
            return self._add_block(BlockKind.CODE, at, self._find_block_end(at, lambda _: True))
        if self._opens_table(at):
            return self._add_block(
                BlockKind.TABLE, at, self._find_block_end(at, lambda end: "|" in self._lines[end].body)
            )
        if name := read_field(body):
            return self._read_records(at, name)
        if (item := read_list_item_number(body)) is not None:
            return self._read_list(at, item)
        if self._opens_code(at):
            return self._add_block(BlockKind.CODE, at, self._find_indented_end(at, self._container + _CODE_INDENT))
        return self._read_paragraph(at)

    def _add_block(self, kind: BlockKind, first: int, after: int, numbers: tuple[int, int] = (0, 0)) -> int:
        line, last = self._lines[first], self._lines[after - 1]
        is_indented = kind == BlockKind.PARAGRAPH and line.indent and not line.quoted
        start = line.end - len(line.body) if is_indented else line.start
        self._drafts.append(BlockDraft(kind, start, last.end, line.section, *numbers))
        return after

    def _opens_code(self, at: int) -> bool:
        line = self._lines[at]
        if line.indent < self._container + _CODE_INDENT or line.quoted:
            return False
        if at and self._lines[at - 1].role == LineRole.TEXT:
            return False
        words = line.body.split(None, 8)
        reads_as_prose = len(words) > 4 and line.body[0].isupper() and sum(word.isalpha() for word in words) > 4
        return not reads_as_prose

    def _read_records(self, at: int, name: str) -> int:
        names = {name}
        end = at + 1
        while self._is_text_in_section_of(end, at):
            body = self._lines[end].body
            other = read_field(body)
            if not other and read_first_field(body) not in names:
                break
            names.add(other)
            end += 1
        is_table = end - at > 1 or self._lines[at].body.count("; ") > 1
        return self._add_block(BlockKind.RECORDS, at, end) if is_table else self._read_paragraph(at)

    def _read_paragraph(self, at: int) -> int:
        quoted = self._lines[at].quoted
        return self._add_block(
            BlockKind.PARAGRAPH, at, self._find_block_end(at, lambda end: not self._is_block_start(end, quoted))
        )

    def _read_list(self, at: int, number: int) -> int:
        first = self._lines[at]
        item_lines = [at]
        base = first.indent
        is_numbered = number != BULLET
        first_number = last_number = max(number, 0)
        end = at + 1
        below = at + 1
        while below < len(self._lines):
            line = self._lines[below]
            if line.section != first.section:
                break
            if line.role != LineRole.TEXT:
                below += 1
                continue
            is_apart = below > end
            next_number = read_list_item_number(line.body)
            if next_number is not None:
                is_inner = line.indent >= base + 2
                is_like = (next_number != BULLET) == is_numbered
                if not is_inner and is_like:
                    base = min(base, line.indent)
                    last_number = next_number if next_number > 0 else last_number + 1
                elif not is_inner and (not is_numbered or is_apart):
                    break
                item_lines.append(below)
                end = below + 1
            elif (
                not (is_horizontal_rule(line.body) or opens_admonition(line.body))
                and (skipped := self._skip_hidden_lines(below)) > below
            ):
                below = skipped
                continue
            elif line.indent >= base + 2 or not is_apart:
                fence = opens_fence(line.body)
                end = self._find_fence_end(below, fence) if fence else below + 1
            else:
                break
            below = end
        length = self._lines[end - 1].end - first.start
        if length > _LONG_LIST and length > _LONG_ITEMS * len(item_lines):
            for begin, after in pairwise([*item_lines, end]):
                self._add_block(BlockKind.PARAGRAPH, begin, after)
            return end
        self._add_block(BlockKind.STEPS if is_numbered else BlockKind.LIST, at, end, (first_number, last_number))
        self._drafts[-1].is_single = len(item_lines) == 1
        return end

    def _find_block_end(self, at: int, is_in_block: Callable[[int], bool]) -> int:
        end = at + 1
        while self._is_text_in_section_of(end, at) and is_in_block(end):
            end += 1
        return end

    def _is_text_in_section_of(self, at: int, above: int) -> bool:
        if at >= len(self._lines):
            return False
        line = self._lines[at]
        return line.role == LineRole.TEXT and line.section == self._lines[above].section

    def _skip_hidden_lines(self, at: int) -> int:
        line = self._lines[at]
        if line.body.startswith("<!--"):
            end = at
            while end < self._last_comment_end and "-->" not in self._lines[end].body:
                end += 1
            return end + 1
        if opens_admonition(line.body):
            below = at + 1
            while below < len(self._lines) and self._lines[below].role == LineRole.BLANK:
                below += 1
            if below < len(self._lines) and self._lines[below].indent > line.indent and line.body[0] != ":":
                self._container = self._lines[below].indent
            return at + 1
        return at + 1 if is_hidden(line.body) else at

    def _find_fence_end(self, at: int, fence: str) -> int:
        quoted = self._lines[at].quoted
        end = at + 1
        while end < len(self._lines):
            line = self._lines[end]
            if line.section != self._lines[at].section or (line.role == LineRole.TEXT and line.quoted < quoted):
                return end
            end += 1
            if closes_fence(line.body, fence):
                break
        return end

    def _find_indented_end(self, at: int, indent: int) -> int:
        end, section = at, self._lines[at].section
        for below, line in enumerate(islice(self._lines, at, None), at + 1):
            if line.section != section or (line.role == LineRole.TEXT and line.indent < indent):
                break
            if line.role == LineRole.TEXT:
                end = below
        return end

    def _find_table_end(self, at: int) -> int:
        section = self._lines[at].section
        end = at
        while section != self._unclosed_section and end < len(self._lines) and self._lines[end].section == section:
            end += 1
            if "</table" in self._lines[end - 1].body:
                return end
        self._unclosed_section = section
        return 0

    def _opens_table(self, at: int) -> bool:
        body = self._lines[at].body
        if "|" not in body or not self._is_text_in_section_of(at + 1, at):
            return False
        return is_delimiter(self._lines[at + 1].body)

    def _is_block_start(self, at: int, quote_depth: int) -> bool:
        line = self._lines[at]
        if line.quoted > quote_depth or line.body.startswith(("<!--", ">>> ")) or is_hidden(line.body):
            return True
        if (number := read_list_item_number(line.body)) is not None:
            return number <= 1
        return bool(opens_fence(line.body) or opens_admonition(line.body) or self._opens_table(at))


_BOLD_LINE = re.compile(r"(\*\*|__)[^*_\n]{1,200}\1\s?:?")
_INTRODUCES = re.compile(fill_in(r"\b<introducing>\b", "documents"), re.I)
_EXEMPLIFIES = re.compile(fill_in(r"<exemplifying>[.,]?$", "documents"), re.I)
_INTRODUCED = (BlockKind.LIST, BlockKind.STEPS, BlockKind.TABLE, BlockKind.RECORDS, BlockKind.CODE)
_LONGEST_QUESTION = 200
_LONGEST_LEAD_IN = 500
_LONGEST_ANSWER = 1_500
_MOST_BETWEEN_STEPS = 4
_LONGEST_BETWEEN_STEPS = 1_500


def join_blocks(text: str, titles: Sequence[SectionTitle], drafts: list[BlockDraft]) -> list[BlockDraft]:
    drafts = _join_bold_titles_with_text(text, drafts)
    drafts = _join_step_blocks(text, drafts)
    drafts = _attach_lead_ins(text, drafts)
    return _join_questions(text, titles, drafts)


def _is_bold_line(text: str, draft: BlockDraft) -> bool:
    return draft.kind == BlockKind.PARAGRAPH and _BOLD_LINE.fullmatch(text, draft.start, draft.end) is not None


def _join_bold_titles_with_text(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    joined: list[BlockDraft] = []
    for draft in drafts:
        above = joined[-1] if joined else None
        if (
            above is not None
            and above.section == draft.section
            and draft.kind == BlockKind.PARAGRAPH
            and _is_bold_line(text, above)
            and "?" not in text[above.start : above.end]
            and not _is_bold_line(text, draft)
        ):
            above.end = draft.end
        else:
            joined.append(draft)
    return joined


def _join_step_blocks(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    joined: list[BlockDraft] = []
    last_steps = 0
    for draft in drafts:
        above = joined[-1] if joined else None
        is_near = last_steps < len(joined) <= last_steps + 1 + _MOST_BETWEEN_STEPS
        if is_near and _are_steps_continued(steps := joined[last_steps], draft):
            del joined[last_steps + 1 :]
            steps.end = draft.end
            steps.last_number, steps.is_single = draft.last_number, False
        elif above is not None and above.section == draft.section and _belongs_to_list_item(text, above, draft):
            above.end = draft.end
        else:
            joined.append(draft)
            if draft.kind == BlockKind.STEPS:
                last_steps = len(joined) - 1
    for draft in joined:
        if draft.kind == BlockKind.STEPS and draft.is_single and "\n" not in text[draft.start : draft.end]:
            # A single numbered line is a title or a sentence, and no list of steps.
            draft.kind = BlockKind.PARAGRAPH
    return joined


def _are_steps_continued(steps: BlockDraft, draft: BlockDraft) -> bool:
    return (
        steps.kind == draft.kind == BlockKind.STEPS
        and draft.first_number > 1
        and draft.first_number == steps.last_number + 1
        and draft.section == steps.section
        and draft.start - steps.end <= _LONGEST_BETWEEN_STEPS
    )


def _belongs_to_list_item(text: str, above: BlockDraft, draft: BlockDraft) -> bool:
    inner = (BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST) if above.kind == BlockKind.STEPS else (BlockKind.CODE,)
    return above.kind in (BlockKind.STEPS, BlockKind.LIST) and draft.kind in inner and _ends_with_colon(text, above)


def _ends_with_colon(text: str, draft: BlockDraft) -> bool:
    return text[max(draft.start, draft.end - 20) : draft.end].rstrip("*_` ").endswith((":", "："))


def _attach_lead_ins(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    attached: list[BlockDraft] = []
    for draft in drafts:
        above = attached[-1] if attached else None
        if (
            above is not None
            and above.kind == BlockKind.PARAGRAPH
            and above.section == draft.section
            and draft.kind in _INTRODUCED
            and (sentence := _find_lead_in(text, above, draft.kind))
        ):
            start, end = sentence
            rest = text[above.start : start].strip()
            if not rest or _BOLD_LINE.fullmatch(rest):
                start = above.start
                attached.pop()
            else:
                above.end = above.start + len(text[above.start : start].rstrip())
            draft.start, draft.lead_in = start, (start, end)
        attached.append(draft)
    return attached


def _find_lead_in(text: str, paragraph: BlockDraft, kind: BlockKind) -> tuple[int, int] | None:
    if _is_bold_line(text, paragraph):
        return paragraph.start, paragraph.end
    *_, (start, end, _) = split_sentences(
        text, max(paragraph.start, paragraph.end - 2 * _LONGEST_LEAD_IN), paragraph.end
    )
    if end - start > _LONGEST_LEAD_IN:
        return None
    sentence = text[start:end].rstrip("*_ ")
    if sentence.endswith((":", "：")):
        return start, end
    if kind == BlockKind.CODE:
        return (start, end) if _EXEMPLIFIES.search(sentence) else None
    return (start, end) if _INTRODUCES.search(sentence) else None


def _join_questions(text: str, titles: Sequence[SectionTitle], drafts: list[BlockDraft]) -> list[BlockDraft]:
    joined: list[BlockDraft] = []
    open_question: BlockDraft | None = None
    previous_section = -1
    for draft in drafts:
        opens_section = draft.section != previous_section
        previous_section = draft.section
        if draft.kind != BlockKind.PARAGRAPH:
            open_question = None
            joined.append(draft)
            continue
        title = titles[draft.section]
        question = _find_question(text, draft)
        if question is None and open_question is not None and _is_answer_to_question(open_question, draft):
            open_question.kind = BlockKind.QUESTION
            open_question.end = draft.end
            # The answer to a question in a heading may have several paragraphs.
            is_heading = open_question.lead_in is not None and open_question.lead_in[0] == title.start
            open_question = open_question if is_heading else None
            continue
        open_question = None
        if question is not None:
            draft.lead_in = question
            if question[1] < draft.end:
                draft.kind = BlockKind.QUESTION
            else:
                open_question = draft
        elif opens_section and title.words.endswith("?") and title.end > title.start:
            draft.kind, draft.lead_in = BlockKind.QUESTION, (title.start, title.end)
            draft.start = title.start
            open_question = draft
        joined.append(draft)
    for draft in joined:
        if draft.kind == BlockKind.PARAGRAPH:
            draft.lead_in = None
    return joined


def _is_answer_to_question(question: BlockDraft, draft: BlockDraft) -> bool:
    is_first = question.kind == BlockKind.PARAGRAPH
    return draft.section == question.section and (is_first or draft.end - question.start <= _LONGEST_ANSWER)


def _find_question(text: str, draft: BlockDraft) -> tuple[int, int] | None:
    line = text[draft.start : draft.end].split("\n", 1)[0].rstrip()
    start, end = draft.start, draft.start + len(line)
    if len(line) > _LONGEST_QUESTION or not line.rstrip("*_ ").endswith("?"):
        return None
    is_alone = end == draft.end and line[0].isupper()
    return (start, end) if is_alone or _BOLD_LINE.fullmatch(line) else None
