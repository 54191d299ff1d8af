"""Compare the words and table cells of two texts, ignoring markup."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

_PICTURE = re.compile(r"!\[[^\]]*\](?:\([^()\s]*(?:\s[^()]*)?\))?")
_LINK_TARGET = re.compile(r"\]\([^()\s]*(?:\s[^()]*)?\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_ADDRESS = re.compile(r"(?:https?://|www\.|mailto:)\S+")
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-fA-F]+|[a-z]+);")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WHOLE = re.compile(r"(?<=\d)\.0+(?![\d.])")
_WORD = re.compile(r"[^\W_]+")
_RULE = re.compile(r"^[\s|:+=-]*$")


@dataclass(frozen=True, slots=True)
class WordMatchCounts:
    expected: int
    found: int
    written: int
    cells: int = 0
    cells_found: int = 0
    distinct: int = 0
    distinct_found: int = 0

    def __add__(self, other: WordMatchCounts) -> WordMatchCounts:
        return WordMatchCounts(
            self.expected + other.expected,
            self.found + other.found,
            self.written + other.written,
            self.cells + other.cells,
            self.cells_found + other.cells_found,
            self.distinct + other.distinct,
            self.distinct_found + other.distinct_found,
        )


def list_words(text: str) -> list[str]:
    plain = _ADDRESS.sub(" ", _LINK_TARGET.sub("] ", _PICTURE.sub(" ", _COMMENT.sub(" ", text))))
    plain = _COMMAND.sub(" ", _TAG.sub(" ", _ENTITY.sub(" ", plain)))
    return _WORD.findall(unicodedata.normalize("NFKC", _WHOLE.sub("", plain)).casefold())


def list_cells(markdown: str) -> list[str]:
    lines = [line.strip() for line in markdown.split("\n")]
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|") and not _RULE.match(line)]
    cells = (" ".join(list_words(cell)) for row in rows for cell in row)
    return [cell for cell in cells if cell]


def compare_words(expected: str, text: str) -> WordMatchCounts:
    """Compare the words and table cells of two texts, counting repeated words.

    A cell of a table in ``expected`` is found if ``text`` contains its words in the same order without a gap.
    """
    wanted, given = list_words(expected), list_words(text)
    found = (Counter(wanted) & Counter(given)).total()
    line = f" {' '.join(given)} "
    cells = list_cells(expected)
    cells_found = sum(f" {cell} " in line for cell in cells)
    distinct = set(wanted)
    return WordMatchCounts(
        len(wanted), found, len(given), len(cells), cells_found, len(distinct), len(distinct.intersection(given))
    )
