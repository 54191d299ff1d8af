"""Grade an answer by the words it must and must not contain, and by its length."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from chat.answering.checking.citations import remove_markers

MOST_POINTS = 3
# An answer longer than this multiple of the longest expected length gets at most 1 of MOST_POINTS points.
TOLERATED_LENGTHS = 3
_PLAIN = str.maketrans(
    {**dict.fromkeys("‘’ʼ´", "'"), **dict.fromkeys("“”„", '"'), **dict.fromkeys("‐‑–—−", "-"), **dict.fromkeys("*`")}
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class AnswerExpectations:
    """What a right answer to a question must be like.

    An item of ``must`` may list alternatives separated by `|`. ``longest`` is in characters; None means any. If
    ``refusal``, only a refusal is right.
    """

    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    longest: int | None = None
    refusal: bool = False

    @property
    def has_text_expectations(self) -> bool:
        return bool(self.must or self.must_not) or self.longest is not None


@dataclass(frozen=True, slots=True)
class Grade:
    """The points of an answer, 0 to 3, and the expectations that it does not meet.

    ``length`` is in characters without markers (``[1]``). ``is_on_page``: together, the answer and the other texts
    on its page contain all expected texts (``must``).
    """

    points: int
    missing: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    length: int = 0
    is_too_long: bool = False
    is_on_page: bool = False

    @property
    def is_complete(self) -> bool:
        return not self.missing and not self.forbidden


def grade_answer(
    text: str, *, refused: bool, expected: AnswerExpectations, cites_expected: bool = False, beside: Sequence[str] = ()
) -> Grade:
    """Return the grade of an answer with this ``text``. ``beside`` are the other texts on its page.

    - 3 points: it contains all of ``must`` and none of ``must_not``, and is not too long.
    - 2 points: the same, but it has up to three times the allowed length.
    - 1 point: it contains half of ``must``, or cites an expected document.
    - A refusal: 3 points if it is expected; else 1 point if ``beside`` contains all of ``must``.
    - All others: 0 points.
    """
    readable = " ".join(remove_markers(text).split())
    length = len(readable)
    if expected.refusal:
        return Grade(MOST_POINTS if refused else 0, (), (), length)
    page = _normalize("\n".join([readable, *beside]))
    is_on_page = bool(expected.must) and all(_contains_alternative(page, each) for each in expected.must)
    if refused:
        return Grade(int(is_on_page), expected.must, (), length, is_on_page=is_on_page)
    words = _normalize(readable)
    missing = tuple(each for each in expected.must if not _contains_alternative(words, each))
    forbidden = tuple(each for each in expected.must_not if _contains_alternative(words, each))
    is_too_long = expected.longest is not None and length > expected.longest
    is_far_too_long = expected.longest is not None and length > TOLERATED_LENGTHS * expected.longest
    if not missing and not forbidden and not is_far_too_long:
        points = MOST_POINTS - is_too_long
    else:
        points = int(2 * len(missing) <= len(expected.must) or cites_expected)
    return Grade(points, missing, forbidden, length, is_too_long, is_on_page)


def normalize_lines(lines: Sequence[str]) -> list[str]:
    return [cleaned for line in lines if (cleaned := " ".join(line.split()))]


def _contains_alternative(words: str, alternatives: str) -> bool:
    """Return whether ``words`` contain one of the ``|``-separated alternatives, where a word begins."""
    return any(_compile_pattern(each).search(words) for each in map(_normalize, alternatives.split("|")) if each)


@lru_cache(maxsize=4096)
def _compile_pattern(alternative: str) -> re.Pattern[str]:
    before = after = ""
    if alternative[0].isdigit():
        before = r"(?<!\w)(?<!\d[.,])"
    elif alternative[0].isalnum():
        before = r"(?<!\w)"
    if alternative[-1].isdigit():
        after = r"(?!\d|[.,]\d)"
    return re.compile(before + re.escape(alternative) + after)


def _normalize(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN)).translate(_PLAIN).casefold()
    return " ".join(_THOUSANDS.sub("", plain).split())
