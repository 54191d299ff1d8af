"""The words of a passage around what a search found in it. Pure Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

FRAGMENT_CHARACTERS = 150
LARGEST_FRAGMENTS = 2
# So much is shown in front of the first match of a fragment.
LEAD_CHARACTERS = 40
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SnippetPart:
    """A stretch of text; ``marked`` where it matches."""

    text: str
    marked: bool = False


def snippet(text: str, spans: Iterable[Span] = ()) -> tuple[SnippetPart, ...]:
    """The beginning of the text, or, where ``spans`` of it match, up to two fragments that show the first of them.

    ``spans`` are places ``[start, end)`` of the text in any order. The second fragment begins at the first match,
    behind the first fragment, of a word that it does not show. White space is one blank; "…" stands for what is left
    out. Empty for an empty text.
    """
    matches = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    fragments = _fragments(text, matches) or [_cut(text, 0)]
    pieces: list[SnippetPart] = []
    for number, (start, end) in enumerate(fragments):
        if number or text[:start].strip():
            pieces.append(SnippetPart("… " if not number else " … "))
        pieces += _pieces(text, start, end, matches)
    if text[fragments[-1][1] :].strip():
        pieces.append(SnippetPart(" …"))
    return tuple(piece for piece in pieces if piece.text)


def _fragments(text: str, matches: Sequence[Span]) -> list[Span]:
    fragments: list[Span] = []
    shown: set[str] = set()
    for start, end in matches:
        word = text[start:end].lower()
        if word in shown or len(fragments) == LARGEST_FRAGMENTS:
            continue
        if fragments and start < fragments[-1][1]:
            shown.add(word)
            continue
        fragment = _cut(text, max(start - LEAD_CHARACTERS, fragments[-1][1] if fragments else 0))
        # A match that is longer than a fragment is shown as far as it goes.
        fragments.append((fragment[0], max(fragment[1], min(end, start + FRAGMENT_CHARACTERS))))
        shown.add(word)
    if len(fragments) == 2 and fragments[1][0] - fragments[0][1] < 3:
        return [(fragments[0][0], fragments[1][1])]
    return fragments


def _cut(text: str, start: int) -> Span:
    """A fragment from the word at or behind ``start`` to the end of a word."""
    if start and (space := _SPACE.search(text, start)) and space.start() - start < LEAD_CHARACTERS // 2:
        start = space.end()
    end = min(len(text), start + FRAGMENT_CHARACTERS)
    if end < len(text):
        space_before = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = space_before if space_before > start + FRAGMENT_CHARACTERS // 2 else end
    return start, end


def _pieces(text: str, start: int, end: int, matches: Sequence[Span]) -> list[SnippetPart]:
    pieces = []
    at = start
    for first, last in matches:
        if first < at or first >= end:
            continue
        pieces.append(SnippetPart(_SPACE.sub(" ", text[at:first])))
        pieces.append(SnippetPart(_SPACE.sub(" ", text[first : min(last, end)]), marked=True))
        at = min(last, end)
    pieces.append(SnippetPart(_SPACE.sub(" ", text[at:end])))
    return pieces
