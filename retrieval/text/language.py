"""Identify the language of a text by its most common words."""

from __future__ import annotations

import functools
import re
from collections import Counter

from retrieval.text.word_lists import read_sections

_LANGUAGES = read_sections("language")
_COMMON = {code: frozenset(words["common"].split()) for code, words in _LANGUAGES.items() if "common" in words}
_SCRIPT_SPANS = {
    "ja": "\u3041-\u30ff",
    "ko": "\uac00-\ud7af",
    "zh": "\u4e00-\u9fff",
    "ru": "\u0400-\u04ff",
    "el": "\u0370-\u03ff",
}
_SCRIPTS = {code: re.compile(f"[{span}]") for code, span in _SCRIPT_SPANS.items()}
# A text is in a script's language if more than this share of its letters belongs to the script. The share is low,
# because Japanese mixes kana with Chinese characters.
_SCRIPT_SHARE = 0.2
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE_CHARS = 20_000
_MIN_SHARE = 0.08


def detect_language(*texts: str) -> str:
    """Return the language of ``texts`` as a two-letter code; empty if unclear."""
    counted = [_count_words(text) for text in texts]
    total = sum(words for words, _ in counted)
    hits = {language: sum(sum(common[language].values()) for _, common in counted) for language in _COMMON}
    best, other, *_ = sorted(hits, key=lambda language: (-hits[language], language))
    distinct = len(set().union(*(common[best] for _, common in counted)))
    if distinct < 2 or hits[best] < _MIN_SHARE * total or hits[best] < 2 * hits[other]:
        return ""
    return best


@functools.lru_cache(maxsize=1024)
def _count_words(text: str) -> tuple[int, dict[str, dict[str, int]]]:
    words = Counter(_WORD.findall(text[:_SAMPLE_CHARS].lower()))
    common = {language: {word: words[word] for word in words.keys() & known} for language, known in _COMMON.items()}
    return sum(words.values()), common


def identify_language(text: str) -> str:
    """Return the language of a short text such as a question, as a two-letter code; empty if unclear."""
    sample = text[:_SAMPLE_CHARS]
    letters = sum(map(str.isalpha, sample))
    for code, script in _SCRIPTS.items():
        if letters and len(script.findall(sample)) > _SCRIPT_SHARE * letters:
            return code
    words = Counter(_WORD.findall(sample.lower()))
    hits = {code: sum(words[word] for word in words.keys() & common) for code, common in _list_common_words().items()}
    (best, most), (_, second) = sorted(hits.items(), key=lambda item: -item[1])[:2]
    return best if most > max(second, _MIN_SHARE * words.total()) else ""


@functools.cache
def _list_common_words() -> dict[str, frozenset[str]]:
    return {
        code: frozenset(f"{words.get('common', '')} {words.get('shared', '')}".split())
        for code, words in _LANGUAGES.items()
    }
