"""Finds the blocks of a text. PURE."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from retrieval.text.block import Block, BlockKind
from retrieval.text.block_lines import Title, read_lines
from retrieval.text.block_scanning import BlockDraft, Scanner
from retrieval.text.sentences import split_sentences, strip_range

# To be raised when blocks are found differently: documents are then read again.
BLOCKS_VERSION = "3"
# No document of people has more; it bounds the memory that one made for the purpose can take.
MOST_BLOCKS = 500_000
# Read at once, for the same reason. A section longer than this is cut between two lines.
_STRETCH_CHARACTERS = 1_000_000

Headings = Sequence[tuple[int, str]]


def find_blocks(text: str, headings: Headings, *, is_code: bool = False) -> list[Block]:
    """The blocks of a document's canonical text, in reading order; they do not overlap.

    They hold all of it but its headings and what is no content: front matter, template tags, rules.
    ``headings`` are the start and title of each section. ``is_code`` is for files of source code, whose definitions are
    their sections. Takes time in proportion to the text, and raises nothing.
    """
    title_of = {text.rfind("\n", 0, start) + 1: title for start, title in headings if 0 <= start < len(text)}
    ordered = sorted(title_of.items())
    starts = [start for start, _ in ordered]
    drafts = _find_code(text, starts) if is_code else _find_drafts(text, ordered)
    blocks = []
    for start, end, kind, lead_in in islice(drafts, MOST_BLOCKS):
        number = bisect_right(starts, start)
        section_end = starts[number] if number < len(starts) else len(text)
        blocks.append(Block(start, end, kind, starts[number - 1] if number else None, section_end, lead_in))
    return blocks


_Found = tuple[int, int, BlockKind, tuple[int, int] | None]


def _find_code(text: str, starts: Sequence[int]) -> Iterator[_Found]:
    """One block a definition, with the lines that open it."""
    for start, end in pairwise([0, *starts, len(text)]):
        first, last = strip_range(text, start, end)
        if first < last:
            # The indentation of the first line is part of the code.
            yield max(start, text.rfind("\n", start, first) + 1), last, BlockKind.CODE, None


def _find_drafts(text: str, headings: Headings) -> Iterator[_Found]:
    starts = [start for start, _ in headings]
    for begin, end in _cut(text, starts):
        stretch = text[begin:end]
        own = headings[bisect_left(starts, begin) : bisect_left(starts, end)]
        lines, titles = read_lines(stretch, [(start - begin, title) for start, title in own], is_start=begin == 0)
        for draft in join(stretch, titles, Scanner(lines).scan()):
            yield _place(draft, begin)


def _place(draft: BlockDraft, begin: int) -> _Found:
    lead_in = draft.lead_in and (draft.lead_in[0] + begin, draft.lead_in[1] + begin)
    return draft.start + begin, draft.end + begin, draft.kind, lead_in


def _cut(text: str, starts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The text in stretches that are read at once, cut before headings where possible."""
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


_BOLD_LINE = re.compile(r"(\*\*|__)[^*_\n]{1,200}\1\s?:?")
_INTRODUCES = re.compile(
    r"\b(?:following|below|as follows|these steps|this list|listed|volgende|onderstaande|hieronder|als volgt"
    r"|deze stappen|deze lijst)\b",
    re.I,
)
_EXEMPLIFIES = re.compile(r"(?:for example|for instance|as follows|bijvoorbeeld|als volgt)[.,]?$", re.I)
_INTRODUCED = (BlockKind.LIST, BlockKind.STEPS, BlockKind.TABLE, BlockKind.RECORDS, BlockKind.CODE)
_LONGEST_QUESTION = 200
_LONGEST_LEAD_IN = 500
_LONGEST_ANSWER = 1_500
# Between two steps of one procedure may stand this much that is no step.
_MOST_BETWEEN_STEPS = 4
_LONGEST_BETWEEN_STEPS = 1_500


def join(text: str, titles: Sequence[Title], drafts: list[BlockDraft]) -> list[BlockDraft]:
    drafts = _join_titles(text, drafts)
    drafts = _join_steps(text, drafts)
    drafts = _attach_lead_ins(text, drafts)
    return _join_questions(text, titles, drafts)


def _extend(draft: BlockDraft, other: BlockDraft) -> None:
    draft.last, draft.end = other.last, other.end


