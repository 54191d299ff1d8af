"""Split a text into passages along its structure, each small enough for the embedder.

Passages of prose overlap, so that a sentence is found together with the sentence before it.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from math import ceil

from retrieval.text.extracted import ExtractedText, Section, Span, find_sections_above
from retrieval.text.sentences import SentenceBreak, split_sentences

_WORDS = re.compile(r"[^\W_]+")


def find_headings(sections: Iterable[tuple[int, int, str]], offset: int) -> tuple[str, ...]:
    """Return the titles of the sections (start, level, title) that contain ``offset``, outermost first."""
    return tuple(section.title for section in find_sections_above((Section(*row) for row in sections), offset))


def drop_repeated_title(title: str, heading_path: tuple[str, ...]) -> tuple[str, ...]:
    return heading_path[1:] if heading_path and heading_path[0].casefold() == title.casefold() else heading_path


@dataclass(frozen=True, slots=True)
class PassageUnit:
    """A sentence, a block, or a part of a block, which stays in one passage. ``cost`` is its number of tokens."""

    start: int
    end: int
    cost: int
    best_cut: SentenceBreak
    is_prose: bool


def divide_unit(text: str, unit: PassageUnit, limit: int, *, by_line: bool) -> Iterator[tuple[int, int, SentenceBreak]]:
    """Split a unit that has more than ``limit`` tokens. Yield start and end of each part, and the break before it.

    If ``by_line``, a unit with several lines is split into its lines, whatever their length.
    """
    at, cut = unit.start, unit.best_cut
    if by_line and "\n" in text[unit.start : unit.end]:
        for line in text[unit.start : unit.end].split("\n"):
            if line.strip():
                yield at, at + len(line.rstrip()), cut
            cut = SentenceBreak.SENTENCE if line.strip() else SentenceBreak.PARAGRAPH
            at += len(line) + 1
        return
    size = max(1, int((unit.end - unit.start) * limit / unit.cost * 0.9))
    size = min(size, max(1, (unit.end - unit.start) // 2))
    while at < unit.end:
        end = _find_cut(text, at, min(at + size, unit.end), unit.end)
        stretch = text[at:end]
        if stretch.strip():
            start = at + len(stretch) - len(stretch.lstrip())
            yield start, at + len(stretch.rstrip()), cut
            cut = SentenceBreak.NONE
        at = end


def _find_cut(text: str, start: int, end: int, stop: int) -> int:
    if end >= stop:
        return stop
    earliest = start + max(1, (end - start) * 2 // 3)
    for mark in ("\n", "; ", ", ", " ", ",", ";", "/"):
        at = text.rfind(mark, earliest, end)
        if at >= 0:
            return at + len(mark)
    return end


OVERLAP = 0.2
"""At most this share of a passage repeats whole sentences from the end of the passage before, in the same section."""


def pack_units_into_passages(units: list[PassageUnit], limit: int) -> Iterator[tuple[int, int]]:
    """Join neighbouring pieces to passages of similar sizes within ``limit``. Yield their ranges, which may overlap."""
    left = sum(unit.cost for unit in units)
    shared = int(limit * OVERLAP)
    first = done = 0
    while done < len(units):
        count = max(1, ceil((left - shared) / max(1, limit - shared)))
        target = limit if left <= limit else min(limit, shared + ceil((left - shared) / count))
        stop, used = first, 0
        while stop < len(units) and (stop <= done or (used < target and used + units[stop].cost <= limit)):
            used += units[stop].cost
            stop += 1
        if stop < len(units):
            stop = _find_best_stop(units, max(done + 1, first + 1), stop, used)
        yield units[first].start, units[stop - 1].end
        if stop == len(units):
            return
        left -= sum(unit.cost for unit in units[first:stop])
        begun, done, first, repeated = first, stop, stop, 0
        # Parts of code and tables are repeated in the next passage only if little text is left.
        is_tail = sum(unit.cost for unit in units[done : done + 20]) <= limit // 8
        while first - 1 > begun and (units[first - 1].is_prose or is_tail):
            repeated += units[first - 1].cost
            if repeated > shared or repeated + units[done].cost > limit:
                break
            first -= 1
            left += units[first].cost


def _find_best_stop(units: list[PassageUnit], earliest: int, stop: int, used: int) -> int:
    best, left = stop, used
    for at in range(stop, earliest - 1, -1):
        if left * 3 < used * 2:
            break
        if units[at].best_cut > units[best].best_cut:
            best = at
        left -= units[at - 1].cost
    return best


CHUNKER_VERSION = "9"

CountTokens = Callable[[Sequence[str]], list[int]]

SPECIAL_TOKENS = 2
"""Tokens an encoder adds around a text ([CLS] and [SEP])."""
MAX_CONTEXT_CHARS = 160
SHORTEST_RECORD = 20
"""Rows of a table with this mean number of tokens become separate passages."""
_SEPARATOR = " > "
_BATCH = 2_000
# A tokenizer may count a long run of letters as one token, so 16 characters count as at least one.
_CHARS_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A part of a document that becomes a passage. ``text`` is ``extracted.text[start:end]``.

    ``heading_path`` has the titles of the sections that contain the whole passage, outermost first. ``page`` is the
    page of its first character.
    """

    start: int
    end: int
    heading_path: tuple[str, ...]
    page: int | None
    text: str


