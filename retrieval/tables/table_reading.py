"""Parse the tables of a text into rows, with the values and offsets of their cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from retrieval.tables.names import keep_letters_and_digits, split_name
from retrieval.tables.units import CURRENCY_SIGNS, UNIT_WORDS
from retrieval.text.chunking import drop_repeated_title
from retrieval.text.extracted import (
    ExtractedText,
    Section,
    TableGrid,
    TableGridRow,
    find_line_starts,
    find_sections_above,
    strip_title,
)
from retrieval.text.word_lists import read_sections, read_words

_TABLES = read_sections("tables")
_SCALE_WORDS = "|".join(words["scales"][name] for words in _TABLES.values() for name in ("million", "thousand"))
_NUMBER = re.compile(
    r"(?P<sign>[-+−]?)\s?(?P<currency>[€$£])?\s?(?P<sign2>[-−]?)"
    r"(?P<digits>\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|[.,]\d+)"
    r"(?P<exponent>[eE][-+]?\d{1,2})?"
    rf"\s?(?P<scale>k|K|M|mln|bn|{_SCALE_WORDS})?(?![^\W\d_])"
    r"\s?(?P<unit>[€$£%°]C?|[A-Za-zµ²³/·]{1,12}(?:\s(?:per|a|an)\s[a-z]{1,8})?)?"
)
# A footnote mark such as ^1 after a number. After 10, ^1 is an exponent.
_NOTE_MARK = re.compile(r"(?<=[\d%)])(?<!(?<!\d)10)\^\w{1,3}$")
_DECIMAL_COMMA = re.compile(r"(?:[€$£]\s?)?[-−]?\d{1,3}(?:\.?\d{3})*,(?:\d{1,2}|\d{4,})(?:\s?[€%]|\s?[a-z]{1,5})?")
_DECIMAL_POINT = re.compile(r"[-−]?\d+\.(?:\d{1,2}|\d{4,})")
_DOTTED_AMOUNT = re.compile(r"€\s?[1-9]\d{0,2}(?:\.\d{3})+(?:,-)?|[1-9]\d{0,2}(?:\.\d{3})+\s?€")
_SCALES = {"k": 1e3, "m": 1e6, "mln": 1e6, "bn": 1e9} | {
    words["scales"][name]: scale for words in _TABLES.values() for name, scale in (("thousand", 1e3), ("million", 1e6))
}
_YES = read_words("tables", "yes") | frozenset("j✓✔✅x")
_NO = read_words("tables", "no") | frozenset("✗✘❌")
_NOTHING = read_words("tables", "nothing") | frozenset(["", "-", "–", "—", "?", ".."])
_DATES = (
    # Spreadsheets may write a weekday before the date.
    (re.compile(r"(?:[A-Za-z]{3,9} )?(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ]\d{1,2}:\d{2}.*)?"), (1, 2, 3)),
    (re.compile(r"(\d{1,2})[-./](\d{1,2})[-./](\d{4})"), (3, 2, 1)),
    (re.compile(r"(\d{1,2})\s([A-Za-z]{3,9})\.?,?\s(\d{4})"), (3, 2, 1)),
    (re.compile(r"([A-Za-z]{3,9})\.?\s(\d{1,2}),?\s(\d{4})"), (3, 1, 2)),
)
_MONTHS = {
    name: number
    for words in _TABLES.values()
    for names in words["months"]
    for number, name in enumerate(names.split(), start=1)
}
# A column has the kind that at least this share of its filled cells has.
_SHARE_OF_KIND = 0.9
_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Quantity:
    value: float
    unit: str


def read_quantity(text: str, *, decimal_commas: bool = False) -> Quantity | None:
    """Return the number and unit of a cell such as "€ 1.234,50" or "120k"; None if the cell has more than a number.

    If ``decimal_commas`` is true, points group thousands.
    """
    match = _NUMBER.fullmatch(_NOTE_MARK.sub("", text.strip()))
    if match is None:
        return None
    digits = match["digits"].replace(".", "") if decimal_commas and "." in match["digits"] else match["digits"]
    value = read_digits(digits + (match["exponent"] or ""))
    if value is None:
        return None
    value *= _SCALES.get((match["scale"] or "").lower(), 1)
    unit = match["unit"] or match["currency"] or ""
    return Quantity(
        -value if (match["sign"] + match["sign2"]) in ("-", "−") else value, CURRENCY_SIGNS.get(unit, unit.lower())
    )


def read_digits(digits: str) -> float | None:
    """Return the value of a number with English or Dutch separators; None if it is not a number."""
    plain = re.sub(r"[' \u00a0\u202f]", "", digits)
    marks = [character for character in plain if character in ".,"]
    if len(set(marks)) == 2:
        decimal = marks[-1]
        plain = plain.replace("," if decimal == "." else ".", "").replace(decimal, ".")
    elif len(marks) > 1 or (marks == [","] and re.fullmatch(r"[1-9]\d{0,2},\d{3}", plain)):
        plain = re.sub(r"[.,]", "", plain)
    else:
        plain = plain.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return None


def read_boolean(text: str) -> bool | None:
    folded = text.strip().casefold()
    return True if folded in _YES else False if folded in _NO else None


def read_date(text: str) -> str | None:
    for pattern, order in _DATES:
        match = pattern.fullmatch(text.strip())
        if match is None:
            continue
        year, month, day = (match[group] for group in order)
        number = int(month) if month.isdigit() else _MONTHS.get(month[:3].lower())
        try:
            return date(int(year), number or 0, int(day)).isoformat()
        except ValueError:
            return None
    return None


def is_missing_value(text: str) -> bool:
    return text.strip().casefold() in _NOTHING


CellValue = float | str | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    unit: str


def has_decimal_commas(cells: Iterable[str]) -> bool:
    seen = [cell.strip() for cell in cells if "," in cell or "." in cell]
    # "12,13" may be two numbers, so one certain decimal point excludes decimal commas.
    has_commas = any(_DECIMAL_COMMA.fullmatch(cell) for cell in seen)
    return has_commas and not any(_DECIMAL_POINT.fullmatch(cell) for cell in seen)


def infer_column_kind(
    name: str, cells: Sequence[str], *, decimal_commas: bool = False
) -> tuple[Column, Sequence[CellValue]]:
    """Return a column with its kind (such as number), and the values of its cells.

    The value of a cell of another kind is None.
    """
    cells = [cell.strip() for cell in cells]
    sample = [cell for cell in cells[:_SAMPLE] if not is_missing_value(cell)]
    if len(cells) > 2 and set(cells) == {"0", "1"}:
        return Column(name, "boolean", ""), [cell == "1" for cell in cells]
    if _can_read_most_cells(sample, read_boolean) and all(len(cell) > 1 for cell in sample):
        return Column(name, "boolean", ""), [read_boolean(cell) for cell in cells]
    decimal_commas = decimal_commas or _has_dotted_thousands(sample)
    quantities = [read_quantity(cell, decimal_commas=decimal_commas) for cell in sample]
    units = {quantity.unit for quantity in quantities if quantity is not None}
    # Numbers with different units ("20 minutes", "2 hours") cannot be compared.
    if len(units) == 1 and quantities.count(None) <= (1 - _SHARE_OF_KIND) * len(quantities):
        unit = units.pop()
        read = [read_quantity(cell, decimal_commas=decimal_commas) for cell in cells]
        values = [None if quantity is None or quantity.unit != unit else quantity.value for quantity in read]
        return Column(name, "number", unit or _find_unit_in_column_name(name)), values
    if _can_read_most_cells(sample, read_date):
        return Column(name, "date", ""), [read_date(cell) for cell in cells]
    return Column(name, "text", ""), [cell or None for cell in cells]


def _find_unit_in_column_name(name: str) -> str:
    for symbol, unit in CURRENCY_SIGNS.items():
        if symbol in name:
            return unit
    last = split_name(name)[1:][-1:]
    return "%" if "%" in name else last[0] if last and last[0] in UNIT_WORDS else ""


def _has_dotted_thousands(cells: Sequence[str]) -> bool:
    dotted = [cell for cell in cells if "." in cell]
    return len(dotted) > 1 and all(_DOTTED_AMOUNT.fullmatch(cell.strip()) for cell in dotted)


def _can_read_most_cells(filled: Sequence[str], read: Callable[[str], object]) -> bool:
    return bool(filled) and sum(read(cell) is not None for cell in filled) >= _SHARE_OF_KIND * len(filled)


# Longer texts of cells are no labels, because questions do not quote them.
LONGEST_LABEL = 80
_MOST_COLUMNS = 200
_RULE_CELL = re.compile(r"\s*:?-+:?\s*")
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})")
_UNESCAPED_PIPE = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"\[([^\[\]]*)\]\([^()]*\)|[`*]|(?<!\w)__?|__?(?!\w)")

CAPTION_SEPARATOR = " › "
_MARKUP_SIGNS = frozenset("[`*_\\")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table in a document's text.

    ``cells`` has the start and end of each cell, which are the same if the cell is empty. ``labels`` are normalised
    texts of cells, by which questions find the row.
    """

    start: int
    end: int
    values: tuple[CellValue, ...]
    cells: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParsedTable:
    start: int
    end: int
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def read_tables(extracted: ExtractedText) -> list[ParsedTable]:
    """Return the tables that the extractor found or, if it found none, the Markdown tables in the text."""
    grids = extracted.tables or tuple(find_pipe_tables(extracted.text))
    return [
        _infer_grid(extracted.text, grid, find_caption(extracted.title, extracted.sections, grid.start))
        for grid in grids
        if grid.rows and 2 <= len(grid.header) <= _MOST_COLUMNS
    ]


