"""The sections of a text as one sequence of regions with their heading paths. PURE."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from retrieval.ingest.extraction.types import ExtractedText
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


_WORDS = re.compile(r"[^\W_]+")
_TARGETS = re.compile(r"^\.\. .*$", re.M)


@dataclass(frozen=True, slots=True)
class Region:
    """The text from one heading to the next, whatever their levels.

    ``path`` holds the titles of the sections it lies in. ``leads`` says that it is only a heading, or what stands
    before the first one: it belongs with what follows. ``first_span`` to ``last_span`` are the protected spans that
    touch it. ``is_entry`` says that it is an entry of a glossary, a passage by itself.
    """

    start: int
    end: int
    path: tuple[str, ...]
    leads: bool
    first_span: int
    last_span: int
    is_entry: bool = False


def find_regions(extracted: ExtractedText) -> list[Region]:
    """The regions of ``extracted`` in order; they tile its text."""
    text, sections = extracted.text, extracted.sections
    marks = [(0, ())] if not sections or sections[0].start > 0 else []
    open_sections: list[tuple[int, str]] = []
    paths: list[tuple[int, tuple[str, ...]]] = list(marks)
    for section in sections:
        while open_sections and open_sections[-1][0] >= section.level:
            open_sections.pop()
        open_sections.append((section.level, section.title))
        paths.append((section.start, tuple(title for _, title in open_sections)))
    starts = [span.start for span in extracted.protected]
    ends = [span.end for span in extracted.protected]
    found: list[Region] = []
    for at, (start, path) in enumerate(paths):
        end = paths[at + 1][0] if at + 1 < len(paths) else len(text)
        head = text[start : min(end, start + 1000)]
        if path:
            leads = end - start < 1000 and _WORDS.findall(_TARGETS.sub("", head)) == _WORDS.findall(path[-1])
        else:
            leads = bool(sections) and end - start < 300
        region = Region(start, end, path, leads, bisect_right(ends, start), bisect_left(starts, end))
        found += _part_entries(region, extracted, starts, ends)
    return found


def _part_entries(region: Region, extracted: ExtractedText, starts: list[int], ends: list[int]) -> Iterator[Region]:
    """The region, with each entry of its glossaries as one of its own."""
    text, at = extracted.text, region.start
    for start, end in find_entries(text, region.start, region.end, (extracted.title, *region.path)):
        if text[at:start].strip():
            yield replace(region, start=at, end=start, last_span=bisect_left(starts, start))
        # No span is protected in it: the whole table would be.
        yield Region(start, end, region.path, False, 0, 0, is_entry=True)
        at = end
    if at == region.start:
        yield region
    elif text[at : region.end].strip():
        yield replace(region, start=at, leads=False, first_span=bisect_right(ends, at))


def headings_at(sections: Iterable[tuple[int, int, str]], offset: int) -> tuple[str, ...]:
    """The titles of the sections around a character, outermost first. ``sections`` are (start, level, title)."""
    path: list[tuple[int, str]] = []
    for start, level, title in sections:
        if start > offset:
            break
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
    return tuple(title for _, title in path)


def below_title(title: str, heading_path: tuple[str, ...]) -> tuple[str, ...]:
    """The headings without a first one that only repeats the title."""
    return heading_path[1:] if heading_path and heading_path[0].casefold() == title.casefold() else heading_path