@dataclass(slots=True)
class _SectionGroup:
    """Neighbouring sections (texts between two headings) that are split into passages together.

    If ``leads`` is true, the group is only a heading or short introduction, and is joined with the next section.
    """

    path: tuple[str, ...]
    units: list[PassageUnit]
    leads: bool

    @property
    def cost(self) -> int:
        return sum(unit.cost for unit in self.units)

    def append_group(self, other: _SectionGroup, path: tuple[str, ...], *, leads: bool) -> None:
        self.path, self.leads = path, leads
        self.units += other.units


def split_into_chunks(extracted: ExtractedText, count_tokens: CountTokens, budget_tokens: int) -> list[TextChunk]:
    """Return the passages of a document in reading order. Together they contain every character except white space.

    ``budget_tokens`` limits a passage, including special tokens and ``build_heading_context()``. Raises: ValueError if
    ``budget_tokens`` is at most SPECIAL_TOKENS.
    """
    if budget_tokens <= SPECIAL_TOKENS:
        raise ValueError(f"The budget must exceed {SPECIAL_TOKENS} tokens, and is {budget_tokens}.")
    text = extracted.text
    cost_of = partial(_estimate_token_costs, count_tokens)
    section_groups = _find_section_groups(extracted, cost_of)
    limits = _TokenBudgets(
        cost_of, extracted.title, budget_tokens - SPECIAL_TOKENS, {group.path for group in section_groups}
    )
    # Rows of tables are cited by their sheet, so rows of two sheets are never joined.
    groups = _join_section_groups(section_groups, limits, joins_small=not extracted.holds_records)
    if extracted.holds_records:
        groups = _separate_records(groups)
    stretches: list[tuple[int, int, tuple[str, ...]]] = []
    _split_large_units(text, groups, limits, cost_of)
    for group in groups:
        stretches.extend(
            (start, end, group.path) for start, end in pack_units_into_passages(group.units, limits[group.path])
        )
    stretches = _enforce_limits(text, stretches, limits, cost_of)
    return [TextChunk(start, end, path, extracted.page_at(start), text[start:end]) for start, end, path in stretches]


def build_heading_context(title: str, heading_path: Sequence[str]) -> str:
    """Return the title and headings to embed before a passage, at most MAX_CONTEXT_CHARS long."""
    parts: list[str] = []
    for part in (title, *heading_path):
        if part and (not parts or part.casefold() != parts[-1].casefold()):
            parts.append(part)
    while len(parts) > 2 and len(_SEPARATOR.join(parts)) > MAX_CONTEXT_CHARS:
        del parts[1]
    if len(_SEPARATOR.join(parts)) > MAX_CONTEXT_CHARS:
        share = (MAX_CONTEXT_CHARS - len(_SEPARATOR)) // len(parts)
        parts = [part[:share].rstrip() for part in parts]
    return _SEPARATOR.join(parts)


