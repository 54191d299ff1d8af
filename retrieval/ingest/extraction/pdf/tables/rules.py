"""The rules that are drawn on a page, and the places that they set off as tables. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.ingest.extraction.pdf.printed import Box

NEAR = 3.0
_FEWEST_RULES = 3
_MOST_RULES = 2_000
_SHORTEST_RULE = 40


@dataclass(frozen=True, slots=True)
class RuledLine:
    """A straight line from ``start`` to ``end``, at the distance ``at`` from the top, or from the left."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class RuledLines:
    level: Sequence[RuledLine]
    upright: Sequence[RuledLine]


Region = tuple[list[RuledLine], list[RuledLine]]


def gather_rules(boxes: Sequence[Box]) -> RuledLines:
    """The rules that drawn shapes make: thin ones, and the sides of rectangles."""
    level: list[RuledLine] = []
    upright: list[RuledLine] = []
    for left, top, right, bottom in boxes[:_MOST_RULES]:
        if bottom - top > NEAR:
            upright += [RuledLine(left, top, bottom), RuledLine(right, top, bottom)]
        if right - left > NEAR:
            level += [RuledLine(top, left, right), RuledLine(bottom, left, right)]
    return RuledLines(_merge(level), _merge(upright))


def _merge(rules: Sequence[RuledLine]) -> list[RuledLine]:
    """Rules that go on where another ends as one."""
    merged: list[RuledLine] = []
    rows: list[list[RuledLine]] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if rows and rule.at - rows[-1][0].at <= NEAR:
            rows[-1].append(rule)
        else:
            rows.append([rule])
    for row in rows:
        for rule in sorted(row, key=lambda rule: rule.start):
            last = merged[-1] if merged else None
            if last is not None and abs(last.at - row[0].at) < 0.01 and rule.start <= last.end + NEAR:
                merged[-1] = RuledLine(last.at, last.start, max(last.end, rule.end))
            else:
                merged.append(RuledLine(row[0].at, rule.start, rule.end))
    return merged


def find_regions(rules: RuledLines) -> list[Region]:
    """The rules of each place that may be a table: grids, whose rules meet, and at least three level rules of one width
    below each other."""
    regions: list[Region] = []
    alone: list[RuledLine] = []
    for level, upright in _meeting(rules):
        if len(level) >= _FEWEST_RULES and len(upright) >= _FEWEST_RULES:
            regions.append((level, upright))
        elif not upright:
            alone += level
    groups: list[list[RuledLine]] = []
    for rule in sorted(alone, key=lambda rule: rule.at):
        if rule.end - rule.start < _SHORTEST_RULE:
            continue
        for group in groups:
            if abs(group[0].start - rule.start) < 2 * NEAR and abs(group[0].end - rule.end) < 2 * NEAR:
                group.append(rule)
                break
        else:
            groups.append([rule])
    # Such a table has a rule above its header, one below it and one at its end.
    for group in groups:
        regions += [(part, []) for part in _part_by_three(group) if len(part) >= _FEWEST_RULES]
    return regions


def _part_by_three(rules: list[RuledLine]) -> list[list[RuledLine]]:
    """The rules of several tables below each other; of one, where each row has a rule."""
    parts = [rules[at : at + 3] for at in range(0, len(rules), 3)]
    is_headed = all(len(part) == 3 and part[2].at - part[1].at > 1.5 * (part[1].at - part[0].at) for part in parts)
    return parts if is_headed else [rules]


def _meeting(rules: RuledLines) -> list[Region]:
    """Level and upright rules that meet, directly or by others."""
    parts: list[Region] = [([rule], []) for rule in rules.level]
    for rule in rules.upright:
        met = [part for part in parts if any(_meet(level, rule) for level in part[0])]
        if met:
            parts = [part for part in parts if not any(part is other for other in met)]
            parts.append(
                ([level for part in met for level in part[0]], [*(up for part in met for up in part[1]), rule])
            )
    return [(sorted(level, key=lambda rule: rule.at), upright) for level, upright in parts]


def _meet(level: RuledLine, upright: RuledLine) -> bool:
    return (
        level.start - NEAR <= upright.at <= level.end + NEAR and upright.start - NEAR <= level.at <= upright.end + NEAR
    )


def distinct(values: Sequence[float]) -> list[float]:
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > NEAR:
            found.append(value)
    return found
