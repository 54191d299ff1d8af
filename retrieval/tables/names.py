"""Normalise words of questions, names of columns and cells, so that they can be compared."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

_NUMBER = r"\d{1,3}(?:[.,]\d{3})+(?:[.,]\d+)?(?![\d\w])|\d+[.,]\d+(?![\d\w])"
_TOKEN = re.compile(rf"{_NUMBER}|[^\W_]+|[%€$£<>=]")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]{3})(?=\d)")
_TWICE = re.compile(r"([a-z])\1")
YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_UNITS_LAST = frozenset("g kg mg mm cm m km km2 m2 l ml eur usd gbp bar min kw w v".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class QuestionToken:
    """A word or number of a question, at ``question[start:end]``. ``norm`` is in lower case, without accents."""

    start: int
    end: int
    norm: str


def fold_text(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))


def keep_letters_and_digits(text: str) -> str:
    """Return the letters and digits in lower case, without accents: ``mx9920w`` for MX-9920-W and for mx 9920 w."""
    return "".join(_WORD.findall(fold_text(text)))


@functools.lru_cache(maxsize=20_000)
def make_singular(word: str) -> str:
    """Return a form that is equal for the singular and plural of an English or Dutch noun. It may be no real word.

    ``word`` is in lower case, without accents.
    """
    if not word.isalpha() or len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif word.endswith("en") and len(word) > 5:
        # Dutch "prijzen" is the plural of "prijs".
        word = word[:-2]
        word = word[:-1] + {"z": "s", "v": "f"}.get(word[-1], word[-1])
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]  # "gemeenten" is the plural of "gemeente"
    # "namen" is the plural of "naam".
    return _TWICE.sub(r"\1", word)


_ABBREVIATED = re.compile(r"[A-Z]{2}")


@functools.lru_cache(maxsize=20_000)
def make_comparison_key(text: str) -> str:
    """Return a normalised text that is equal for MX-9920-W and mx 9920 w, and for singular and plural."""
    norms = [token.norm for token in tokenize(text)]
    return "".join([*norms[:-1], make_singular(norms[-1])]) if norms else ""


def tokenize(question: str) -> list[QuestionToken]:
    return [QuestionToken(match.start(), match.end(), fold_text(match.group())) for match in _TOKEN.finditer(question)]


@functools.lru_cache(maxsize=5_000)
def split_name(name: str) -> tuple[str, ...]:
    return tuple(fold_text(piece) for part in _WORD.findall(name) for piece in _CAMEL.split(part))


def list_terms(caption: str, columns: Iterable[str]) -> list[str]:
    words = [token.norm for token in tokenize(caption)]
    return list(dict.fromkeys(map(make_singular, [*words, *(word for name in columns for word in split_name(name))])))


def format_column_name(name: str) -> str:
    """Return a column's name as words, without its unit: "max pressure" for ``max_pressure_bar``."""
    name = name.strip()
    if " " in name or (name[:1].isupper() and "_" not in name and (name[1:].islower() or _ABBREVIATED.search(name))):
        return name
    words = list(split_name(name))
    if len(words) > 1 and words[-1] in _UNITS_LAST:
        words = words[:-1]
    return " ".join(words) or name


def format_column_label(name: str) -> str:
    """Return a column's name as words, with its unit: "weight (g)" for ``weight_g``."""
    shown, words = format_column_name(name), split_name(name)
    is_cut = shown != name.strip() and len(words) > 1 and words[-1] in _UNITS_LAST
    return f"{shown} ({words[-1]})" if is_cut else shown
