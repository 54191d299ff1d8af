"""Words of questions, names of columns and cells, so that they meet: split, folded and stemmed. PURE."""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

_NUMBER = r"\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?(?![\d\w])|\d+[.,]\d+(?![\d\w])"
_TOKEN = re.compile(rf"{_NUMBER}|[^\W_]+|[%€$£<>=]")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{3})(?=\d)")
_ENDINGS = (
    *("ations", "ation", "ingen", "heid", "ments", "ment", "ing", "ies", "ied", "ity", "ers", "est"),
    *("ed", "en", "es", "er", "al", "s", "e", "y", "t", "n"),
)
_SHORTEST_STEM = 4
# What a column's name carries glued to its end: winpercent. Not so date and count: a candidate is no date.
_GLUED = ("percentage", "percent", "number", "pct")
_SHORTEST_GLUED = 3
_TWICE = re.compile(r"([a-z])\1")
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_UNITS_LAST = frozenset("g kg mg mm cm m km km2 m2 l ml eur usd gbp bar min kw w v".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class QuestionToken:
    """``question[start:end]``; ``norm`` is folded, ``stem`` the likely common beginning of its forms."""

    start: int
    end: int
    text: str
    norm: str
    stem: str


def fold(text: str) -> str:
    """Small letters without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def squeeze(text: str) -> str:
    """Letters and digits alone: MX-9920-W, mx 9920 w and MX9920W are one."""
    return "".join(_WORD.findall(fold(text)))


@functools.lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A rough common beginning of a word's forms in English and Dutch. ``word`` is folded; numbers stay whole."""
    if not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word[: -len(ending)]
            break
    else:
        if len(word) == _SHORTEST_STEM and word.endswith("s") and not word.endswith("ss"):
            word = word[:-1]
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    # Dutch doubles the vowel of a closed syllable: "prijzen", "prijs"; "leden", "lid" are left to the synonyms.
    return word[:-1] + {"z": "s", "v": "f", "i": "y"}.get(word[-1], word[-1])


@functools.lru_cache(maxsize=20_000)
def singular(word: str) -> str:
    """One form for the singular and the plural of a folded noun, in English and Dutch; not always a word itself."""
    if not word.isalpha() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif word.endswith("en") and len(word) > 5:
        # "Prijzen" is the plural of "prijs".
        word = word[:-2]
        word = word[:-1] + {"z": "s", "v": "f"}.get(word[-1], word[-1])
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]  # "gemeenten" is the plural of "gemeente"
    # "Namen" is the plural of "naam".
    return _TWICE.sub(r"\1", word)


@functools.lru_cache(maxsize=20_000)
def key_of(text: str) -> str:
    """What two spellings of a cell, or of words of a question, have in common: MX-9920-W, mx 9920 w; pump, pumps."""
    norms = [token.norm for token in tokenize(text)]
    return "".join([*norms[:-1], singular(norms[-1])]) if norms else ""


def tokenize(question: str) -> list[QuestionToken]:
    tokens = []
    for match in _TOKEN.finditer(question):
        norm = fold(match.group())
        tokens.append(QuestionToken(match.start(), match.end(), match.group(), norm, stem(norm)))
    return tokens


def words_of(text: str) -> list[str]:
    """The folded words of a cell or a title, in order."""
    return _WORD.findall(fold(text))


@functools.lru_cache(maxsize=20_000)
def stems_of(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in words_of(text))


@functools.lru_cache(maxsize=5_000)
def words_of_name(name: str) -> tuple[str, ...]:
    """The folded words of a column's name: ``max_pressure_bar``, ``unitPrice`` and ``winpercent`` are split."""
    words: list[str] = []
    for part in _WORD.findall(name):
        for piece in _CAMEL.split(part):
            words.extend(_split_glued(fold(piece)))
    return tuple(words)


def _split_glued(word: str) -> list[str]:
    for suffix in _GLUED:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_GLUED:
            return [word[: -len(suffix)], suffix]
    return [word]


def period_of(name: str) -> tuple[int, int] | None:
    """The years at the end of a column's name: ``fatalities_85_99``, ``sales_2019``."""
    years: list[int] = []
    for word in reversed(words_of_name(name)):
        if re.fullmatch(r"\d\d|\d{4}", word) is None:
            break
        year = int(word)
        if len(word) == 4 and not YEAR.fullmatch(word):
            break
        years.insert(0, year if len(word) == 4 else 2000 + year if year < 50 else 1900 + year)
    if len(years) == 1 and re.search(r"(?<!\d)\d\d$", name):
        return None  # two digits alone are a number of something
    return (years[0], years[-1]) if len(years) in (1, 2) else None


def show_name(name: str) -> str:
    """A column's name as it is read: ``max_pressure_bar`` is max pressure, ``deaths_00_14`` deaths (2000–2014)."""
    name = name.strip()
    if " " in name or (name[:1].isupper() and name[1:].islower() and "_" not in name):
        return name
    words = list(words_of_name(name))
    years = period_of(name)
    if years is not None:
        words = [word for word in words if not word.isdigit()]
    elif len(words) > 1 and words[-1] in _UNITS_LAST:
        words = words[:-1]
    shown = " ".join(words) or name
    if years is None:
        return shown
    return f"{shown} ({years[0]})" if years[0] == years[1] else f"{shown} ({years[0]}–{years[1]})"
