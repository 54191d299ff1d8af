"""Find content words, numbers and negations in English and Dutch texts."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

from retrieval.text.terms import expand_identifiers
from retrieval.text.word_lists import read_sections, read_words

SHORTEST_STEM = 4

_WORD = re.compile(r"[^\W_]+")
_AROUND_WORDS = ".,;:!?()[]\"'*`"
_STOP_WORDS = read_words("answers", "stop_words")
_ENDINGS = tuple(sorted(read_words("answers", "endings"), key=lambda ending: (-len(ending), ending)))


def find_stems(text: str) -> list[str]:
    return list(_find_stems(text))


def find_stems_of_texts(*texts: str) -> frozenset[str]:
    return frozenset().union(*map(_find_stems, texts))


@functools.lru_cache(maxsize=4096)
def _find_stems(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem for run in text.split() for stem in _find_stems_of_unspaced_text(run)))


@functools.lru_cache(maxsize=2**15)
def _find_stems_of_unspaced_text(run: str) -> tuple[str, ...]:
    word = run.strip(_AROUND_WORDS)
    if word.isalpha() and word[1:].islower():
        word = word.lower()
        return () if word in _STOP_WORDS else (_stem(word),)
    words = _WORD.findall(expand_identifiers(run).lower())
    return tuple(_stem(word) for word in words if word not in _STOP_WORDS)


@functools.lru_cache(maxsize=2**16)
def _stem(word: str) -> str:
    if word.isalpha() and len(word) > SHORTEST_STEM:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM:
                return word[: -len(ending)]
    return word


@functools.lru_cache(maxsize=20_000)
def find_stems_of_word(word: str) -> tuple[str, ...]:
    """Return the stems of a word: none for a stop word, several for an identifier such as ``readFile``."""
    return tuple(find_stems(word))


@dataclass(frozen=True, slots=True)
class StemmedWord:
    start: int
    end: int
    stem: str


def split_words(text: str) -> tuple[StemmedWord, ...]:
    """Return the content words of a text in order, with repeats."""
    return tuple(
        StemmedWord(*match.span(), stem) for match in _WORD.finditer(text) for stem in find_stems_of_word(match.group())
    )


@functools.lru_cache(maxsize=4096)
def list_stems(text: str) -> tuple[str, ...]:
    return tuple(stem for word in _WORD.findall(text) for stem in find_stems_of_word(word))


def iterate_word_pairs(words: Sequence[str], reach: int) -> Iterator[tuple[str, str]]:
    """Yield all pairs of words at most ``reach`` positions apart, the nearest ones first."""
    for distance in range(1, reach + 1):
        yield from zip(words, words[distance:], strict=False)


def compute_stem_weight(holders: int, texts: int) -> float:
    """Return the weight of a stem, which is higher for a rarer stem.

    ``holders`` is the number of texts with the stem, ``texts`` the number of all texts.
    """
    return math.log1p((texts + 1) / (0.5 + holders))


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_LETTERS = re.compile(r"[^\W\d_]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*")
_NUMBER_WORDS = {
    word: str(value)
    for section, name, first in (("tables", "numbers", 0), ("answers", "ordinals", 1))
    for words in read_sections(section).values()
    for value, word in enumerate(words[name].split(), start=first)
}


def parse_number_values(number: str) -> frozenset[str]:
    """Return the values that a number in digits can mean in English and in Dutch.

    ``1,234`` is 1234 or 1.234; ``1.234,5`` is 1234.5. Times and versions are returned unchanged.
    """
    values = set()
    digits = re.sub(r"[.,]", "", number)
    if _THOUSANDS.fullmatch(number):
        values.add(_strip_insignificant_zeros(digits))
    points = [character for character in number if character in ".,"]
    if ":" in number or (len(points) > 1 and len(set(points)) == 1):
        values.add(number)
    elif points:
        decimals = len(number) - 1 - max(number.rfind("."), number.rfind(","))
        values.add(_strip_insignificant_zeros(f"{digits[:-decimals]}.{digits[-decimals:]}"))
    else:
        values.add(_strip_insignificant_zeros(number))
    return frozenset(values)


def read_asserted_numbers(text: str) -> tuple[frozenset[str], ...]:
    """Return for each number in digits the values that it can mean; see :func:`parse_number_values`."""
    return tuple(parse_number_values(number) for number in _NUMBER.findall(text))


def read_numbers(text: str) -> frozenset[str]:
    words = (word.lower() for word in _LETTERS.findall(text))
    return frozenset().union(
        *read_asserted_numbers(text), (_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS)
    )


def _strip_insignificant_zeros(number: str) -> str:
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' if fraction else ''}{fraction}"


_NEGATIONS = read_words("answers", "negations")
_CONTRACTED = ("n't", "n’t")
# These words are skipped to find the negated word: "not" in "not possible to open" negates "open".
_MODAL = read_words("answers", "modal")
_TOKEN = re.compile(r"(?<!\w)\w++(?<=\wn)['’]t(?!\w)|[^\W_]++")
# The next NEAR_AFTER content words after a negation, and the last NEAR_BEFORE before a negation, are near the negation.
NEAR_AFTER, NEAR_BEFORE = 3, 2
# The negated word is at most this many tokens after the negation.
_GAP = 5


def contradicts(words: AbstractSet[str], text: str, others: AbstractSet[str], other_text: str) -> bool:
    """Return whether two texts contradict: one negates a word that the other one contains without a negation.

    ``words`` are the stems of ``text``, ``others`` the stems of ``other_text``.
    """
    negated, other_negated = set(find_negated_stems(text)), set(find_negated_stems(other_text))
    near, other_near = (set(find_negated_stems(each, NEAR_AFTER, NEAR_BEFORE)) for each in (text, other_text))
    return bool((negated & others) - other_near or (other_negated & words) - near)


def find_negated_stems(text: str, after: int = 1, before: int = 0) -> Iterator[str]:
    tokens = [token for found in _TOKEN.findall(text) if (token := found.lower()) not in _MODAL]
    for at, token in enumerate(tokens):
        if token in _NEGATIONS or token.endswith(_CONTRACTED):
            following, preceding = tokens[at + 1 : at + 1 + _GAP], tokens[max(0, at - _GAP + 1) : at][::-1]
            for words, count in ((following, after), (preceding, before)):
                yield from chain.from_iterable([found for word in words if (found := find_stems_of_word(word))][:count])
