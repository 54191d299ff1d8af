"""Split a block into list items, table rows or records (lines `column: value`).

``text`` begins at ``origin`` in its document. All offsets count from the document's start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import islice, pairwise

from retrieval.text.block import Block, BlockKind
from retrieval.text.block_lines import (
    BULLET,
    closes_fence,
    is_delimiter,
    opens_fence,
    read_lines,
    read_list_item_number,
)
from retrieval.text.sentences import strip_range

Span = tuple[int, int]

_ROW = re.compile(r"^(?=.)", re.M)
_HTML_ROW = re.compile(r"<tr\b", re.I)
_HTML_CELL = re.compile(r"<t[dh]\b[^<>]*>", re.I)
_TAG = re.compile(r"</?[a-z!][^<>]*>", re.I)
_CELL_END = re.compile(r"(?<!\\)\|")


def split_items(text: str, block: Block, origin: int = 0) -> list[Span]:
    """Return the list items, the records, or the table rows except the header; none for other blocks."""
    start, end = _find_body(text, block, origin)
    if block.kind in (BlockKind.LIST, BlockKind.STEPS):
        starts = list(_find_item_starts(text, start, end))
        bounds = [*([] if not starts or starts[0] == start else [start]), *starts, end]
    elif block.kind in (BlockKind.TABLE, BlockKind.RECORDS):
        header = find_table_header(text, block, origin)
        begin = header[1] - origin if header else start
        rows = _HTML_ROW if text.startswith("<table", start) else _ROW
        bounds = [*(match.start() for match in rows.finditer(text, begin, end)), end]
    else:
        return []
    items = (strip_range(text, first, last) for first, last in pairwise(bounds))
    return [(first + origin, last + origin) for first, last in items if first < last]


def find_table_header(text: str, block: Block, origin: int = 0) -> Span | None:
    """Return the range of a table's header, or None. In Markdown it includes the line of dashes."""
    start, end = _find_body(text, block, origin)
    if block.kind == BlockKind.TABLE and text.startswith("<table", start):
        rows = list(islice(_HTML_ROW.finditer(text, start, end), 2))
        return (start + origin, rows[1].start() + origin) if len(rows) > 1 else None
    lines = text[start:end].split("\n", 2)
    if block.kind != BlockKind.TABLE or len(lines) < 2 or not is_delimiter(lines[1].strip()):
        return None
    return start + origin, start + origin + len(lines[0]) + 1 + len(lines[1])


def read_cells(row: str) -> list[str]:
    if not row.lstrip().startswith("|") and _HTML_CELL.search(row):
        cells = [unescape(_TAG.sub(" ", cell)) for cell in _HTML_CELL.split(row)[1:]]
    else:
        cells = [cell.replace(r"\|", "|") for cell in _CELL_END.split(row.strip().removeprefix("|").removesuffix("|"))]
    return [" ".join(cell.split()) for cell in cells]


def _find_body(text: str, block: Block, origin: int) -> Span:
    start = block.lead_in[1] if block.lead_in else block.start
    begin, end = max(start - origin, 0), min(block.end - origin, len(text))
    while begin < end and text[begin] == "\n":
        begin += 1
    return begin, max(begin, end)


def _find_item_starts(text: str, start: int, end: int) -> Iterator[int]:
    base: int | None = None
    is_numbered = False
    fence = ""
    for line in read_lines(text[start:end], (), is_start=False)[0]:
        if not line.body:
            continue
        if fence:
            fence = "" if closes_fence(line.body, fence) else fence
            continue
        fence = opens_fence(line.body)
        item = read_list_item_number(line.body)
        if item is None:
            continue
        if base is None:
            base, is_numbered = line.indent, item != BULLET
        if line.indent < base + 2 and (item != BULLET) == is_numbered:
            base = min(base, line.indent)
            yield start + line.start
