"""The tables of a document's text, as typed rows with the offsets of their cells. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.tables.cells import CellValue, is_nothing, type_column, uses_decimal_commas
from retrieval.tables.table_words import squeeze, stem, stems_of, words_of_name
from retrieval.text.extracted import ExtractedText, Section, TableGrid, TableGridRow
from retrieval.text.titles import find_line_starts, plain_title

# A longer cell is prose: nobody types it whole in a question.
LONGEST_LABEL = 80
_MOST_COLUMNS = 200
_RULE_CELL = re.compile(r"\s*:?-+:?\s*")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"\[([^\[\]]*)\]\([^()]*\)|[`*]|(?<!\w)__?|__?(?!\w)")


CAPTION_SEPARATOR = " › "
_MARKUP_SIGNS = frozenset("[`*_\\")


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """``cells`` are the offsets of each cell in the document's text, an empty one's equal."""

    start: int
    end: int
    values: tuple[CellValue, ...]
    cells: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadTable:
    """``terms`` are the stems by which a question may name it: of its caption and of its columns."""

    start: int
    end: int
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    terms: tuple[str, ...]


def read_tables(extracted: ExtractedText) -> list[ReadTable]:
    """The tables that the extractor kept, or else the pipe tables of the text, typed."""
    grids = extracted.tables or tuple(find_pipe_tables(extracted.text))
    return [
        _type_grid(extracted.text, grid, find_caption(extracted.title, extracted.sections, grid.start))
        for grid in grids
        if grid.rows and 2 <= len(grid.header) <= _MOST_COLUMNS
    ]


def find_caption(title: str, sections: Sequence[Section], offset: int) -> str:
    """The title and the headings above ``offset``, outermost first."""
    path: list[Section] = []
    for section in sections:
        if section.start > offset:
            break
        path = [outer for outer in path if outer.level < section.level] + [section]
    headings = [section.title for section in path]
    if headings and headings[0].casefold() == title.casefold():
        headings = headings[1:]
    return CAPTION_SEPARATOR.join([title, *headings])


def find_pipe_tables(text: str) -> Iterator[TableGrid]:
    """The Markdown pipe tables: a header, a line of dashes, and the rows up to the first line without a pipe.

    Tables inside fences of code are code.
    """
    if "|" not in text:
        return
    starts = find_line_starts(text)
    lines = [text[start:end].rstrip("\n") for start, end in pairwise(starts)]
    at, fence = 0, ""
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        if opening:
            mark = opening[1]
            fence = mark if not fence else "" if mark.startswith(fence) else fence
        elif not fence and at + 1 < len(lines) and "|" in lines[at] and _is_rule(lines[at + 1]):
            header = _cut_row(lines[at], starts[at])
            if len(header.cells) == len(_cut_row(lines[at + 1], 0).cells):
                end = at + 2
                while end < len(lines) and "|" in lines[end]:
                    end += 1
                yield _pipe_grid(text, starts, lines, at, end, header)
                at = end
                continue
        at += 1


def _pipe_grid(
    text: str, starts: Sequence[int], lines: Sequence[str], at: int, end: int, header: TableGridRow
) -> TableGrid:
    names = tuple(
        plain_cell(text[start:stop]) or f"column {number}" for number, (start, stop) in enumerate(header.cells, start=1)
    )
    rows = []
    for line in range(at + 2, end):
        row = _cut_row(lines[line], starts[line])
        if not _is_rule(lines[line]) and any(start < stop for start, stop in row.cells):
            padding = ((row.end, row.end),) * (len(names) - len(row.cells))
            rows.append(TableGridRow(row.start, row.end, (*row.cells, *padding)[: len(names)]))
    return TableGrid(header.start, rows[-1].end if rows else header.end, names, tuple(rows))


def _is_rule(line: str) -> bool:
    cells = line.strip().strip("|").split("|")
    return "-" in line and all(_RULE_CELL.fullmatch(cell) for cell in cells)


def _cut_row(line: str, offset: int) -> TableGridRow:
    """The cells of a line that stands at ``offset``, without the white space around them."""
    stripped = line.strip()
    begin = len(line) - len(line.lstrip())
    bounds = [match.start() for match in _UNESCAPED_PIPE.finditer(stripped)]
    edges = [-1, *bounds, len(stripped)]
    pieces = list(pairwise(edges))
    if bounds and bounds[0] == 0:
        pieces = pieces[1:]
    if bounds and bounds[-1] == len(stripped) - 1:
        pieces = pieces[:-1]
    cells = []
    for left, right in pieces:
        raw = stripped[left + 1 : right]
        start = left + 1 + len(raw) - len(raw.lstrip())
        cells.append((offset + begin + start, offset + begin + max(start, left + 1 + len(raw.rstrip()))))
    return TableGridRow(offset + begin, offset + begin + len(stripped), tuple(cells))


def plain_cell(text: str) -> str:
    """A cell without Markdown's marks."""
    if _MARKUP_SIGNS.isdisjoint(text):
        return " ".join(text.split())
    return " ".join(_MARKUP.sub(lambda match: match[1] or "", text).replace(r"\|", "|").split())


def _type_grid(text: str, grid: TableGrid, caption: str) -> ReadTable:
    texts = [[plain_cell(text[start:end]) for start, end in row.cells] for row in grid.rows]
    commas = not grid.has_decimal_points and uses_decimal_commas(cell for row in texts for cell in row)
    typed = [
        type_column(name, [row[at] for row in texts], decimal_commas=commas) for at, name in enumerate(grid.header)
    ]
    columns = tuple(
        Column(plain_title(name) or name, column.kind, column.unit)
        for name, column in zip(grid.header, typed, strict=True)
    )
    text_columns = [at for at, column in enumerate(columns) if column.kind == "text"]
    # A table of numbers alone, or of dates, is looked up by its first column.
    label_columns = text_columns or [0]
    rows = tuple(
        Row(
            row.start,
            row.end,
            tuple(column.values[number] for column in typed),
            row.cells,
            _labels(texts[number][at] for at in label_columns),
        )
        for number, row in enumerate(grid.rows)
    )
    names = (stem(word) for column in columns for word in words_of_name(column.name))
    return ReadTable(grid.start, grid.end, caption, columns, rows, tuple(dict.fromkeys([*stems_of(caption), *names])))


def _labels(cells: Iterator[str]) -> tuple[str, ...]:
    labels = (squeeze(cell) for cell in cells if len(cell) <= LONGEST_LABEL and not is_nothing(cell))
    return tuple(dict.fromkeys(label for label in labels if label))