def find_caption(title: str, sections: Sequence[Section], offset: int) -> str:
    """Return the document's title and the headings above ``offset``, outermost first, as one text."""
    headings = tuple(section.title for section in find_sections_above(sections, offset))
    return CAPTION_SEPARATOR.join([title, *drop_repeated_title(title, headings)])


def find_pipe_tables(text: str) -> Iterator[TableGrid]:
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
        elif not fence and at + 1 < len(lines) and "|" in lines[at] and _is_delimiter_row(lines[at + 1]):
            header = _parse_table_row(lines[at], starts[at])
            if len(header.cells) == len(_parse_table_row(lines[at + 1], 0).cells):
                end = at + 2
                while end < len(lines) and "|" in lines[end]:
                    end += 1
                yield _build_grid(text, starts, lines, at, end, header)
                at = end
                continue
        at += 1


def _build_grid(
    text: str, starts: Sequence[int], lines: Sequence[str], at: int, end: int, header: TableGridRow
) -> TableGrid:
    names = tuple(
        strip_cell(text[start:stop]) or f"column {number}" for number, (start, stop) in enumerate(header.cells, start=1)
    )
    rows = []
    for line in range(at + 2, end):
        row = _parse_table_row(lines[line], starts[line])
        if not _is_delimiter_row(lines[line]) and any(start < stop for start, stop in row.cells):
            padding = ((row.end, row.end),) * (len(names) - len(row.cells))
            rows.append(TableGridRow(row.start, row.end, (*row.cells, *padding)[: len(names)]))
    return TableGrid(header.start, rows[-1].end if rows else header.end, names, tuple(rows))


