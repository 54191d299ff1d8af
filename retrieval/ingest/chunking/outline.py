"""The sections of a text as one sequence of regions with their heading paths. PURE."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from retrieval.ingest.chunking.glossaries import find_entries
from retrieval.ingest.extraction.types import ExtractedText

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
