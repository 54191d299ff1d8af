"""Find words of a file that are missing in its extracted text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Chinese and Japanese have no spaces between words, so each character counts as a word.
_SIGNS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_SIGNS}]|(?:(?![{_SIGNS}])[^\W_])+")
# Soft hyphens, combining marks and direction marks.
_MARK = re.compile(
    "[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u202a-\u202e\u2066-\u2069]"
)
# The searches for words that were run together read at most this many characters, in about a second.
_MOST_SEARCHED = 2_000_000_000


def find_lost_words(expected: str, text: str) -> list[str]:
    """Return the words of ``expected`` that are missing in ``text``, in order and with repetitions.

    Case is ignored. A word is not missing if only spaces in or around it differ.
    """
    words, found = _split_words(expected), _split_words(text)
    missing = Counter(map(str.casefold, words))
    unmatched = Counter(map(str.casefold, found))
    missing, unmatched = missing - unmatched, unmatched - missing
    if not missing:
        return []
    return _order_lost_words(words, _remove_joined_words(missing, unmatched, words, found))


def _split_words(text: str) -> list[str]:
    return _WORD.findall(_MARK.sub("", unicodedata.normalize("NFKC", text)))


def _order_lost_words(words: list[str], lost: Counter[str]) -> list[str]:
    lacking = []
    for word in reversed(words):
        if lost[key := word.casefold()] > 0:
            lost[key] -= 1
            lacking.append(word)
    return lacking[::-1]


def _remove_joined_words(
    missing: Counter[str], unmatched: Counter[str], words: list[str], found: list[str]
) -> Counter[str]:
    rest = "".join(word.casefold() if unmatched[word.casefold()] else " " for word in found)
    squeezed, whole = ("".join(each).casefold() for each in (words, found))
    if squeezed == whole:
        return Counter()
    budget = _MOST_SEARCHED
    lost: Counter[str] = Counter()
    # Removing a short word would cut a long word that contains it.
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
