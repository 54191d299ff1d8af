"""Numbers in a text, however they are written. PURE."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*")
_ENGLISH = "zero one two three four five six seven eight nine ten eleven twelve"
_DUTCH = "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf"
# "Een" is nearly always the article, and "one" nearly always a pronoun: neither is asked for, both may answer.
_VALUES = {word: str(value) for language in (_ENGLISH, _DUTCH) for value, word in enumerate(language.split())} | {
    "first": "1",
    "second": "2",
    "third": "3",
    "eerste": "1",
    "tweede": "2",
    "derde": "3",
}


def readings(number: str) -> frozenset[str]:
    """The values that the digits may stand for: English and Dutch disagree on what a comma and a point mean.

    ``1,234`` is 1234 and 1.234; ``1.234,5`` is 1234.5 alone; times and versions are themselves.
    """
    values = set()
    if _THOUSANDS.fullmatch(number):
        values.add(_plain(re.sub(r"[.,]", "", number)))
    points = [character for character in number if character in ".,"]
    if ":" in number or (len(points) > 1 and len(set(points)) == 1):
        values.add(number)
    elif points:
        last = max(number.rfind("."), number.rfind(","))
        values.add(_plain(f"{re.sub('[.,]', '', number[:last])}.{number[last + 1 :]}"))
    else:
        values.add(_plain(number))
    return frozenset(values)


def numbers_asked(text: str) -> tuple[frozenset[str], ...]:
    """For each number in digits, in order, the values it may have."""
    return tuple(readings(match.group()) for match in _NUMBER.finditer(text))


def numbers_held(text: str) -> frozenset[str]:
    """All values that the digits and the number words of a text may stand for."""
    held = {value for match in _NUMBER.finditer(text) for value in readings(match.group())}
    held.update(_VALUES[word] for match in _WORD.finditer(text) if (word := match.group().lower()) in _VALUES)
    return frozenset(held)


def _plain(number: str) -> str:
    """Without zeros that change nothing: ``007.50`` is ``7.5``."""
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' if fraction else ''}{fraction}"
