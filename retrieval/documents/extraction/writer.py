"""Write Markdown for the extractors, including tables with merged cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.markdown import parse_structure
from retrieval.tables.table_reading import is_missing_value, read_boolean, read_date, read_quantity
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    LeftOutParts,
    MemberFile,
    Page,
    Section,
    Span,
    TableGrid,
    TableGridRow,
    build_too_much_text_error,
    strip_title,
)

# The most columns that a cell may cover.
_WIDEST = 1_000
_MOST_HEADER_ROWS = 3
_AROUND = " \t()[]{}<>≤≥~≈±*†‡§^#+"
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_SPACED = re.compile(r"(?<=\d)[\s\u00a0\u202f](?=\d{3}(?!\d))")
_PAIR = re.compile(r"[,;/±|–]|\bto\b|\s[-−(]")


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of a table, which covers ``across`` columns and ``down`` rows.

    If ``goes_on`` is true, it repeats the text of the merged cell above.
    """

    text: str
    across: int = 1
    down: int = 1
    goes_on: bool = False


def spread_merged_cells(rows: Sequence[Sequence[TableCell]]) -> list[list[str]]:
    """Return the texts of a table by row and column, with all column names in the first row.

    A merged cell's text is repeated in each of its rows, but only in its first column.
    """
    grid: list[list[str]] = []
    heads: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}
    header_rows = _count_header(rows)
    for row in rows:
        texts: list[str] = []
        names: list[str] = []
        left = list(row)
        last = max(hanging, default=-1)
        while left or len(texts) <= last:
            column = len(texts)
            if column in hanging:
                rest, text = hanging.pop(column)
                if rest > 1:
                    hanging[column] = rest - 1, text
                texts.append(text)
                names.append(text)
            elif left:
                cell = left.pop(0)
                text = grid[-1][column] if cell.goes_on and grid and column < len(grid[-1]) else cell.text
                for place in range(max(1, min(cell.across, _WIDEST - column))):
                    said = text if place == 0 else ""
                    if cell.down > 1:
                        hanging[column + place] = cell.down - 1, said
                    texts.append(said)
                    names.append(text)
            else:
                texts.append("")
                names.append("")
        grid.append(texts)
        heads.append(names)
    if header_rows > 1:
        width = max(map(len, heads[:header_rows]))
        joined = [
            " ".join(dict.fromkeys(row[column] for row in heads[:header_rows] if column < len(row) and row[column]))
            for column in range(width)
        ]
        return [joined, *grid[header_rows:]]
    return grid


def _count_header(rows: Sequence[Sequence[TableCell]]) -> int:
    count = 0
    while count < min(_MOST_HEADER_ROWS, len(rows) - 1):
        row = rows[count]
        if not (len(row) > 1 and any(cell.across > 1 for cell in row)):
            break
        count += 1
    below = rows[count] if 0 < count < len(rows) else ()
    return count + 1 if count and not any(cell.text and is_cell_value(cell.text) for cell in below) else 1


def is_cell_value(text: str) -> bool:
    """Return whether a cell has a value, such as a number, a date or "yes", and not a name."""
    plain = text.strip(_AROUND)
    if not any(map(str.isalnum, plain)) or is_missing_value(plain):
        return True
    plain = _SPACED.sub("", plain)
    # A single letter such as "n" may be a name.
    is_answer = len(plain) > 1 and read_boolean(plain) is not None
    if is_answer or read_quantity(plain) or read_date(plain) or _TIME.fullmatch(plain):
        return True
    parts = [part.strip(_AROUND) for part in _PAIR.split(plain)]
    return len(parts) > 1 and all(part and read_quantity(part) for part in parts)


_DEEPEST = 6
_INDENT = "   "
_COUNTED = re.compile(r"\d{1,9}[.)]")


