"""Compare the words of a file with the words of the text that was read from it. PURE."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Chinese and Japanese are written without spaces: there, each sign is a word.
_SIGNS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_SIGNS}]|(?:(?![{_SIGNS}])[^\W_])+")
# Soft hyphens, and marks that combine with a letter or say in which order it is written, are not compared.
_MARK = re.compile(
    "[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u202a-\u202e\u2066-\u2069]"
)
# The search for words that are written together ends after so many characters, which takes about a second. Words that
# it does not come to count as lost.
_MOST_SEARCHED = 2_000_000_000


def lost_words(expected: str, text: str) -> list[str]:
    """Return the words of ``expected`` that ``text`` lacks, in their order, as often as they are lacking.

    Letters and digits are compared after NFKC and without case; a hyphen parts words. Order does not count. Words that
    only one of both writes together or apart, or cuts at a line end, are not lost.
    """
    words, found = _words(expected), _words(text)
    missing = Counter(map(str.casefold, words))
    left = Counter(map(str.casefold, found))
    missing, left = missing - left, left - missing
    if not missing:
        return []
    return _last_of(words, _without_joined(missing, left, words, found))


def _words(text: str) -> list[str]:
    return _WORD.findall(_MARK.sub("", unicodedata.normalize("NFKC", text)))


def _last_of(words: list[str], lost: Counter[str]) -> list[str]:
    """The last occurrences of the words that are ``lost``, in their order."""
    lacking = []
    for word in reversed(words):
        if lost[key := word.casefold()] > 0:
            lost[key] -= 1
            lacking.append(word)
    return lacking[::-1]


def _without_joined(missing: Counter[str], left: Counter[str], words: list[str], found: list[str]) -> Counter[str]:
    """``missing`` without what the words that are ``left`` contain, or what both texts contain equally often."""
    rest = "".join(word.casefold() if left[word.casefold()] else " " for word in found)
    squeezed, whole = ("".join(each).casefold() for each in (words, found))
    if squeezed == whole:
        return Counter()
    budget = _MOST_SEARCHED
    lost: Counter[str] = Counter()
    # A long word must not be cut by a short one that is part of it.
    for word in sorted(missing, key=len, reverse=True):
        pieces = rest.split(word, missing[word]) if budget > 0 else [rest]
        rest = " ".join(pieces)
        budget -= len(rest)
        count = missing[word] - (len(pieces) - 1)
        if count > 0 and budget > 0:
            count = min(count, squeezed.count(word) - whole.count(word))
            budget -= len(squeezed) + len(whole)
        if count > 0:
            lost[word] = count
    return lost
