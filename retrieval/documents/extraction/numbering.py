"""Compute the numbers that Word shows before headings, clauses and steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from docx.oxml.ns import qn

_PLACE = re.compile(r"%([1-9])")
_ROMAN: tuple[tuple[int, str], ...] = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
)
_ROMAN += ((9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class ParagraphNumbering:
    """Counts a document's numbered paragraphs. Call :meth:`number_paragraph` once for each paragraph, in order.

    Source: ECMA-376 part 1, 17.9.
    """

    def __init__(self, root: Any, styles: Any) -> None:
        self._levels: dict[str, dict[int, Any]] = {}
        self._abstract: dict[str, str] = {}
        self._own: dict[str, dict[int, Any]] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        self._styles: dict[str, tuple[str, int]] = {}
        for definition in root.iterchildren(qn("w:abstractNum")) if root is not None else ():
            levels = {int(level.get(qn("w:ilvl"), 0)): level for level in definition.iterchildren(qn("w:lvl"))}
            self._levels[definition.get(qn("w:abstractNumId"))] = levels
        by_id = (
            {style.get(qn("w:styleId")): style for style in styles.iterchildren(qn("w:style"))}
            if styles is not None
            else {}
        )
        for number in root.iterchildren(qn("w:num")) if root is not None else ():
            self._read_numbering_instance(number)
        for definition in root.iterchildren(qn("w:abstractNum")) if root is not None else ():
            link = by_id.get(_read_value(definition, "w:numStyleLink"))
            if link is not None:
                num_id = _read_value(link.find(f"{qn('w:pPr')}/{qn('w:numPr')}"), "w:numId")
                linked = self._levels.get(self._abstract.get(num_id, ""), {})
                self._levels[definition.get(qn("w:abstractNumId"))].update(linked)
        for style_id in by_id:
            if found := self._find_style_place(style_id, by_id):
                self._styles[style_id] = found

    def _read_numbering_instance(self, number: Any) -> None:
        num_id = number.get(qn("w:numId"))
        abstract = number.find(qn("w:abstractNumId"))
        self._abstract[num_id] = abstract.get(qn("w:val")) if abstract is not None else ""
        for override in number.iterchildren(qn("w:lvlOverride")):
            at = int(override.get(qn("w:ilvl"), 0))
            if start := _read_value(override, "w:startOverride"):
                self._starts[num_id, at] = int(start)
            if (level := override.find(qn("w:lvl"))) is not None:
                self._own.setdefault(num_id, {})[at] = level

    def _find_style_place(self, style_id: str, by_id: dict[str, Any]) -> tuple[str, int] | None:
        wanted, seen = style_id, set()
        while style_id in by_id and style_id not in seen:
            seen.add(style_id)
            style = by_id[style_id]
            properties = style.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
            if properties is not None:
                num_id = _read_value(properties, "w:numId")
                level = _read_value(properties, "w:ilvl")
                linked = (
                    at
                    for at, each in self._levels.get(self._abstract.get(num_id, ""), {}).items()
                    if _read_value(each, "w:pStyle") in (wanted, style_id)
                )
                return (num_id, int(level) if level else next(linked, 0)) if num_id not in ("", "0") else None
            based_on = style.find(qn("w:basedOn"))
            style_id = based_on.get(qn("w:val")) if based_on is not None else ""
        return None

    def find_place(self, paragraph: Any) -> tuple[str, int] | None:
        """Return the id of the paragraph's list, and its level from 0; None if it is in no list."""
        properties = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
        by_style = self._styles.get(_read_value(paragraph.find(qn("w:pPr")), "w:pStyle"))
        if properties is None:
            return by_style
        num_id = _read_value(properties, "w:numId") or (by_style[0] if by_style else "")
        level = _read_value(properties, "w:ilvl") or (str(by_style[1]) if by_style else "0")
        return (num_id, int(level)) if num_id in self._abstract else None

    def number_paragraph(self, paragraph: Any) -> tuple[int, str] | None:
        """Return the level and number (empty for a bullet) of the next paragraph; None if it is in no list."""
        place = self.find_place(paragraph)
        if place is None:
            return None
        num_id, at = place
        abstract = self._abstract[num_id]
        levels = {**self._levels.get(abstract, {}), **self._own.get(num_id, {})}
        counts = self._counts.setdefault(abstract, {})
        if num_id not in self._begun:
            # The start numbers that a list sets (`w:startOverride`) apply only before its first paragraph.
            self._begun.add(num_id)
            for (owner, level), start in self._starts.items():
                if owner == num_id:
                    counts[level] = start - 1
        counts[at] = counts.get(at, self._read_start_number(levels, at) - 1) + 1
        for deeper in [
            level for level in counts if level > at and _read_value(levels.get(level), "w:lvlRestart") != "0"
        ]:
            del counts[deeper]
        if at not in levels:
            return at, ""
        pattern = _read_value(levels[at], "w:lvlText")
        if _read_value(levels[at], "w:numFmt") == "bullet" and not _PLACE.search(pattern):
            return at, ""
        is_legal = levels[at].find(qn("w:isLgl")) is not None

        def format_level_number(match: re.Match[str]) -> str:
            level = int(match[1]) - 1
            value = counts.setdefault(level, self._read_start_number(levels, level)) if level <= at else 0
            form = _read_value(levels.get(level), "w:numFmt")
            return format_list_number(value, "decimal" if is_legal and form != "decimalZero" else form)

        return at, _PLACE.sub(format_level_number, pattern).strip()

    @staticmethod
    def _read_start_number(levels: dict[int, Any], at: int) -> int:
        return int((_read_value(levels[at], "w:start") if at in levels else "") or 1)


def _read_value(element: Any, child: str) -> str:
    found = element.find(qn(child)) if element is not None else None
    return (found.get(qn("w:val")) or "") if found is not None else ""


def _write_roman(value: int) -> str:
    written = ""
    for size, letters in _ROMAN:
        while value >= size:
            written, value = written + letters, value - size
    return written


def _write_letters(value: int) -> str:
    return chr(97 + (value - 1) % 26) * (1 + (value - 1) // 26) if 0 < value < 1000 else str(value)


def format_list_number(value: int, form: str) -> str:
    """Return a number in a numbering format of Word, such as "lowerRoman"; digits for an unknown format."""
    return _FORMS.get(form, str)(value)


_FORMS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda value: f"{value:02d}",
    "lowerLetter": _write_letters,
    "upperLetter": lambda value: _write_letters(value).upper(),
    "lowerRoman": lambda value: _write_roman(value) if 0 < value < 5000 else str(value),
    "upperRoman": lambda value: _write_roman(value).upper() if 0 < value < 5000 else str(value),
    "none": lambda value: "",
}
