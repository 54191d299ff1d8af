"""Every regular expression of the product takes linear time, whatever it is given.

The patterns are found by reading the source: a new one is tried without being named here. One that is composed while
the product runs has to be given an example in ``COMPOSED``.

Trying all of them takes minutes, and the answer depends only on the pattern, the attacks and Python's version.
``linear_patterns.txt`` records the ones that passed: others are tried here each time, until ``python -m
tests.unit.test_regular_expressions`` has tried and recorded them.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import operator
import os
import re
import signal
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from tests.support import attacks as attacks_module
from tests.support.attacks import Attack, Pattern, attacks
from tests.support.patterns import Place, places

RECORD = Path(__file__).with_name("linear_patterns.txt")

# Patterns made of what is known only at run time, as the place makes them.
COMPOSED: dict[str, tuple[str, ...]] = {
    "retrieval/text/language.py: re.compile(f'[{span}]')": ("[\u3041-\u30ff]",),
    "retrieval/search/passage_rows.py: re.compile(f'(?:^|\\\\n)[ ]{{0,24}}"
    "(?:#{{1,6}} (?:[^\\\\W\\\\d_]{{2,20}} )?|{item}){re.escape(number)}[.):]?(?= [^\\\\W_]|\\\\n|$)', re.I)": (
        r"(?i)(?:^|\n)[ ]{0,24}(?:#{1,6} (?:[^\W\d_]{2,20} )?|(?:[-*] )?(?:[^\W\d_]{2,20} )?)3\.2[.):]?"
        r"(?= [^\W_]|\n|$)",
        r"(?i)(?:^|\n)[ ]{0,24}(?:#{1,6} (?:[^\W\d_]{2,20} )?|(?:[-*] )?step ?)2[.):]?(?= [^\W_]|\n|$)",
    ),
    "evaluation/expectations.py: re.compile(before + re.escape(alternative) + after)": (r"(?<!\w)valve(?!\d)",),
    "chat/answering/checking/verification.py: re.search('\\\\s++'.join(map(re.escape, lines)), content)": (r"a\s++b",),
    "retrieval/documents/extraction/pdf.py: re.compile('^[ \\\\t]*+(?:[\\\\dA-Z][\\\\d.]*+\\\\s++)?' + "
    "'\\\\s++'.join(map(re.escape, title.split())), re.M | re.I)": (
        r"(?im)^[ \t]*+(?:[\dA-Z][\d.]*+\s++)?The\s++pump",
    ),
    "evaluation/sets/resolution.py: re.finditer('\\\\s++'.join(map(re.escape, words)), text)": (r"The\s++pump",),
}
# These are compiled while their module is imported, and the collected patterns contain them.
LOOPED = {
    "retrieval/documents/extraction/html.py: re.compile(f\"(?:^|[\\\\s_-])(?:{'|'.join(names.split())})"
    '(?=$|[\\\\s\\\\d_-])", re.I)',
    "chat/answering/injection.py: re.compile(pattern, re.IGNORECASE | re.DOTALL | re.MULTILINE)",
    "retrieval/text/instructions.py: re.compile(pattern, re.DOTALL | re.IGNORECASE | re.MULTILINE)",
    "retrieval/search/understanding/classification.py: re.compile('|'.join(read_patterns('classification', rule)))",
    "core/language_model/machinery.py: re.compile(opening, re.IGNORECASE)",
    "core/language_model/machinery.py: re.compile(closing, re.IGNORECASE)",
    "retrieval/text/questions.py: re.compile(fill_in(f'\\\\b<{kind}>\\\\b', 'questions'), re.IGNORECASE)",
}
# Patterns that only ever see this many characters of a text.
SEEN_CHARACTERS = {
    "retrieval/search/understanding/classification.py": 1_000,  # CHARACTERS_READ
    "retrieval/documents/extraction/number_formats.py": 255,  # _LONGEST_FORMAT
    "retrieval/documents/extraction/source_code.py": 300,  # _MAX_LINE_CHARS
    "retrieval/text/extracted.py": 800,  # 4 * MAX_TITLE_CHARS
    "retrieval/text/instructions.py": 1_000,  # _LONGEST
}
# Read through a table: the reader of the source does not see that they are only matched.
MATCHED = {"retrieval/documents/extraction/source_code.py"}

SCREENED_CHARACTERS = 2_000
CHARACTERS = 10_000
MANY_CHARACTERS = 100_000
# A pattern is looked at again from here on: wall time, which other work on the machine makes longer, never shorter.
SCREENED_SECONDS_A_CHARACTER = 1e-6
# A pattern that is faster at 10 kB is no danger: at 100 kB a quadratic pattern takes a hundred times as long.
SLOW_SECONDS_A_CHARACTER = 5e-6
# Four times as much text takes four times as long in linear time, sixteen times as long in quadratic time.
GROWN = 4
SLOW_GROWTH = 9


class _TookTooLong(BaseException):
    pass


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """End the work after this processor time: an exponential pattern would never end."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise _TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _seconds(pattern: Pattern, method: str, text: str) -> float:
    subject = text if isinstance(pattern.pattern, str) else text.encode("utf-8", "replace")
    begun = time.process_time()
    if method in ("match", "fullmatch"):
        getattr(pattern, method)(subject)
    else:
        for _found in pattern.finditer(subject):  # type: ignore[arg-type]
            pass
    return time.process_time() - begun