class MarkdownWriter:
    """Builds a Markdown text. Each method raises DocumentRejected if the text becomes too long."""

    def __init__(self, filename: str, limits: ExtractionLimits) -> None:
        self._filename = filename
        self._limits = limits
        self._parts: list[str] = []
        self._length = 0
        self._in_list = False
        self._page_starts: list[int] = []
        self.sections: list[Section] = []
        self._protected: list[Span] = []
        self._tables: list[TableGrid] = []

    def add_heading(self, words: str, level: int) -> None:
        if title := strip_title(make_canonical_text(words)):
            start = self._add_block(f"{'#' * min(level, _DEEPEST)} {title}")
            self.sections.append(Section(start, level, title))

    def add_paragraph(self, words: str) -> None:
        if words := make_canonical_text(words).strip():
            self._add_block(words)

    def add_item(self, words: str, level: int = 0, *, is_numbered: bool = False, number: str = "") -> None:
        if words := " ".join(make_canonical_text(words).split()):
            sign = number if _COUNTED.fullmatch(number) else "1." if is_numbered else f"- {number}".rstrip()
            self._add_block(f"{_INDENT * min(level, 8)}{sign} {words}", is_item=True)

    def add_markdown(self, text: str) -> None:
        if text := make_canonical_text(text).strip():
            start = self._add_block(text)
            sections, protected = parse_structure(text)
            self.sections += [replace(section, start=section.start + start) for section in sections]
            self._protected += [Span(span.start + start, span.end + start) for span in protected]

    def add_table(self, rows: Sequence[Sequence[str]]) -> None:
        """Add a table whose first row is the header. Empty rows are left out."""
        if table := write_markdown_table(
            [[" ".join(make_canonical_text(cell).split()) for cell in row] for row in rows]
        ):
            start = self._add_block(table)
            self._protected.append(Span(start, start + len(table)))

    def add_rows(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], *, has_decimal_points: bool = False
    ) -> None:
        """Add each row as a line that names its columns, so that a search can find and quote it."""
        if not rows:
            return
        start = self._add_block("")
        grid: list[TableGridRow] = []
        for at, row in enumerate(rows):
            self._append_text("\n" if at else "")
            line, cells = _write_named_cells(header, row, self._length)
            grid.append(TableGridRow(self._length, self._length + len(line), cells))
            self._protected.append(Span(self._length, self._length + len(line)))
            self._append_text(line)
        self._tables.append(TableGrid(start, self._length, tuple(header), tuple(grid), has_decimal_points))

    def add_notes(self, paragraphs: Iterable[str]) -> None:
        lines = [" ".join(make_canonical_text(words).split()) for words in paragraphs]
        if words := "\n> ".join(filter(None, lines)):
            self.add_paragraph(f"> Notes: {words}")

    def begin_page(self) -> None:
        if self._parts:
            self._append_text("\n\n")
        self._in_list = False
        self._page_starts.append(self._length)

    @property
    def first_title(self) -> str:
        return next((section.title for section in self.sections if section.level == 1), "")

    def build_extracted_text(
        self,
        title: str = "",
        *,
        members: Sequence[MemberFile] = (),
        left_out: Sequence[LeftOutParts] = (),
        holds_records: bool = False,
    ) -> ExtractedText:
        self._append_text("\n")
        ends = [*self._page_starts[1:], self._length]
        return ExtractedText(
            text="".join(self._parts),
            title=title,
            sections=self.sections,
            protected=self._protected,
            pages=[
                Page(number, start, end)
                for number, (start, end) in enumerate(zip(self._page_starts, ends, strict=False), start=1)
            ],
            tables=self._tables,
            members=members,
            left_out=left_out,
            holds_records=holds_records,
        )

    def _add_block(self, block: str, *, is_item: bool = False) -> int:
        if self._parts and self._length not in self._page_starts[-1:]:
            self._append_text("\n" if is_item and self._in_list else "\n\n")
        self._in_list = is_item
        start = self._length
        self._append_text(block)
        return start

    def _append_text(self, words: str) -> None:
        self._parts.append(words)
        self._length += len(words)
        if self._length > self._limits.max_text_chars:
            raise build_too_much_text_error(self._filename, self._limits)


def _write_named_cells(
    header: Sequence[str], row: Sequence[str], offset: int
) -> tuple[str, tuple[tuple[int, int], ...]]:
    pieces: list[str] = []
    cells: list[tuple[int, int]] = []
    end = offset
    for at, name in enumerate(header):
        value = " ".join(row[at].split()) if at < len(row) else ""
        if not value:
            cells.append((end, end))
            continue
        lead = f"; {name}: " if pieces else f"{name}: "
        pieces.append(lead + value)
        cells.append((end + len(lead), end + len(lead) + len(value)))
        end += len(lead) + len(value)
    return "".join(pieces), tuple(cells)


def write_markdown_table(rows: Iterable[list[str]]) -> str:
    filled = [[cell.replace("|", r"\|") for cell in row] for row in rows if any(row)]
    if not filled:
        return ""
    width = max(map(len, filled))
    lines = [f"| {' | '.join(row + [''] * (width - len(row)))} |" for row in filled]
    return "\n".join([lines[0], f"|{' --- |' * width}", *lines[1:]])
