"""Markers in an answer: ``[1]``, ``[2]``. Pure functions over text.

A model writes markers as it likes: split over two pieces of the stream, several in one bracket, naming sources that do
not exist. What leaves this module names a source that was really given, and every marker comes whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection

MARKER = re.compile(r"\[(\d{1,3})\]")
_MARKERS = re.compile(r"(?:\[\d{1,3}\])+")
_PIECE_BREAK = re.compile(r"\n[ \t]*\n|\n(?=[ \t]*(?:\||(?:[-*+•]|\d{1,3}[.)])[ \t]))")
_WORD = re.compile(r"\w")
_GROUP = re.compile(r"[ \t]*\[\s*(?:source\s*)?\^?\d{1,3}(?:\s*[,;]\s*(?:source\s*)?\^?\d{1,3})*\s*\]", re.IGNORECASE)
# The longest text that may still become a marker: "[source 12, source 13, ..." is given up after this many characters.
_LONGEST_GROUP = 60
_OPEN_GROUP = re.compile(rf"[ \t]*(?:\[[\s\w^,;]{{0,{_LONGEST_GROUP}}})?$")


class MarkerStream:
    """Passes streamed text on, markers whole and only those in ``known``; holds back what may become one."""

    def __init__(self, known: Collection[int]) -> None:
        self._known = known
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown after this piece; may be empty."""
        text = self._held + piece
        held = _OPEN_GROUP.search(text)
        cut = held.start() if held else len(text)
        self._held = text[cut:]
        return keep_known_markers(text[:cut], self._known)

    def close(self) -> str:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, ""
        return keep_known_markers(rest, self._known)


def keep_known_markers(text: str, known: Collection[int]) -> str:
    """``text`` with every marker in the form ``[n]``, and those that name no known source removed with the space
    before.

    Markers in one bracket are taken apart: ``[1, 2]`` becomes ``[1][2]``.
    """

    def rewrite(match: re.Match[str]) -> str:
        group = match.group()
        numbers = [int(number) for number in re.findall(r"\d+", group)]
        kept = "".join(f"[{number}]" for number in dict.fromkeys(numbers) if number in known)
        return group[: len(group) - len(group.lstrip())] + kept if kept else ""

    return _GROUP.sub(rewrite, text)


def cited_statements(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The answer's statements with the markers that stand behind each.

    A marker speaks for the text since the marker before it, back to the start of its paragraph, list item or table row;
    markers in a paragraph of their own speak for the last statement before them (a table or a piece of code). A
    statement without a marker behind it comes with none.
    """
    statements: list[tuple[str, tuple[int, ...]]] = []
    for piece in _PIECE_BREAK.split(text):
        position = 0
        for group in _MARKERS.finditer(piece):
            statement = piece[position : group.start()].strip()
            markers = tuple(int(number) for number in MARKER.findall(group.group()))
            if _WORD.search(statement):
                statements.append((statement, markers))
            elif statements:
                statements[-1] = (statements[-1][0], statements[-1][1] + markers)
            position = group.end()
        rest = piece[position:].strip()
        if _WORD.search(rest):
            statements.append((rest, ()))
    return statements
