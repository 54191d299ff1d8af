"""Prepare text for keyword search, before PostgreSQL analyses it.

PostgreSQL splits identifiers such as ``MX-9920-W``, and drops symbols. So identifiers and symbols become words.
Chinese, Japanese and Korean text becomes pairs of characters, as in Lucene's CJKBigramFilter.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence

# Raise this number when terms are made in another way. Passages are then indexed again.
ANALYSIS_VERSION = 3

# A lexeme's dimension (its index in a sparse vector) is a 28-bit hash.
DIMENSIONS = 2**28

LONGEST_WHOLE = 64

# A match begins only at the start of a word, because other starts take quadratic time.
_JOINED = re.compile(r"(?<![^\W_])[^\W_]+(?:(?:[_.\-/\\:@#+>]{1,3}|')[^\W_]+)+")
_CODE = re.compile(r"(?<![^\W_])[^\W_]+(?:[_.\-/\\:@#+>]{1,3}[^\W_]+)*")
_SPECIAL = re.compile(r"(?<!\w)(?:(c)\+\+|([cf])#|(\.)net)(?!\w)", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CAMEL_WORD = re.compile(r"(?<![^\W_])(?=[^\W_]*[a-z0-9][A-Z]|[A-Z]{2,}[a-z])[^\W_]+")
_PARTS = re.compile(r"[^\W_]+")
_SEPARATORS = re.compile(r"[\W_]")
# Word processors write these in place of the hyphen of a code. Between numbers, a dash is a range.
_HYPHENS = re.compile(r"(?<=[^\W_])[‐‑](?=[^\W_])|(?<=[^\W\d_])[‒–](?=[^\W_])|(?<=[^\W_])[‒–](?=[^\W\d_])")
# Separators between two names. Hyphens and apostrophes are parts of names.
_BETWEEN_NAMES = re.compile(r"-?[^\w'\-]++-?")
_HYPHEN = re.compile(r"(?<=[^\W_])-(?=[^\W_])")
# PostgreSQL would read a path, tag or entity at these characters, and lose the next word.
_MISLEADING = re.compile(r"[/\\_<>&=~|]")
_VERSION = re.compile(r"(?<![^\W_])v\.? ?(?=\d+\.\d)", re.IGNORECASE)
# Measures such as 1920x1080, 10 × 20 × 30 mm and M8x40.
_DIMENSIONS = re.compile(
    r"(?<![\w.,])(?!0x)[^\W\d_]{0,2}\d++(?:[.,]\d++)?(?: ?[xX×] ?\d++(?:[.,]\d++)?)+(?=[^\W\d_]{0,3}(?!\w))"
)
_MEASURE = re.compile(
    r"(?<![\w.,])(\d++(?:[.,]\d++)?)([kcmµn]?m|[kmµ]?g|[mcd]?l|[kmg]?wh?|[km]?va?|m?ah|[kmg]?hz|[kmgt]i?b|[km]?pa|m?bar|db|px|ms|h)(?!\w)",
    re.IGNORECASE,
)
# Codes such as ISO 9001 or MX 9920 W.
_SPACED_CODE = re.compile(r"(?<![\w-])[A-Z]{1,5} \d{1,6}(?: [A-Z])?(?![\w-])")
_PAIRED = re.compile(
    "["
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97c\uac00-\ud7fb\uf900-\ufaff\uff66-\uff9f\U00020000-\U000323af"
    "]+"
)
# Currency signs, arrows, mathematical signs and emoji become words. _BULLETS become blanks.
SYMBOL = re.compile("[£¥\u20a0-\u20bf\u2190-\u23ff\u2460-\u24ff\u25a0-\u2bff\U0001f000-\U0001faff]")
_BULLETS = frozenset("■□▪▫▬▶▷▸▹►▻○◦●◆◇➔➢➤⬛⬜∙⋅")
# These characters change an emoji's look or join several emoji.
_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufe0e\ufe0f]")
SYMBOL_TERM = "symbol"


def expand_identifiers(text: str) -> str:
    """Replace each identifier, code, path and version in ``text`` by one word, followed by its parts.

    For example, ``MX-9920-W`` becomes *mx9920w mx 9920 w*.
    """
    return _expand_words(text, lambda whole, parts: [*whole, *parts])


def make_document_terms(text: str) -> str:
    """Return the words to index. ``ISO 9001`` is also indexed as one word, so that ``ISO9001`` finds it."""
    codes = {"".join(code.split()) for code in _SPACED_CODE.findall(text)}
    return "\n".join([expand_identifiers(text), *sorted(code.lower() for code in codes)])


def list_spellings(phrase: str) -> list[str]:
    """Return the forms in which the index may contain a phrase. The first is the form of the phrase as written.

    The forms of ``MX-9920-W`` are *mx9920w mx 9920 w*, *mx9920w* and *mx 9920 w*.
    """
    ways = [
        expand_identifiers(phrase),
        _expand_words(phrase, lambda whole, parts: list(whole or parts)),
        _HYPHEN.sub(" ", _expand_words(phrase, lambda _, parts: list(parts))),
    ]
    return list(dict.fromkeys(" ".join(way.split()) for way in ways))


def find_identifiers(text: str) -> Iterator[tuple[str, str]]:
    """Yield two forms of each word that contains a digit: in lower case without separators, and as written."""
    for match in _CODE.finditer(_PAIRED.sub(" ", text)):
        whole = "".join(_PARTS.findall(match[0])).lower()
        if any(character.isdigit() for character in whole):
            yield whole, match[0]


def compute_lexeme_dimension(lexeme: str) -> int:
    """Return the lexeme's index in sparse vectors, 1 to DIMENSIONS. An SQL function computes the same."""
    return int(hashlib.md5(lexeme.encode(), usedforsecurity=False).hexdigest()[:7], 16) + 1