def _slow_text(pattern: Pattern, method: str, seen_characters: int = MANY_CHARACTERS) -> str:
    """Return the text on which the pattern takes longer than linear time; empty when there is none."""
    screened = min(seen_characters, SCREENED_CHARACTERS)
    slowest = (0.0, Attack("", "a", ""))
    for attack in attacks(pattern):
        text = attack.text(screened)
        took = math.inf
        for _attempt in range(2):
            begun = time.perf_counter()
            try:
                with _stopped_after(1):
                    _seconds(pattern, method, text)
            except _TookTooLong:
                return text
            took = min(took, time.perf_counter() - begun)
            if took <= SCREENED_SECONDS_A_CHARACTER * screened:
                break
        slowest = max(slowest, (took, attack), key=operator.itemgetter(0))
        if took > SCREENED_SECONDS_A_CHARACTER * screened and _is_slow(
            pattern, method, attack, min(seen_characters, CHARACTERS)
        ):
            return text
    if seen_characters == MANY_CHARACTERS and _is_slow(pattern, method, slowest[1], MANY_CHARACTERS // GROWN):
        return slowest[1].text(screened)
    return ""


def _is_slow(pattern: Pattern, method: str, attack: Attack, characters: int) -> bool:
    """Return whether it is slow, and slower still on more text.

    Each time is the least of two, because other work on the machine slows one.
    """
    limit = SLOW_SECONDS_A_CHARACTER * characters
    took = _least_seconds(pattern, method, attack.text(characters), limit, 20 * limit)
    if took < limit:
        return False
    if characters < CHARACTERS or took >= 20 * limit:
        return True
    slow = SLOW_GROWTH * took
    return _least_seconds(pattern, method, attack.text(GROWN * characters), slow, slow) >= slow


def _least_seconds(pattern: Pattern, method: str, text: str, enough: float, stop: float) -> float:
    """Return the least of two times of the processor, each at most ``stop``; the first below ``enough`` ends it."""
    least = stop
    for _attempt in range(2):
        try:
            with _stopped_after(stop):
                least = min(least, _seconds(pattern, method, text))
        except _TookTooLong:
            continue
        if least < enough:
            break
    return least


def _patterns_of(place: Place) -> tuple[Pattern, ...]:
    return place.patterns or tuple(map(re.compile, COMPOSED[place.name]))


def test_every_pattern_is_known() -> None:
    unknown = {place.name for place in places() if not place.patterns} - LOOPED
    assert unknown == set(COMPOSED), "a pattern that is composed at run time needs an example in COMPOSED"
    assert sum(len(place.patterns) for place in places()) > 300


# One test for each of these beginnings of a path, the last for all others.
AREAS = ("retrieval/documents/extraction/", "retrieval/", "chat/answering", "chat/", "")


@cache
def _recorded() -> frozenset[str]:
    return frozenset(RECORD.read_text().split()) if RECORD.exists() else frozenset()


@cache
def _conditions() -> str:
    """All but the pattern that the result depends on."""
    return "\0".join(
        (
            f"{sys.version_info.major}.{sys.version_info.minor}",
            inspect.getsource(attacks_module),
            inspect.getsource(_slow_text),
        )
    )


def _key(pattern: Pattern, method: str, seen_characters: int) -> str:
    tried = f"{_conditions()}\0{pattern.pattern!r}\0{pattern.flags}\0{method}\0{seen_characters}"
    return hashlib.sha256(tried.encode()).hexdigest()[:16]


def _try_patterns(area: str, known: Collection[str]) -> tuple[set[str], dict[str, str]]:
    """Return the keys of the patterns of an area, and those that are slow with a text that shows it."""
    slow = {}
    tried = set()
    for place in places():
        if place.name in LOOPED or area != next(filter(place.path.startswith, AREAS), ""):
            continue
        method = "match" if place.path in MATCHED else place.method
        seen = SEEN_CHARACTERS.get(place.path, MANY_CHARACTERS)
        for pattern in _patterns_of(place):
            key = _key(pattern, method, seen)
            if key not in tried and key not in known and (text := _slow_text(pattern, method, seen)):
                slow[f"{place.path}:{place.line} {pattern.pattern!r:.120}"] = f"{text[:30]!r}..{text[-5:]!r}"
            tried.add(key)
    return tried, slow


@pytest.mark.parametrize("area", AREAS)
def test_every_pattern_takes_linear_time(area: str) -> None:
    tried, slow = _try_patterns(area, _recorded())
    assert tried
    found = "\n".join(f"{name}\n    on {text}" for name, text in slow.items())
    assert not slow, (
        f"{found}\nThese patterns take more than linear time. Usually two repetitions can match the same text: "
        "give each a class that excludes the other, make it possessive (`++`), or bound it (`{0,80}`). docs/writing.md "
        "has four examples (A regular expression that is refused)."
    )


@pytest.mark.parametrize(
    ("pattern", "method", "is_slow"),
    [
        (rb"\s*(?:<!--.{0,2000}?-->\s*)*<html", "match", True),
        (r"[ \t]*\[\d+\]", "match", False),
        (r"(?<![ \t])[ \t]*+\[\d+\]", "finditer", False),
        (r"(\w+\s?)*$", "match", True),
        (r"(?<=-)\s*(?:regards[\s,]+[\w ]{0,40})[\s.!]*$", "finditer", True),
    ],
)
def test_slow_patterns_are_told_from_others(pattern: str | bytes, method: str, is_slow: bool) -> None:
    assert bool(_slow_text(re.compile(pattern), method)) is is_slow


def main() -> None:
    """Try the patterns that are not recorded, and record all that take linear time."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    keys: set[str] = set()
    for area in AREAS:
        tried, slow = _try_patterns(area, _recorded())
        for name, text in slow.items():
            print(f"slow: {name} on {text}", file=sys.stderr)
        if slow:
            sys.exit(1)
        keys |= tried
    RECORD.write_text("\n".join(sorted(keys)) + "\n")
    print(f"{len(keys)} patterns take linear time: {RECORD.name}")


if __name__ == "__main__":
    main()