def _is_delimiter_row(line: str) -> bool:
    cells = line.strip().strip("|").split("|")
    return "-" in line and all(_RULE_CELL.fullmatch(cell) for cell in cells)


def _parse_table_row(line: str, offset: int) -> TableGridRow:
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


def format_cell(text: str) -> str:
    """Return a cell's text without Markdown. A single asterisk or underscore stays, as in ``name:"IMG_*"``."""
    lone = {ord(sign): chr(place) for place, sign in enumerate("*_") if text.count(sign) == 1}
    return strip_cell(text.translate(lone)).translate({ord(kept): chr(sign) for sign, kept in lone.items()})


def strip_cell(text: str) -> str:
    if _MARKUP_SIGNS.isdisjoint(text):
        return " ".join(text.split())
    return " ".join(_MARKUP.sub(lambda match: match[1] or "", text).replace(r"\|", "|").split())


def _infer_grid(text: str, grid: TableGrid, caption: str) -> ParsedTable:
    texts = [[strip_cell(text[start:end]) for start, end in row.cells] for row in grid.rows]
    commas = not grid.has_decimal_points and has_decimal_commas(cell for row in texts for cell in row)
    typed = [
        infer_column_kind(name, [row[at] for row in texts], decimal_commas=commas)
        for at, name in enumerate(grid.header)
    ]
    columns = tuple(replace(column, name=strip_title(column.name) or column.name) for column, _ in typed)
    text_columns = [at for at, column in enumerate(columns) if column.kind == "text"]
    # If there is no text column, rows are found by their first column.
    label_columns = text_columns or [0]
    rows = tuple(
        Row(
            row.start,
            row.end,
            tuple(values[number] for _, values in typed),
            row.cells,
            _make_labels(texts[number][at] for at in label_columns),
        )
        for number, row in enumerate(grid.rows)
    )
    return ParsedTable(grid.start, grid.end, caption, columns, rows)


def _make_labels(cells: Iterator[str]) -> tuple[str, ...]:
    labels = (
        keep_letters_and_digits(cell) for cell in cells if len(cell) <= LONGEST_LABEL and not is_missing_value(cell)
    )
    return tuple(dict.fromkeys(label for label in labels if label))