def compute_inverse_document_frequency(document_frequency: int, documents: int) -> float:
    """Return ln(1 + (N - df + 0.5) / (df + 0.5)), which is Lucene's form and never negative.

    Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
    """
    document_frequency = min(document_frequency, documents)
    return math.log1p((documents - document_frequency + 0.5) / (document_frequency + 0.5))


_ChooseWords = Callable[[Sequence[str], Sequence[str]], list[str]]
"""Takes an identifier as one word (empty if too long) and its parts, and returns the words to index."""


def _expand_words(text: str, choose_words: _ChooseWords) -> str:
    text = _SPECIAL.sub(_spell_out_language_name, spell_out_symbols(text))
    text = _DIMENSIONS.sub(lambda match: f"{_write_dimension_terms(match.group(), choose_words)} ", text)
    text = _MEASURE.sub(r"\1 \2", text)
    text = _JOINED.sub(lambda match: _expand_compound_token(match.group(), choose_words), text)

    def expand_camel(match: re.Match[str]) -> str:
        return " ".join(choose_words([match[0].lower()], _split_camel(match[0])))

    return _CAMEL_WORD.sub(expand_camel, _MISLEADING.sub(" ", text))


def spell_out_symbols(text: str) -> str:
    """Return ``text`` in NFC with words for symbols, CJK text as overlapping pairs, and versions without ``v``."""
    if not text.isascii():
        text = write_plain_hyphens(_INVISIBLE.sub("", unicodedata.normalize("NFC", text)))
        text = SYMBOL.sub(_write_symbol_term, text)
        text = _PAIRED.sub(lambda run: f" {' '.join(split_into_character_pairs(run.group()))} ", text)
    return _VERSION.sub("", text)


def write_plain_hyphens(text: str) -> str:
    return text if text.isascii() else _HYPHENS.sub("-", text)


def split_into_character_pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _write_symbol_term(match: re.Match[str]) -> str:
    symbol = match.group()
    return " " if symbol in _BULLETS else f" {SYMBOL_TERM}{ord(symbol):x} "


def _write_dimension_terms(dimensions: str, choose_words: _ChooseWords) -> str:
    parts = [part.strip().lower() for part in re.split("[xX×]", dimensions)]
    return " ".join(choose_words([re.sub("[.,]", "", "x".join(parts))], parts))


def _spell_out_language_name(match: re.Match[str]) -> str:
    plus, sharp, _dot = match.groups()
    if plus:
        return " cplusplus "
    return f" {sharp.lower()}sharp " if sharp else " dotnet "


def _expand_compound_token(token: str, choose_words: _ChooseWords) -> str:
    parts = _PARTS.findall(token)
    separators = set(_SEPARATORS.findall(token))
    if separators <= {"'"}:
        return token
    if separators <= {"-", "'"} and all(part.isalpha() and not _CAMEL.search(part) for part in parts):
        return token  # PostgreSQL itself indexes a hyphenated word whole and in parts.
    if separators == {"."} and all(part.isdigit() for part in parts):
        return token
    if all(len(part) == 1 and part.isalpha() for part in parts) and separators <= {"."}:
        return "".join(parts)  # The token is an abbreviation such as U.S.A.
    words = [word for part in parts for word in _split_camel(part)]
    if separators <= {"/", "-", "'"} and len(parts) == 2 and token.islower() and all(map(str.isalpha, parts)):
        return " ".join(words)  # The token is two words, as in and/or.
    names = _BETWEEN_NAMES.split(token)
    if len(names) > 1:
        words = [word for name in names for word in _expand_identifier(name, choose_words).split()]
    whole = "".join(parts).lower()
    return " ".join(choose_words([whole] if len(whole) <= LONGEST_WHOLE else [], words))


def _expand_identifier(name: str, choose_words: _ChooseWords) -> str:
    parts = _PARTS.findall(name)
    if len(parts) > 1:
        return _expand_compound_token(name, choose_words)
    words = [word for part in parts for word in _split_camel(part)]
    return " ".join(choose_words(["".join(words)], words) if len(words) > 1 else words)


def _split_camel(word: str) -> list[str]:
    return [part.lower() for part in _CAMEL.split(word)]
