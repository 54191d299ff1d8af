"""Rows of printed tables: cells as characters with their boxes, and how they are written as Markdown. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.ingest.extraction.pdf.printed import Box, PrintedLine, PrintedPage, around

Cell = list[tuple[str, Box]]
Row = list[Cell]


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table, and the lines of the page that it takes the place of. A ``header`` without words is not printed."""

    lines: list[PrintedLine]
    header: Row
    rows: list[Row]


def text_of(cell: Cell) -> str:
    return "".join(character for character, _ in cell).strip()


def join_cells(parts: Sequence[Cell]) -> Cell:
    """The parts with a blank between them; what is said twice in a row stands once."""
    joined: Cell = []
    said = ""
    for part in parts:
        text = text_of(part)
        if not text or text == said:
            continue
        # A day or a number that is cut at a line end goes on without a blank, a word without its hyphen too.
        is_cut = said[-1:] in "-–/" and said[-2:-1].isdigit() and text[0].isdigit()
        is_word = said[-1:] == "-" and said[-2:-1].isalpha() and text[0].islower()
        if is_word:
            joined = joined[:-1]
        joined += trim(part) if not joined or is_cut or is_word else [(" ", part[0][1]), *trim(part)]
        said = text
    return joined


def trim(cell: Cell) -> Cell:
    first, last = 0, len(cell)
    while first < last and cell[first][0] == " ":
        first += 1
    while last > first and cell[last - 1][0] == " ":
        last -= 1
    return cell[first:last]


def write_rows(header: Row, rows: Sequence[Row], size: float) -> list[PrintedLine]:
    """The lines of a Markdown table. A header without words stands for one that the page does not print."""
    place = next(cell[0][1] for row in [header, *rows] for cell in row if cell)
    written = []
    for at, row in enumerate([header, *rows]):
        pieces: list[tuple[str, Box]] = []
        place = next((cell[0][1] for cell in row if cell), place)
        for cell in row:
            pieces += [("|", place), (" ", place)]
            for character, box in trim(cell):
                if character == "|":
                    pieces.append(("\\", box))
                pieces.append((character, box))
                place = box
            pieces.append((" ", place))
        pieces.append(("|", place))
        text, boxes = "".join(piece for piece, _ in pieces), [box for _, box in pieces]
        written.append(PrintedLine(text, around(boxes), size, boxes=boxes, is_row=True))
        if at == 0:
            rule = "|" + " --- |" * len(row)
            written.append(PrintedLine(rule, written[0].box, size, boxes=[place] * len(rule), is_row=True))
    return written


def join_nameless(lines: Sequence[PrintedLine]) -> list[PrintedLine]:
    """``lines`` in which rows without names of their own go on with the table right above them."""
    joined: list[PrintedLine] = []
    left = list(lines)
    while left:
        line = left.pop(0)
        is_nameless = line.is_row and not line.text.strip("| ") and bool(left) and _is_delimiter(left[0].text)
        if is_nameless and joined and joined[-1].is_row and _width(joined[-1].text) == _width(line.text):
            del left[0]
            continue
        joined.append(line)
    return joined


def _width(row: str) -> int:
    return row.count("|") - row.count("\\|")


def join_tables(pages: Sequence[PrintedPage]) -> None:
    """Has a table that goes on at the top of the next page go on there, without a header of its own.

    A header that is printed again is dropped; where none is, the first row is one like the others.
    """
    header = ""
    for before, page in pairwise(pages):
        last = [line.text for line in before.lines if line.is_row]
        at = next((at for at, text in reversed(list(enumerate(last))) if _is_delimiter(text)), None)
        header = last[at - 1] if at else header
        if not (before.lines and before.lines[-1].is_row and len(page.lines) > 1 and page.lines[0].is_row):
            continue
        columns = page.lines[1].text.count("|")
        if _is_delimiter(page.lines[1].text) and columns == _width(header):
            del page.lines[1]
            if page.lines[0].text == header or not page.lines[0].text.strip("| "):
                del page.lines[0]


def _is_delimiter(text: str) -> bool:
    return text.startswith("| --- |") and set(text) <= set("| -")
