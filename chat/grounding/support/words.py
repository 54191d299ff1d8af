"""The words of a text that carry meaning, where they stand. PURE."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chat.grounding.evidence.scoring import stems

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Word:
    """``text[start:end]``, and its likely stem."""

    start: int
    end: int
    stem: str


def words_of(text: str) -> tuple[Word, ...]:
    """The words that carry meaning, in order, with repeats; a name in camel case counts as its parts as well."""
    return tuple(
        Word(match.start(), match.end(), stem) for match in _WORD.finditer(text) for stem in stems_of(match.group())
    )


@functools.lru_cache(maxsize=20_000)
def stems_of(word: str) -> tuple[str, ...]:
    """The stems of one word: none for a word without meaning of its own, several for a joined name."""
    return tuple(stems(word))


def pairs(words: Sequence[str], reach: int) -> Iterator[tuple[str, str]]:
    """The words that stand together, at most ``reach`` places apart, each pair in the order of the text."""
    for distance in range(1, reach + 1):
        yield from zip(words, words[distance:], strict=False)
