"""Finds the blocks of a text. PURE."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from retrieval.text.blocks.joining import join
from retrieval.text.blocks.lines import read_lines
from retrieval.text.blocks.scanning import BlockDraft, Scanner
from retrieval.text.blocks.types import Block, BlockKind
from retrieval.text.sentences import strip_range

# To be raised when blocks are found differently: documents are then read again.
BLOCKS_VERSION = "1"
# No document of people has more; it bounds the memory that one made for the purpose can take.
MOST_BLOCKS = 500_000
# Read at once, for the same reason. A section longer than this is cut between two lines.
_STRETCH_CHARACTERS = 1_000_000

Headings = Sequence[tuple[int, str]]


def find_blocks(
    text: str, headings: Headings, *, page_starts: Sequence[int] = (), is_code: bool = False
) -> list[Block]:
    """The blocks of a document's canonical text, in reading order; they do not overlap.

    They hold all of it but its headings and what is no content: front matter, navigation, template tags, rules, page
    numbers. ``headings`` are the start and title of each section, ``page_starts`` the offsets where the pages of a
    printed document begin: its lines are wrapped, and no blank line parts its paragraphs. ``is_code`` is for files of
    source code, whose definitions are their sections. Takes time in proportion to the text, and raises nothing.
    """
    title_of = {text.rfind("\n", 0, start) + 1: title for start, title in headings if 0 <= start < len(text)}
    ordered = sorted(title_of.items())
    starts = [start for start, _ in ordered]
    drafts = _find_code(text, starts) if is_code else _find_drafts(text, ordered, page_starts)
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


def _find_drafts(text: str, headings: Headings, page_starts: Sequence[int]) -> Iterator[_Found]:
    starts = [start for start, _ in headings]
    is_paged = bool(page_starts)
    for begin, end in _cut(text, starts):
        stretch = text[begin:end]
        own = headings[bisect_left(starts, begin) : bisect_left(starts, end)]
        pages = page_starts[bisect_left(page_starts, begin) : bisect_left(page_starts, end)]
        lines, titles = read_lines(
            stretch,
            [(start - begin, title) for start, title in own],
            [start - begin for start in pages],
            is_start=begin == 0,
        )
        drafts = Scanner(lines, is_paged=is_paged).scan()
        for draft in join(stretch, lines, titles, drafts, is_paged=is_paged):
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
