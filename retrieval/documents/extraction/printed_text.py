"""Join the lines of printed pages into one text with paragraphs and headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.printed import (
    CUT_WORD,
    REST_OF_WORD,
    PrintedLine,
    PrintedPage,
    is_compound_hyphen,
)
from retrieval.text.extracted import Page, Section, strip_title
from retrieval.text.word_lists import fill_in

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\xa0": " "})
_BULLETS = str.maketrans(dict.fromkeys("\uf0b7\uf0a7\uf0d8\uf0fc\uf076\uf0a8\uf02d", "•"))
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]++-[^\W\d_]\w*+")
_ITEM = re.compile(r"(?:[-*+•‣◦▪●·–]|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)])\s")
_CHAPTER = re.compile(fill_in(r"(?:<heading>\s+)?(\d{1,3}(?:\.\d{1,3}){0,5})\.?\s+\S", "documents"), re.I)
# Lines of a table of contents end with dots and a page number. A line between two such lines needs only a page number.
_LEADERS = re.compile(r"[.…·](?:\s?[.…·]){3}\s*\w{1,5}$")
_PAGE_NUMBER = re.compile(r"\s\d{1,4}$")
_FEWEST_ENTRIES = 3
_SENTENCE_END = re.compile(r"[.!?:;…]['\"”’)\]]*$")
_LARGER = 1.12
_SAME_SIZE = 0.08
_LONGEST_HEADING = 150
_LONGEST_BOLD_HEADING = 90
_MOST_HEADING_SHARE = 0.4
_WIDER_GAP = 1.3
_LEVELS = 6


@dataclass(slots=True)
class _LineGroup:
    page: int
    lines: list[PrintedLine]
    separator: str = "\n\n"
    level: int = 0

    @property
    def font_size(self) -> float:
        return max(self.lines, key=lambda line: len(line.text)).size

    @property
    def is_bold(self) -> bool:
        return all(line.is_bold for line in self.lines)

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)


def join_printed_lines(pages: Sequence[PrintedPage]) -> tuple[str, list[Page], list[Section]]:
    """Return the text of ``pages``, the offsets of each page, and the headings found by font size."""
    for page in pages:
        for line in [*page.lines, *page.aside]:
            line.text = make_canonical_text(line.text).translate(_LIGATURES).translate(_BULLETS)
        _drop_tables_of_contents(page)
    body = _measure_body_size(pages)
    pitch = _measure_line_pitch(pages)
    groups = [group for number, page in enumerate(pages) for group in _group_lines(number, page.lines, pitch)]
    _mark_headings(groups, body)
    _join_across_pages(groups)
    for number, page in enumerate(pages):
        if page.aside:
            _insert_aside_lines(groups, list(_group_lines(number, page.aside, pitch)))
    return _write_line_groups(groups, pages)


def _insert_aside_lines(groups: list[_LineGroup], aside: list[_LineGroup]) -> None:
    page = aside[0].page
    end = next((at for at, group in enumerate(groups) if group.page > page), len(groups))
    if end < len(groups) and groups[end].separator != "\n\n":
        parts = (at for at in range(end - 1, -1, -1) if groups[at].separator == "\n\n" or groups[at].page < page)
        end = next(parts, 0)
    if end < len(groups):
        groups[end].separator = "\n\n"
    aside[0].separator = "\n\n"
    groups[end:end] = aside


def _drop_tables_of_contents(page: PrintedPage) -> None:
    entries = [at for at, line in enumerate(page.lines) if _LEADERS.search(line.text)]
    if len(entries) >= _FEWEST_ENTRIES:
        is_all = 2 * len(entries) >= len(page.lines)
        among = range(len(page.lines)) if is_all else range(entries[0], entries[-1])
        page.lines = [
            line
            for at, line in enumerate(page.lines)
            if at not in entries and not (at in among and _PAGE_NUMBER.search(line.text))
        ]


def find_largest_heading(pages: Sequence[PrintedPage]) -> str:
    """Return the largest text on the first page, usually the title; empty if it is as small as body text."""
    body = _measure_body_size(pages)
    lines = [line for line in pages[0].lines if sum(map(str.isalpha, line.text)) > 5] if pages else []
    size = max((line.size for line in lines), default=0.0)
    if size < _LARGER * body:
        return ""
    title = " ".join(line.text for line in lines if line.size >= size * (1 - _SAME_SIZE))
    return strip_title(title) if len(title) <= _LONGEST_HEADING else ""


def _measure_body_size(pages: Sequence[PrintedPage]) -> float:
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _measure_line_pitch(pages: Sequence[PrintedPage]) -> float:
    pitches = [
        (below.middle_y - line.middle_y) / line.size
        for page in pages
        for line, below in pairwise(page.lines)
        if line.size and below.size == line.size and 0.9 < (below.middle_y - line.middle_y) / line.size < 3
    ]
    # A low percentile excludes the larger distances between paragraphs.
    return sorted(pitches)[len(pitches) * 2 // 5] if pitches else 1.2


def _group_lines(page: int, lines: Sequence[PrintedLine], pitch: float) -> Iterator[_LineGroup]:
    group: _LineGroup | None = None
    for at, line in enumerate(lines):
        if group is None:
            group = _LineGroup(page, [line])
            continue
        begins_table = line.is_row and any(below.text.startswith("| --- |") for below in lines[at + 1 : at + 2])
        separator = "\n\n" if begins_table else _choose_separator(group.lines, line, pitch)
        if separator:
            yield group
            group = _LineGroup(page, [line], separator)
        else:
            group.lines.append(line)
    if group is not None:
        yield group


def _choose_separator(above: Sequence[PrintedLine], line: PrintedLine, pitch: float) -> str:
    last = above[-1]
    if line.is_row or last.is_row:
        return "" if line.is_row and last.is_row else "\n\n"
    if _ITEM.match(line.text):
        distance = line.middle_y - last.middle_y
        return "\n" if 0 < distance < _WIDER_GAP * pitch * max(line.size, last.size) else "\n\n"
    is_apart = abs(line.middle_y - last.middle_y) > 0.6 * min(line.size, last.size)
    if abs(line.size - last.size) > _SAME_SIZE * last.size and is_apart:
        return "\n\n"
    if line.is_bold != last.is_bold and (not last.is_bold or all(other.is_bold for other in above)):
        return "\n\n" if line.is_bold or len(last.text) <= _LONGEST_BOLD_HEADING else ""
    distance = line.middle_y - last.middle_y
    if distance <= 0:  # The line is in the next column.
        return "" if _is_sentence_continued(last, line) else "\n\n"
    if distance > _WIDER_GAP * pitch * max(line.size, last.size):
        return "\n\n"
    first = above[0]
    is_indented = 0.8 * line.size < line.left - last.left < 5 * line.size
    is_after_full_line = last.left <= min(other.left for other in above) + 1
    if is_indented and is_after_full_line and not _ITEM.match(first.text) and _SENTENCE_END.search(last.text):
        return "\n\n"
    return ""


def _is_sentence_continued(last: PrintedLine, line: PrintedLine) -> bool:
    if _SENTENCE_END.search(last.text) or abs(line.size - last.size) > _SAME_SIZE * last.size:
        return False
    return line.text[:1].islower() or last.text[-1:] in ",-–" or (last.text[-1:].islower() and len(last.text) > 40)


def _join_across_pages(groups: Sequence[_LineGroup]) -> None:
    for above, group in pairwise(groups):
        if above.page != group.page and above.lines[-1].is_row and group.lines[0].is_row:
            # The second table has a header of its own, so it is another table.
            is_other = any(line.text.startswith("| --- |") for line in group.lines[1:2])
            group.separator = "\n\n" if is_other else "\n"
            continue
        if above.page == group.page or above.level or group.level or above.lines[-1].is_row or group.lines[0].is_row:
            continue
        if _ITEM.match(group.text):
            group.separator = "\n" if _ITEM.match(above.lines[0].text) else "\n\n"
        elif _is_sentence_continued(above.lines[-1], group.lines[0]):
            group.separator = "\n"


def _mark_headings(groups: Sequence[_LineGroup], body: float) -> None:
    bold = sum(len(group.text) for group in groups if group.is_bold)
    bold_counts = bold * 3 < sum(len(group.text) for group in groups)
    found = [
        group
        for group, below in pairwise([*groups, None])
        if group is not None and _is_heading(group, below, body, bold_counts=bold_counts)
    ]
    if len(found) > max(3, _MOST_HEADING_SHARE * len(groups)):
        return
    depths = [match[1].count(".") + 1 if (match := _CHAPTER.match(group.text)) else 0 for group in found]
    styles = sorted({_read_font_style(group) for group in found}, reverse=True)
    # If the headings of a style are numbered, its level is the usual number of parts (2.1 has two parts, so level 2).
    # Otherwise the font size decides: the largest style has level 1.
    numbered: dict[tuple[float, bool], list[int]] = {}
    for group, depth in zip(found, depths, strict=True):
        if depth:
            numbered.setdefault(_read_font_style(group), []).append(depth)
    for group, depth in zip(found, depths, strict=True):
        style = _read_font_style(group)
        usual = round(median(numbered[style])) if style in numbered else styles.index(style) + 1
        group.level = min(_LEVELS, depth or usual)


def _read_font_style(group: _LineGroup) -> tuple[float, bool]:
    return round(group.font_size * 2) / 2, group.is_bold


def _is_heading(group: _LineGroup, below: _LineGroup | None, body: float, *, bold_counts: bool) -> bool:
    text = group.text
    if not 2 <= len(text) <= _LONGEST_HEADING or sum(map(str.isalpha, text)) < 0.5 * len(text.replace(" ", "")):
        return False
    if text[0].islower() or text.endswith((",", ";", ".", "=")) or text.startswith(("•", "-", "–", "*")):
        return False
    if below is None or len(group.lines) > 3 or group.lines[0].is_row:
        return False
    if group.font_size >= _LARGER * body:
        return True
    is_bold_line = bold_counts and group.is_bold and group.font_size >= 0.95 * body and len(group.lines) <= 2
    return is_bold_line and len(text) <= _LONGEST_BOLD_HEADING and below.separator == "\n\n" and not below.is_bold


def _write_line_groups(
    groups: Sequence[_LineGroup], printed_pages: Sequence[PrintedPage]
) -> tuple[str, list[Page], list[Section]]:
    # If the document contains a hyphenated word within a line, the same word keeps its hyphen at the end of a line.
    hyphened = (line.text for page in printed_pages for line in page.lines if "-" in line.text)
    compounds = {word for text in hyphened for word in _COMPOUND.findall(text)}
    pieces: list[str] = []
    length = 0
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    sections: list[Section] = []

    def add(piece: str) -> None:
        nonlocal length
        pieces.append(piece)
        length += len(piece)

    for group in groups:
        for at, line in enumerate(group.lines):
            separator = "\n" if at else group.separator if pieces else ""
            cut = CUT_WORD.search(pieces[-1]) if separator == "\n" and pieces else None
            rest = REST_OF_WORD.match(line.text) if cut else None
            if cut and rest:
                if f"{cut[1]}-{rest[0]}" not in compounds and not is_compound_hyphen(pieces[-1], cut, rest):
                    pieces[-1] = pieces[-1][:-1]
                    length -= 1
                    if ends:
                        ends[max(ends)] = length
            else:
                add(separator)
            starts.setdefault(group.page, length)
            if at == 0 and group.level:
                sections.append(Section(length, group.level, strip_title(group.text)))
            add(line.text)
            ends[group.page] = length
    add("\n")
    pages = []
    end = 0
    for number in range(len(printed_pages)):
        start = starts.get(number, end)
        end = ends.get(number, start)
        pages.append(Page(number + 1, start, end))
    return "".join(pieces), pages, sections
