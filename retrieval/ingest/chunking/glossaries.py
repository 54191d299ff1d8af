"""The entries of glossaries, lists of abbreviations and the like, found in a text. PURE.

An entry answers "what is X?" by itself. In a passage of ten its vector would be near to none of them, so entries
become passages of their own (`retrieval.ingest.chunking.chunker`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median

from retrieval.text.blocks.outline import read_cells

FEWEST_ENTRIES = 4
LONGEST_TERM_WORDS = 6
SHORTEST_MEANING_WORDS = 5
_MOST_COLUMNS = 4
# Names of things, not values: few terms have a digit, and none repeats.
_LARGEST_SHARE_OF_NUMBERS = 0.25

_ROW = re.compile(r"\|[^\n]*\|")
_RULE = re.compile(r"\|[\s:|-]+\|")
_ITEM = re.compile(
    r"[ ]{0,3}[-*+] (?:\*\*|__|`)?(?P<term>[^\n:*`|]{1,60}?)(?:\*\*|__|`)?(?::(?:\*\*|__)?| [–—-]) "
    r"(?P<meaning>\S[^\n]*)"
)
_GLOSSARY = re.compile(
    r"\b(?:glossar\w*|terms|terminology|definitions|abbreviations|acronyms|vocabulary|begrippen\w*|afkortingen\w*"
    r"|woordenlijst|definities|terminologie)\b",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_DIGIT = re.compile(r"\d")


def find_entries(text: str, start: int, end: int, titles: Sequence[str]) -> list[tuple[int, int]]:
    """Start and end of each entry in ``text[start:end]``, in order; the head of a table goes with its first row.

    Items of a list count where one of the ``titles`` above them says that it is a glossary: "Check the lock: ..." is
    advice, and its list is read as a whole.
    """
    lists = any(_GLOSSARY.search(title) for title in titles)
    entries: list[tuple[int, int]] = []
    run: list[tuple[int, int, str, str]] = []
    head: int | None = None
    is_table = False
    for begin, stop in (*_lines(text, start, end), (end, end)):
        line = text[begin:stop].rstrip()
        if row := bool(_ROW.fullmatch(line.strip())):
            if not is_table:
                entries += _accept(run)
                run, head = [], begin
            elif _RULE.fullmatch(line.strip()):
                run = []
            elif len(cells := read_cells(line)) <= _MOST_COLUMNS:
                run.append((head if head is not None else begin, stop, cells[0], " ".join(cells[1:])))
                head = None
        elif lists and (item := _ITEM.fullmatch(line)):
            if is_table:
                entries += _accept(run)
                run = []
            run.append((begin, stop, item["term"], item["meaning"]))
        elif run and not is_table and line.startswith("  ") and line.strip():
            # A line that goes on with the item above.
            run[-1] = (run[-1][0], stop, *run[-1][2:])
        elif line or is_table or begin == end:
            entries += _accept(run)
            run = []
        is_table = row
    return entries


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end:
        stop = text.find("\n", start, end)
        stop = end if stop < 0 else stop
        yield start, stop
        start = stop + 1


def _accept(run: list[tuple[int, int, str, str]]) -> list[tuple[int, int]]:
    """The places of a run of entries, if it reads as a glossary does: short distinct names, then a meaning in words."""
    if len(run) < FEWEST_ENTRIES:
        return []
    terms = [term.strip(" *_`").casefold() for _begin, _stop, term, _meaning in run]
    words = median(len(_LETTERS.findall(meaning)) for *_place, meaning in run)
    numbers = sum(bool(_DIGIT.search(term)) or not _LETTERS.search(term) for term in terms)
    if (
        words < SHORTEST_MEANING_WORDS
        or len(set(terms)) < len(terms)
        or numbers > _LARGEST_SHARE_OF_NUMBERS * len(terms)
        or max(len(term.split()) for term in terms) > LONGEST_TERM_WORDS
    ):
        return []
    return [(begin, stop) for begin, stop, _term, _meaning in run]