def build_embedding_text(title: str, heading_path: Sequence[str], text: str) -> str:
    context = build_heading_context(title, heading_path)
    return f"{context}\n{text}" if context else text


def hash_content(text: str, heading_path: Sequence[str]) -> str:
    """Return the SHA-256 of a passage and its headings. White space has no effect."""
    fields = (" ".join(part.split()) for part in (*heading_path, text))
    return hashlib.sha256("\x1f".join(fields).encode("utf-8", "surrogatepass")).hexdigest()


def _estimate_token_costs(count_tokens: CountTokens, texts: Sequence[str]) -> list[int]:
    tokens = (count for at in range(0, len(texts), _BATCH) for count in count_tokens(texts[at : at + _BATCH]))
    return [max(count, ceil(len(text) / _CHARS_PER_TOKEN), 1) for text, count in zip(texts, tokens, strict=True)]


class _TokenBudgets(dict[tuple[str, ...], int]):
    def __init__(self, cost_of: CountTokens, title: str, budget: int, paths: Iterable[tuple[str, ...]]) -> None:
        known_paths = sorted({path[:depth] for path in paths for depth in range(len(path) + 1)})
        costs = cost_of([build_heading_context(title, path) for path in known_paths])
        floor = max(1, budget // 4)
        super().__init__((path, max(budget - cost, floor)) for path, cost in zip(known_paths, costs, strict=True))
        self.budget = budget


def _find_section_groups(extracted: ExtractedText, cost_of: CountTokens) -> list[_SectionGroup]:
    text, sections = extracted.text, extracted.sections
    paths: list[tuple[int, tuple[str, ...]]] = [(0, ())] if not sections or sections[0].start > 0 else []
    open_sections: list[Section] = []
    for section in sections:
        while open_sections and open_sections[-1].level >= section.level:
            open_sections.pop()
        open_sections.append(section)
        paths.append((section.start, tuple(outer.title for outer in open_sections)))
    span_starts = [span.start for span in extracted.protected]
    span_ends = [span.end for span in extracted.protected]
    cut_sections = []
    for (start, path), (end, _) in pairwise([*paths, (len(text), ())]):
        if path:
            head = text[start : min(end, start + 1000)]
            leads = end - start < 1000 and _WORDS.findall(head) == _WORDS.findall(path[-1])
        else:
            leads = bool(sections) and end - start < 300
        spans = extracted.protected[bisect_right(span_ends, start) : bisect_left(span_starts, end)]
        cut_sections.append((path, leads, list(_cut_section(text, start, end, path, spans))))
    costs = iter(cost_of([text[start:end] for _, _, pieces in cut_sections for start, end, _, _ in pieces]))
    return [
        _SectionGroup(
            path, [PassageUnit(start, end, next(costs), cut, prose) for start, end, cut, prose in pieces], leads
        )
        for path, leads, pieces in cut_sections
        if pieces
    ]


def _cut_section(
    text: str, start: int, stop: int, path: tuple[str, ...], spans: Sequence[Span]
) -> Iterator[tuple[int, int, SentenceBreak, bool]]:
    """Yield each block and sentence of a section: start, end, the break before it, and whether it is prose."""
    at = start
    line_end = text.find("\n", start, stop)
    if path and line_end > 0 and _WORDS.findall(text[start:line_end]) == _WORDS.findall(path[-1]):
        at += len(text[start:line_end].rstrip())
    introduces = at > start
    if introduces:
        yield start, at, SentenceBreak.PARAGRAPH, True
    for span in spans:
        start, end = max(span.start, at), min(span.end, stop)
        for piece in split_sentences(text, at, start):
            yield (
                *piece[:2],
                SentenceBreak.NONE if introduces and piece[2] is SentenceBreak.SENTENCE else piece[2],
                True,
            )
            introduces = text[piece[1] - 1] == ":"
        while start < end and text[start] == "\n":
            start += 1
        block = text[start:end].rstrip()
        if block.strip():
            yield start, start + len(block), SentenceBreak.NONE if introduces else SentenceBreak.PARAGRAPH, False
            introduces = False
        at = max(at, end)
    for piece in split_sentences(text, at, stop):
        yield (*piece, True)


def _join_section_groups(
    section_groups: list[_SectionGroup], limits: _TokenBudgets, *, joins_small: bool
) -> list[_SectionGroup]:
    groups: list[_SectionGroup] = []
    for group in section_groups:
        last = groups[-1] if groups else None
        if last is None:
            groups.append(group)
        elif last.leads and group.path[: len(last.path)] == last.path:
            last.append_group(group, group.path, leads=group.leads)
        elif (
            joins_small
            and (last.leads or not group.leads)
            and (shared := _find_shared_heading_path(last, group, limits)) is not None
        ):
            last.append_group(group, shared, leads=False)
        else:
            groups.append(group)
    return groups


def _separate_records(groups: list[_SectionGroup]) -> list[_SectionGroup]:
    """Return one group for each record, or ``groups`` if the records are too short.

    The vector of a passage with ten records is near to none of them, but a tiny record's vector is near to everything.
    """
    units = [unit for group in groups for unit in group.units]
    if sum(unit.cost for unit in units) < SHORTEST_RECORD * len(units):
        return groups
    return [_SectionGroup(group.path, [unit], leads=False) for group in groups for unit in group.units]


def _find_shared_heading_path(
    last: _SectionGroup, group: _SectionGroup, limits: _TokenBudgets
) -> tuple[str, ...] | None:
    depth = len(group.path) - 1
    # Only neighbouring sections of one level are joined, or a section with its first subsection.
    if len(last.path) > depth + 1 or depth < 0 or last.path[:depth] != group.path[:depth]:
        return None
    shared = group.path[:depth]
    small = limits.budget // (4 if shared else 8)
    if min(last.cost, group.cost) >= small or last.cost + group.cost > limits[shared]:
        return None
    return shared


def _split_large_units(text: str, groups: list[_SectionGroup], limits: _TokenBudgets, cost_of: CountTokens) -> None:
    by_line = True
    while True:
        found = [
            (group, unit)
            for group in groups
            for unit in group.units
            if unit.end - unit.start > 1 and unit.cost > limits[group.path]
        ]
        if not found:
            return
        cuts = [list(divide_unit(text, unit, limits[group.path], by_line=by_line)) for group, unit in found]
        costs = iter(cost_of([text[start:end] for pieces in cuts for start, end, _ in pieces]))
        replaced = {
            (unit.start, unit.end): [PassageUnit(start, end, next(costs), cut, False) for start, end, cut in pieces]
            for (_, unit), pieces in zip(found, cuts, strict=True)
        }
        for group in groups:
            group.units = [piece for unit in group.units for piece in replaced.get((unit.start, unit.end), [unit])]
        by_line = False


def _enforce_limits(
    text: str, stretches: list[tuple[int, int, tuple[str, ...]]], limits: _TokenBudgets, cost_of: CountTokens
) -> list[tuple[int, int, tuple[str, ...]]]:
    """Halve passages until none exceeds its limit.

    A passage may have more tokens than its units, which were counted separately.
    """
    while True:
        costs = cost_of([text[start:end] for start, end, _ in stretches])
        over = {
            at
            for at, (cost, (start, end, path)) in enumerate(zip(costs, stretches, strict=True))
            if cost > limits[path] and end - start > 1
        }
        if not over:
            return stretches
        halved = []
        for at, (start, end, path) in enumerate(stretches):
            if at in over:
                unit = PassageUnit(start, end, costs[at], SentenceBreak.NONE, False)
                halved += [
                    (begin, stop, path) for begin, stop, _ in divide_unit(text, unit, limits[path], by_line=False)
                ]
            else:
                halved.append((start, end, path))
        halved.sort(key=lambda stretch: (stretch[0], -stretch[1]))
        ends = [0, *accumulate((end for _, end, _ in halved), max)]
        stretches = [stretch for stretch, end in zip(halved, ends, strict=False) if stretch[1] > end]
