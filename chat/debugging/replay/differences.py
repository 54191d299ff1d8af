"""What differs between two texts, word by word. Pure Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_WORDS = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of one of the texts; ``changed`` where the other one lacks it."""

    text: str
    changed: bool = False


def compare_words(before: str, after: str) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Both texts in stretches that are the other's too or its own; joined, the stretches of one are that text."""
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, [word.strip() for word in first], [word.strip() for word in second], autojunk=False)
    left: list[Change] = []
    right: list[Change] = []
    for operation, a, b, c, d in matcher.get_opcodes():
        changed = operation != "equal"
        _add(left, first[a:b], changed=changed)
        _add(right, second[c:d], changed=changed)
    return tuple(left), tuple(right)


def _add(changes: list[Change], words: Sequence[str], *, changed: bool) -> None:
    text = "".join(words)
    # The white space behind a change is no part of it: marked, an empty line would look like one.
    own = text.rstrip() if changed else text
    changes += [Change(part, mark) for part, mark in ((own, changed), (text[len(own) :], False)) if part]
