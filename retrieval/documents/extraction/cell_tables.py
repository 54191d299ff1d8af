"""Split rows of cells into titles, header and data, and write them as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.tables.table_reading import read_date
from retrieval.text.extracted import MAX_TITLE_CHARS
from retrieval.text.word_lists import fill_in

HEAD = 50
_MOST_COLUMNS = 1_000
_LONGEST_NAME = 80
_MOST_TITLES = 10
_MOST_NAME_ROWS = 3
TOTAL = re.compile(fill_in(r"<total_of>?<total>\b(?: (?:ex|in)c.{0,20})?:?", "documents"), re.I)
YEAR = re.compile(r"(?:19|20)\d\d(?:\s?[/–-]\s?(?:\d\d){1,2})?")
_MONTH_OR_TIME = re.compile(r"(?:[a-zé]{3,9}\.?[ -])?(?:[a-zé]{3,9}\.?[ -]\d{2,4}|\d{1,2}:\d\d(?: [ap]m)?)", re.I)
_UNIT = re.compile(r"[(\[].{1,20}[)\]]")
_MADE_UP = re.compile(r"column \d+")
_SENTENCE = re.compile(r"\S.*[.?!]", re.S)


class Cell(NamedTuple):
    text: str
    is_value: bool


class HeaderSpan(NamedTuple):
    """A header cell that covers the columns ``first`` to ``last`` (inclusive)."""

    row: int
    first: int
    last: int


class CellTable(NamedTuple):
    """The rows of a sheet, divided into the parts of a table.

    ``titles`` are the lines above the header, ``totals`` the rows of sums and the lines below. If ``header`` is empty,
    the rows are running text.
    """

    titles: list[str]
    header: list[str]
    body: list[list[str]]
    totals: list[list[str]]

    @property
    def has_no_column_names(self) -> bool:
        return all(map(_MADE_UP.fullmatch, self.header))


def read_table(head: Sequence[Sequence[Cell]], rows: list[list[str]], spans: Iterable[HeaderSpan] = ()) -> CellTable:
    """Divide ``rows`` into titles, header, data and totals.

    ``head`` has the first of ``rows``, with the types of their cells. ``spans`` are header cells that cover several
    columns.
    """
    first, last = _find_header_rows(head, list(spans))
    # A comma in a title of a CSV file has split it into two cells.
    titles = [" ".join(filter(None, row)).replace("  ", ", ").lstrip("# ") for row in rows[:first]]
    body = rows[last:]
    width = len(head[0])
    if last > first:
        names = _join_names(head[first:last], [HeaderSpan(span.row - first, *span[1:]) for span in spans])
    elif width == 1 or width > _MOST_COLUMNS or len(body) < 2 or _are_text_label_pairs(head[first:]):
        return CellTable(titles, [], body, [])
    else:
        names = [f"column {at + 1}" for at in range(width)]
    totals = [row for row in body if _is_total(row)]
    body = [row for row in body if not _is_total(row)] if totals else body
    below = len(body)
    while below > 1 and width > 2 and body[below - 1][0] and not any(body[below - 1][1:]):
        below -= 1
    return CellTable(titles, names, body[:below], totals + body[below:])


def write_table(table: CellTable, writer: MarkdownWriter, *, has_decimal_points: bool = False) -> None:
    *before, last = table.titles or [""]
    for words in before:
        writer.add_paragraph(words)
    if not table.header:
        writer.add_paragraph(last)
        for row in table.body:
            label, *rest = filter(None, row)
            if rest and label.endswith("?") and len(label) <= MAX_TITLE_CHARS:
                writer.add_heading(label, 3)
                writer.add_paragraph(" ".join(rest))
            else:
                is_label = rest and label[-1] not in ".:?!;,"
                writer.add_paragraph(f"{label}{':' * bool(is_label and len(row) == 2)} {' '.join(rest)}")
        return
    writer.add_heading(last, 2)
    writer.add_rows(table.header, table.body, has_decimal_points=has_decimal_points)
    empty = [name for at, name in enumerate(table.header) if not any(at < len(row) and row[at] for row in table.body)]
    if empty := [name for name in empty if not _MADE_UP.fullmatch(name)]:
        writer.add_paragraph(f"Without values: {' · '.join(empty)}")
    for row in table.totals:
        first, *others = (at for at, words in enumerate(row) if words)
        named = [f"{table.header[at]} {row[at]}" for at in others]
        writer.add_paragraph(" · ".join([row[first].rstrip(":"), *named]))


def drop_empty_columns(head: Sequence[list[Cell]], rows: list[list[str]]) -> tuple[list[list[Cell]], list[list[str]]]:
    width = max(map(len, rows))
    kept = [at for at in range(width) if any(at < len(row) and row[at].strip() for row in rows)]
    filled = [[row[at] if at < len(row) else Cell("", False) for at in kept] for row in head]
    if len(kept) < width:
        rows = [[row[at] if at < len(row) else "" for at in kept] for row in rows]
    return filled, rows


def _find_header_rows(head: Sequence[Sequence[Cell]], spans: Sequence[HeaderSpan]) -> tuple[int, int]:
    """Return the indexes of the first header row and of the first row below the header; equal without a header."""
    width = len(head[0])
    if width == 1:
        return 0, 0
    counts = [sum(bool(cell.text) for cell in row) for row in head]
    usual_count = max(Counter(counts).items(), key=lambda pair: (pair[1], pair[0]))[0]
    least = max(2, 0.6 * (usual_count if len(head) > 3 else width))
    titles = 0
    for at, row in enumerate(head[: _MOST_TITLES + 1]):
        is_last = at == len(head) - 1
        has_gap = any(cell.text and not before.text for before, cell in pairwise(row)) and counts[at] > 1
        if not is_last and (counts[at] >= least or has_gap) and not _is_preamble_row(head, at, counts[at], usual_count):
            if width > _MOST_COLUMNS or _are_label_value_pairs(head[at:]) or not _is_column_name_row(head, at):
                break
            first, last = _extend_header(head, at, spans)
            return (first, last) if last < len(head) else (titles, titles)
        is_title = counts[at] == 1 and not any(cell.is_value for cell in row)
        titles += is_title and titles == at and not is_last
        if not is_title and counts[at] > usual_count / 2 and not _is_preamble_row(head, at, counts[at], usual_count):
            break
    return titles, titles


def _is_preamble_row(head: Sequence[Sequence[Cell]], at: int, count: int, usual_count: int) -> bool:
    below = head[at + 1][0].text if at + 1 < len(head) else ""
    return count < usual_count and count <= 2 and bool(below) and all(cell.text for cell in head[at][:count])


def _are_label_value_pairs(rows: Sequence[Sequence[Cell]]) -> bool:
    return len(rows[0]) == 2 and all(not label.text or label.text.endswith(":") for label, _ in rows)


def _are_text_label_pairs(rows: Sequence[Sequence[Cell]]) -> bool:
    labels = [row[0] for row in rows if row[0].text]
    return len(rows[0]) == 2 and sum(label.is_value for label in labels) < len(labels) / 2


def _is_column_name_row(head: Sequence[Sequence[Cell]], at: int) -> bool:
    row = head[at]
    names = [cell.text for cell in row if cell.text]
    is_text = not all(cell.is_value and not _is_date_or_time(cell.text) for cell in row if cell.text)
    if max(map(len, names)) > _LONGEST_NAME or not is_text:
        return False
    below = head[at + 1 : at + 6]
    if len(row) == 2:
        sides = [[each[column] for each in (row, *below)] for column in (0, 1)]
        if any(_are_sentences(cells) or (cells[0].text and cells[0] in cells[1:]) for cells in sides):
            return False
    columns = [column for column, cell in enumerate(row) if cell.is_value]
    return (
        all(_is_date_or_time(row[column].text) for column in columns)
        and all(sum(_is_date_or_time(each[column].text) for each in below) * 2 <= len(below) for column in columns)
    ) or (
        _are_consecutive_numbers([row[column].text for column in columns])
        and not any(_are_consecutive_numbers([each[column].text for column in columns]) for each in below)
    )


def _are_sentences(cells: Sequence[Cell]) -> bool:
    return all(_SENTENCE.fullmatch(cell.text) for cell in cells[:2])


def _is_date_or_time(text: str) -> bool:
    return bool(YEAR.fullmatch(text) or _MONTH_OR_TIME.fullmatch(text) or read_date(text))


def _are_consecutive_numbers(texts: Sequence[str]) -> bool:
    numbers = [int(text) for text in texts if text.isascii() and text.isdigit()]
    return len(texts) == len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _extend_header(head: Sequence[Sequence[Cell]], at: int, spans: Sequence[HeaderSpan]) -> tuple[int, int]:
    first, last = at, at + 1
    width = len(head[0])
    while first > max(0, at - _MOST_NAME_ROWS + 1):
        filled = [column for column, cell in enumerate(head[first - 1]) if cell.text]
        across = [span for span in spans if span.row == first - 1 and span.last - span.first < width - 1]
        if not (across or (len(filled) > 1 and filled[0] > 0)):
            break
        first -= 1
    while last < min(len(head) - 1, first + _MOST_NAME_ROWS) and _is_header_continuation(head, last, spans):
        last += 1
    return first, last


def _is_header_continuation(head: Sequence[Sequence[Cell]], at: int, spans: Sequence[HeaderSpan]) -> bool:
    above, row, below = head[at - 1], head[at], head[at + 1 :]
    if not any(cell.text for cell in row) or not _is_column_name_row(head, at):
        return False
    if any(span.row == at - 1 for span in spans):
        return True
    named = [column for column, cell in enumerate(row) if cell.text]
    if all(_UNIT.fullmatch(row[column].text) for column in named):
        return True
    kinds = [[each[column].is_value for each in below if each[column].text] for column in named]
    values = sum(2 * sum(kind) > len(kind) for kind in kinds)
    has_gaps = any(row[column].text and not above[column].text for column in range(len(row)))
    return values > 0 if has_gaps else values > 1 and not any(row[0].text == each[0].text for each in below)


def _join_names(rows: Sequence[Sequence[Cell]], spans: Sequence[HeaderSpan]) -> list[str]:
    parts: list[list[str]] = [[] for _ in rows[0]]
    for number, row in enumerate(rows):
        texts = [cell.text for cell in row]
        merged = [span for span in spans if span.row == number]
        for span in merged:
            texts[span.first : span.last + 1] = [texts[span.first]] * (span.last + 1 - span.first)
        if not merged and number < len(rows) - 1:
            for at in range(1, len(texts)):
                texts[at] = texts[at] or texts[at - 1]
        for part, text in zip(parts, texts, strict=True):
            part.append(text)
    names: dict[str, None] = {}
    for at, part in enumerate(parts, start=1):
        name = " ".join(dict.fromkeys(filter(None, part))) or f"column {at}"
        number = 1
        while (unique := name if number == 1 else f"{name} ({number})") in names:
            number += 1
        names[unique] = None
    return list(names)


def _is_total(row: Sequence[str]) -> bool:
    label = next(filter(None, row), "")
    return len(label) < _LONGEST_NAME and bool(TOTAL.fullmatch(label))
