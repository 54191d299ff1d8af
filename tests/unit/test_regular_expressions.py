"""Every regular expression of the product takes linear time, whatever it is given.

The patterns are found by reading the source: a new one is tried without being named here. One that is composed while
the product runs has to be given an example in ``COMPOSED``.
"""

from __future__ import annotations

import math
import operator
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.support.attacks import Attack, Pattern, attacks
from tests.support.patterns import Place, places

# Patterns made of what is known only at run time, as the place makes them.
COMPOSED: dict[str, tuple[str, ...]] = {
    "evaluation/sets/expectations.py: re.compile(before + re.escape(alternative) + after)": (r"(?<!\w)valve(?!\d)",),
    "chat/grounding/verification.py: re.search('\\\\s++'.join(map(re.escape, lines)), content)": (r"a\s++b",),
    "chat/injection/detection.py: re.sub(words, ' \\\\1 ', joined, flags=re.IGNORECASE)": (
        "(ignore|disregard|forget|all|previous|your|the|instructions?|prompt|reveal|show|system|say|that|you|hate)",
    ),
    "retrieval/ingest/extraction/pdf.py: re.compile('^[ \\\\t]*+(?:[\\\\dA-Z][\\\\d.]*+\\\\s++)?' + "
    "'\\\\s++'.join(map(re.escape, title.split())), re.M | re.I)": (
        r"(?im)^[ \t]*+(?:[\dA-Z][\d.]*+\s++)?The\s++pump",
    ),
    "retrieval/ingest/questions.py: re.search(f'\\\\b{re.escape(lowered)}\\\\b', text)": (r"\bpump\b",),
    "retrieval/ingest/questions.py: re.search(f'[a-z,] {re.escape(word)}\\\\b', text)": (r"[a-z,] Pump\b",),
    "retrieval/reformulation/fragments.py: re.compile(f'(?<!\\\\s)\\\\s++{re.escape(first)}\\\\s', re.I)": (
        r"(?i)(?<!\s)\s++in\s",
    ),
    "evaluation/sets/resolution.py: re.finditer('\\\\s++'.join(map(re.escape, words)), text)": (r"The\s++pump",),
}
# Made while their module is imported, where the collected patterns hold them.
LOOPED = {
    "chat/questions/wording.py: re.compile(text, re.IGNORECASE | re.VERBOSE)",
    "chat/generators/thinking.py: re.compile(tag.replace('<', '</'), re.IGNORECASE)",
    "chat/injection/rules.py: re.compile(pattern, flags)",
    "retrieval/text/instruction_rules.py: re.compile(pattern, re.DOTALL if pattern.startswith('\\\\b(?:END\\\\s') "
    "else re.DOTALL | re.IGNORECASE | re.MULTILINE)",
    "retrieval/ranking/classification.py: re.compile('|'.join(alternatives))",
    "retrieval/reformulation/fillers.py: re.compile(pattern, re.I)",
}
# Patterns that only ever see this many characters of a text.
SEEN_CHARACTERS = {
    "retrieval/ranking/classification.py": 1_000,  # CHARACTERS_READ
    "retrieval/ingest/extraction/source_code.py": 300,  # _MAX_LINE_CHARS
    "retrieval/ingest/extraction/lines.py": 800,  # 4 * MAX_TITLE_CHARS
    "chat/questions/expected.py": 1_000,  # READ_CHARACTERS
    "chat/questions/kinds.py": 1_000,  # READ_CHARACTERS
    "chat/questions/parts.py": 1_000,  # READ_CHARACTERS
    "chat/questions/presence.py": 1_000,  # READ_CHARACTERS
    "chat/questions/wording.py": 1_000,  # READ_CHARACTERS
    "retrieval/text/instruction_rules.py": 1_000,  # _LONGEST
}
# Read through a table: the reader of the source does not see that they are only matched.
MATCHED = {"retrieval/ingest/extraction/source_code.py"}

SCREENED_CHARACTERS = 2_000
CHARACTERS = 10_000
MANY_CHARACTERS = 100_000
# A pattern is looked at again from here on: wall time, which other work on the machine makes longer, never shorter.
SCREENED_SECONDS_A_CHARACTER = 1e-6
# What is faster at 10 kB is no danger: at 100 kB a quadratic pattern takes a hundred times as long.
SLOW_SECONDS_A_CHARACTER = 5e-6
# Four times as much text takes four times as long in linear time, sixteen times as long in quadratic time.
GROWN = 4
SLOW_GROWTH = 9


class _TookTooLong(BaseException):
    pass


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Ends the work after so much time of the processor: an exponential pattern would never end."""

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
    """The text on which the pattern takes longer than linear time; empty when there is none."""
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
    """Whether it is slow, and slower still on more text, each of two times: other work on the machine slows one."""
    limit = SLOW_SECONDS_A_CHARACTER * characters
    took = _least_seconds(pattern, method, attack.text(characters), limit, 20 * limit)
    if took < limit:
        return False
    if characters < CHARACTERS or took >= 20 * limit:
        return True
    slow = SLOW_GROWTH * took
    return _least_seconds(pattern, method, attack.text(GROWN * characters), slow, slow) >= slow


def _least_seconds(pattern: Pattern, method: str, text: str, enough: float, stop: float) -> float:
    """The least of two times of the processor, each at most ``stop``; the first below ``enough`` ends it."""
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
AREAS = ("retrieval/ingest/extraction/", "retrieval/", "chat/injection", "chat/", "")


@pytest.mark.parametrize("area", AREAS)
def test_every_pattern_takes_linear_time(area: str) -> None:
    slow = {}
    tried = set()
    for place in places():
        if place.name in LOOPED or area != next(filter(place.path.startswith, AREAS), ""):
            continue
        method = "match" if place.path in MATCHED else place.method
        for pattern in _patterns_of(place):
            if (pattern, method) not in tried:
                tried.add((pattern, method))
                if text := _slow_text(pattern, method, SEEN_CHARACTERS.get(place.path, MANY_CHARACTERS)):
                    slow[f"{place.path}:{place.line} {pattern.pattern!r:.120}"] = f"{text[:30]!r}..{text[-5:]!r}"
    assert tried
    assert not slow, "\n".join(f"{name}\n    on {text}" for name, text in slow.items())


@pytest.mark.parametrize(
    ("pattern", "method", "is_slow"),
    [
        (rb"\s*(?:<!--.{0,2000}?-->\s*)*<html", "match", True),
        (r"[ \t]*\[\d+\]", "finditer", True),
        (r"[ \t]*\[\d+\]", "match", False),
        (r"(?<![ \t])[ \t]*+\[\d+\]", "finditer", False),
        (r"\s+#+\s*$", "finditer", True),
        (r"(\w+\s?)*$", "match", True),
        (r"<[^>]*>", "finditer", True),
        (r"(?<=-)\s*(?:regards[\s,]+[\w ]{0,40})[\s.!]*$", "finditer", True),
        (r"`[^`\n]{1,200}`", "finditer", False),
    ],
)
def test_slow_patterns_are_told_from_others(pattern: str | bytes, method: str, is_slow: bool) -> None:
    assert bool(_slow_text(re.compile(pattern), method)) is is_slow
