"""What the cells of a printed table are: values, names of columns, or something that is no table. PURE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from retrieval.tables.cells import is_nothing, read_boolean, read_date, read_quantity

_AROUND = " \t()[]{}<>≤≥~≈±*†‡§^#+"
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_YEAR = re.compile(r"(?:19|20)\d{2}(?:[/–-]\d{2,4})?")
_SPACED = re.compile(r"(?<=\d)[\s\u00a0\u202f](?=\d{3}(?!\d))")
# Between the ends of an interval, or two figures in one cell.
_PAIR = re.compile(r"[,;/±|–]|\bto\b|\s[-−(]")
_CODE = re.compile(
    r"[{};]\s*$|[=!<>:]=|=>|->|<-|\(\)|\\[a-zA-Z]|::|&&|\|\||[\w)\]]\s=\s|</?\w+>"
    r"|^\s*(?:#|//|\$\s|>>>|%|def \w+\(|class \w+[:(]|return\b|import \w+$|for \w+ in |(?:if|for|while) \()"
)
_MATHS = re.compile(r"[=∑∏∫√∂∇∈∀∃≡⊂⊆∪∩\ue000-\uf8ff]")
_ADDRESS = re.compile(r"@|\bwww\.|https?:|\b\d{4}\s?[A-Z]{2}\b|\bP\.?O\.? Box\b|\b(?:Tel|Fax|Phone)\b", re.I)
_NUMBER_OF_PAGE = re.compile(r"\d{1,4}|[ivxlc]{1,6}")
_TOTAL = re.compile(r"(?:sub|grand\s)?tota(?:l|als|len|al)\b|sum\b|som\b", re.I)
_LONGEST_CELL = 160
_MOST_WORDS = 9


def is_value(text: str) -> bool:
    """Whether a cell holds a number, a day, a time, yes or no, or a sign that there is none."""
    plain = text.strip(_AROUND)
    if not any(map(str.isalnum, plain)) or is_nothing(plain):
        return True
    plain = _SPACED.sub("", plain)
    if read_quantity(plain) or read_date(plain) or _TIME.fullmatch(plain) or _says_yes_or_no(plain):
        return True
    parts = [part.strip(_AROUND) for part in _PAIR.split(plain)]
    return len(parts) > 1 and all(part and read_quantity(part) for part in parts)


def _says_yes_or_no(text: str) -> bool:
    # A letter alone may be a name as well.
    return len(text) > 1 and read_boolean(text) is not None


def is_year(text: str) -> bool:
    return _YEAR.fullmatch(text.strip()) is not None


def is_total(text: str) -> bool:
    return _TOTAL.match(text.strip()) is not None


def holds_several_numbers(text: str) -> bool:
    """Whether a cell holds numbers beside each other, as where columns were not told apart."""
    parts = text.split()
    return len(parts) > 1 and all(part.strip(_AROUND).replace(".", "").replace("-", "").isdigit() for part in parts)


def value_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns of values; what stands above the first value is its name."""
    found = []
    for at in range(len(rows[0])):
        cells = [row[at] for row in rows if row[at]]
        first = next((place for place, cell in enumerate(cells) if is_value(cell) and not is_year(cell)), None)
        if first is None:
            first = next((place for place, cell in enumerate(cells) if is_value(cell)), None)
        if first is None or first > 3:
            continue
        below = cells[first:]
        if len(below) >= 2 and sum(map(is_value, below)) >= 0.75 * len(below):
            found.append(at)
    return found


def looks_like_code(rows: Sequence[Sequence[str]]) -> bool:
    return _share(rows, lambda row: bool(_CODE.search("  ".join(filter(None, row))))) >= 0.2


def looks_like_drawing(rows: Sequence[Sequence[str]]) -> bool:
    """Snippets of words, as of the lettering of a drawing that is turned."""
    words = list({cell for row in rows for cell in row if cell and not is_value(cell)})
    short = [word for word in words if len(word.replace(" ", "")) < 3]
    return any(_is_spelt(word.split()) for word in words) or (len(words) >= 5 and len(short) > 0.4 * len(words))


def _is_spelt(parts: Sequence[str]) -> bool:
    """Whether many of a cell's words are single letters."""
    single = sum(part.isalnum() and len(part) == 1 for part in parts)
    return (len(parts) > 5 and single > 0.4 * len(parts)) or (len(parts) > 2 and single == len(parts))


def looks_like_maths(rows: Sequence[Sequence[str]]) -> bool:
    return _share(rows, lambda row: any(map(_MATHS.search, row))) >= 0.3


def looks_like_addresses(rows: Sequence[Sequence[str]]) -> bool:
    return _share(rows, lambda row: any(map(_ADDRESS.search, row))) >= 0.3


def looks_like_form(rows: Sequence[Sequence[str]]) -> bool:
    """Labels with a colon before what is filled in."""
    return _share(rows, lambda row: any(cell.endswith((":", "__")) for cell in row)) >= 0.3


def looks_like_contents(rows: Sequence[Sequence[str]]) -> bool:
    """Titles, and numbers of pages that do not fall."""
    ends = [next((cell for cell in reversed(row) if cell), "") for row in rows]
    if sum(bool(_NUMBER_OF_PAGE.fullmatch(end)) for end in ends) < 0.8 * len(ends):
        return False
    if sum(bool(cell) and _is_words(cell) for row in rows for cell in row[:-1]) < 0.7 * len(rows):
        return False
    pages = [int(end) for end in ends if end.isdigit()]
    rises = sum(after >= before for before, after in pairwise(pages))
    return len(rows[0]) <= 4 and rises >= 0.9 * max(1, len(pages) - 1)


def looks_like_prose(rows: Sequence[Sequence[str]]) -> bool:
    """Cells that are long, or go on in the cell below as lines of a column of text do."""
    cells = [cell for row in rows for cell in row if cell]
    if max(map(len, cells)) > _LONGEST_CELL:
        return True
    words = [len(cell.split()) for cell in cells if not is_value(cell)]
    if words and sorted(words)[len(words) // 2] > _MOST_WORDS:
        return True
    for at in range(len(rows[0])):
        column = [row[at] for row in rows if row[at]]
        long = [cell for cell in column if len(cell) > 25 and not is_value(cell)]
        goes_on = sum(
            len(above) > 20 and (below[:1].islower() or above[-1:] in "-,") and above[-1:] not in ".:;"
            for above, below in pairwise(column)
        )
        if len(long) >= 3 and goes_on >= 0.3 * (len(column) - 1):
            return True
    return False


def _is_words(cell: str) -> bool:
    return sum(map(str.isalpha, cell)) >= 3


def _share(rows: Sequence[Sequence[str]], says: Callable[[Sequence[str]], bool]) -> float:
    return sum(map(says, rows)) / len(rows) if rows else 0.0
