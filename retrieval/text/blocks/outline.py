"""The items of a block, and what to show of a block that is too long. PURE.

``text`` may be a part of the document that begins at ``origin``; offsets, also those that are returned, are the
document's. Of a block that goes beyond the text, what is there is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import islice, pairwise

from retrieval.text.blocks.lines import Line, read_lines
from retrieval.text.blocks.marks import closes_fence, is_delimiter, opens_fence, read_item
from retrieval.text.blocks.types import Block, BlockKind
from retrieval.text.sentences import split_sentences, strip_range

Span = tuple[int, int]

_ROW = re.compile(r"^(?=.)", re.M)
_HTML_ROW = re.compile(r"<tr\b", re.I)
_HTML_CELL = re.compile(r"<t[dh]\b[^<>]*>", re.I)
_TAG = re.compile(r"</?[a-z!][^<>]*>", re.I)
_CELL_END = re.compile(r"(?<!\\)\|")
# Of an item that is outlined, when it has no sentence that ends before.
_LONGEST_OUTLINE = 200


@dataclass(frozen=True, slots=True)
class Shortened:
    """What is shown of a block, in order; ``goes_on`` says that some of it is left out."""

    spans: tuple[Span, ...]
    goes_on: bool


def split_items(text: str, block: Block, origin: int = 0) -> list[Span]:
    """The items of a list or procedure, with what belongs to each; the rows of a table, without its header, and of
    records. No items for other kinds.
    """
    start, end = _body(text, block, origin)
    if block.kind in (BlockKind.LIST, BlockKind.STEPS):
        starts = list(_find_items(text, start, end))
        bounds = [*([] if not starts or starts[0] == start else [start]), *starts, end]
    elif block.kind in (BlockKind.TABLE, BlockKind.RECORDS):
        header = find_header(text, block, origin)
        begin = header[1] - origin if header else start
        rows = _HTML_ROW if text.startswith("<table", start) else _ROW
        bounds = [*(match.start() for match in rows.finditer(text, begin, end)), end]
    else:
        return []
    items = (strip_range(text, first, last) for first, last in pairwise(bounds))
    return [(first + origin, last + origin) for first, last in items if first < last]


def find_header(text: str, block: Block, origin: int = 0) -> Span | None:
    """The first row of a Markdown table and the line below it, or of a table of HTML; None where it is not there."""
    start, end = _body(text, block, origin)
    if block.kind == BlockKind.TABLE and text.startswith("<table", start):
        rows = list(islice(_HTML_ROW.finditer(text, start, end), 2))
        return (start + origin, rows[1].start() + origin) if len(rows) > 1 else None
    lines = text[start:end].split("\n", 2)
    if block.kind != BlockKind.TABLE or len(lines) < 2 or not is_delimiter(lines[1].strip()):
        return None
    return start + origin, start + origin + len(lines[0]) + 1 + len(lines[1])


def read_cells(row: str) -> list[str]:
    """The words of the cells of a row, of Markdown or of HTML."""
    if not row.lstrip().startswith("|") and _HTML_CELL.search(row):
        cells = [unescape(_TAG.sub(" ", cell)) for cell in _HTML_CELL.split(row)[1:]]
    else:
        cells = [cell.replace(r"\|", "|") for cell in _CELL_END.split(row.strip().removeprefix("|").removesuffix("|"))]
    return [" ".join(cell.split()) for cell in cells]


def shorten(text: str, block: Block, characters: int, origin: int = 0) -> Shortened:
    """The block within about so many characters: whole, or its beginning and an outline of the rest.

    The outline is the first sentence of each further item of a list or procedure. Something is always shown.
    """
    first, last = max(block.start - origin, 0), min(block.end - origin, len(text))
    is_cut = first > block.start - origin or last < block.end - origin
    if last - first <= characters:
        return Shortened(((first + origin, last + origin),) if first < last else (), is_cut)
    begin, end = _body(text, block, origin)
    lead = [(first + origin, begin + origin)] if begin > first else []
    left = characters - (begin - first)
    if header := find_header(text, block, origin):
        lead.append(header)
        left -= header[1] - header[0]
    items = split_items(text, block, origin)
    if block.kind in (BlockKind.LIST, BlockKind.STEPS):
        shown = _outline(text, items, left, origin)
    else:
        units = items or list(_find_units(text, block, begin, end, origin))
        shown = _take(units, left)
        if not shown and units:
            shown = [_cut(text, units[0], max(left, 1), origin)]
    return Shortened(_merge(text, [*lead, *shown], origin), goes_on=True)


def _body(text: str, block: Block, origin: int) -> Span:
    """The range of the block in ``text``, without its lead-in and the white space around."""
    start = block.lead_in[1] if block.lead_in else block.start
    begin, end = max(start - origin, 0), min(block.end - origin, len(text))
    while begin < end and text[begin] == "\n":
        begin += 1
    return begin, max(begin, end)


def _find_items(text: str, start: int, end: int) -> Iterator[int]:
    """Where the outermost items begin. Lines of code that look like items are none."""
    base: int | None = None
    is_numbered = False
    fence = ""
    for line in read_lines(text[start:end], (), (), is_start=False)[0]:
        if not line.body:
            continue
        if fence:
            fence = "" if closes_fence(line.body, fence) else fence
            continue
        fence = opens_fence(line.body)
        item = read_item(line.body)
        if item is None:
            continue
        if base is None:
            base, is_numbered = line.indent, item.number is not None
        if line.indent < base + 2 and (item.number is not None) == is_numbered:
            base = min(base, line.indent)
            yield start + line.start


def _outline(text: str, items: list[Span], characters: int, origin: int) -> list[Span]:
    """As many items as fit whole beside the first sentences of the others."""
    sentences = [_first_sentence(text, item, origin) for item in items]
    left = characters - sum(end - start for start, end in sentences)
    if left < 0:
        return _take(sentences, characters) or sentences[:1]
    shown = []
    is_whole = True
    for item, sentence in zip(items, sentences, strict=True):
        more = (item[1] - item[0]) - (sentence[1] - sentence[0])
        is_whole = is_whole and more <= left
        left -= more if is_whole else 0
        shown.append(item if is_whole else sentence)
    return shown


def _first_sentence(text: str, item: Span, origin: int) -> Span:
    start, end, _ = next(split_sentences(text, item[0] - origin, item[1] - origin))
    return _cut(text, (start + origin, end + origin), _LONGEST_OUTLINE, origin)


def _find_units(text: str, block: Block, start: int, end: int, origin: int) -> Iterator[Span]:
    """The lines of code, or the sentences of prose."""
    if block.kind == BlockKind.CODE:
        lines: list[Line] = read_lines(text[start:end], (), (), is_start=False)[0]
        yield from ((start + line.start + origin, start + line.end + origin) for line in lines)
    else:
        yield from ((first + origin, last + origin) for first, last, _ in split_sentences(text, start, end))


def _take(spans: list[Span], characters: int) -> list[Span]:
    """The first spans that fit."""
    taken = []
    for start, end in spans:
        characters -= end - start
        if characters < 0:
            break
        taken.append((start, end))
    return taken


def _cut(text: str, span: Span, characters: int, origin: int) -> Span:
    """The beginning of the span, up to a space where there is one."""
    start, end = span
    if end - start <= characters:
        return span
    space = text.rfind(" ", start - origin + characters // 2, start - origin + characters)
    return start, space + origin if space >= 0 else start + characters


def _merge(text: str, spans: list[Span], origin: int) -> tuple[Span, ...]:
    """Spans with nothing but white space between them as one."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and not text[merged[-1][1] - origin : start - origin].strip():
            merged[-1] = merged[-1][0], end
        elif start < end:
            merged.append((start, end))
    return tuple(merged)