def _first_line(text: str, draft: BlockDraft) -> tuple[int, int]:
    """The range of the draft's first line, or of its first characters."""
    limit = min(draft.end, draft.start + _LONGEST_QUESTION + 100)
    line_end = text.find("\n", draft.start, limit)
    return draft.start, limit if line_end < 0 else line_end


def _is_bold_line(text: str, draft: BlockDraft) -> bool:
    return draft.kind == BlockKind.PARAGRAPH and _BOLD_LINE.fullmatch(text, draft.start, draft.end) is not None


def _join_titles(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    """A bold line stays with the paragraph below it."""
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
            _extend(above, draft)
        else:
            joined.append(draft)
    return joined


def _join_steps(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    """Steps that count on, with what stands between them, as one procedure; what an item announces stays with it."""
    joined: list[BlockDraft] = []
    last_steps = 0
    for draft in drafts:
        above = joined[-1] if joined else None
        is_near = last_steps < len(joined) <= last_steps + 1 + _MOST_BETWEEN_STEPS
        if is_near and _counts_on(steps := joined[last_steps], draft):
            del joined[last_steps + 1 :]
            _extend(steps, draft)
            steps.last_number, steps.is_single = draft.last_number, False
        elif above is not None and above.section == draft.section and _belongs_to_item(text, above, draft):
            _extend(above, draft)
        else:
            joined.append(draft)
            if draft.kind == BlockKind.STEPS:
                last_steps = len(joined) - 1
    for draft in joined:
        if draft.kind == BlockKind.STEPS and draft.is_single and "\n" not in text[draft.start : draft.end]:
            # One numbered line counts nothing: it is a title, or a sentence.
            draft.kind = BlockKind.PARAGRAPH
    return joined


def _counts_on(steps: BlockDraft, draft: BlockDraft) -> bool:
    return (
        steps.kind == draft.kind == BlockKind.STEPS
        and draft.first_number > 1
        and draft.first_number == steps.last_number + 1
        and draft.section == steps.section
        and draft.start - steps.end <= _LONGEST_BETWEEN_STEPS
    )


def _belongs_to_item(text: str, above: BlockDraft, draft: BlockDraft) -> bool:
    """Whether the last item of the list above goes on in code, a table or bullets that are not indented."""
    inner = (BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST) if above.kind == BlockKind.STEPS else (BlockKind.CODE,)
    return above.kind in (BlockKind.STEPS, BlockKind.LIST) and draft.kind in inner and _announces(text, above)


def _announces(text: str, draft: BlockDraft) -> bool:
    return text[max(draft.start, draft.end - 20) : draft.end].rstrip("*_` ").endswith((":", "："))


def _attach_lead_ins(text: str, drafts: list[BlockDraft]) -> list[BlockDraft]:
    """The sentence that introduces a list, a table or code becomes part of it."""
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
                start, first = above.start, above.first
                attached.pop()
            else:
                first = draft.first
                above.end = above.start + len(text[above.start : start].rstrip())
            draft.start, draft.first, draft.lead_in = start, first, (start, end)
        attached.append(draft)
    return attached


def _find_lead_in(text: str, paragraph: BlockDraft, kind: BlockKind) -> tuple[int, int] | None:
    """The paragraph's last sentence, if it introduces what follows."""
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


def _join_questions(text: str, titles: Sequence[Title], drafts: list[BlockDraft]) -> list[BlockDraft]:
    """A question with the paragraphs right under it: a heading, a line of its own, or a line marked as one."""
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
        if question is None and open_question is not None and _answers(open_question, draft):
            open_question.kind = BlockKind.QUESTION
            _extend(open_question, draft)
            # Below a heading nothing else is to be expected than its answer.
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


def _answers(question: BlockDraft, draft: BlockDraft) -> bool:
    is_first = question.kind == BlockKind.PARAGRAPH
    return draft.section == question.section and (is_first or draft.end - question.start <= _LONGEST_ANSWER)


def _find_question(text: str, draft: BlockDraft) -> tuple[int, int] | None:
    """The question that opens the paragraph, on a line of its own."""
    start, end = _first_line(text, draft)
    line = text[start:end].rstrip()
    end = start + len(line)
    if len(line) > _LONGEST_QUESTION or not line.rstrip("*_ ").endswith("?"):
        return None
    is_alone = end == draft.end and line[0].isupper()
    return (start, end) if is_alone or _BOLD_LINE.fullmatch(line) else None
