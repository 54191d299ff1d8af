"""The words with a special meaning in questions about tables, such as "how many", in each language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest
from typing import Any

from retrieval.tables.names import make_singular
from retrieval.text.word_lists import join_lists, read_sections


class GrammarWord(Enum):
    COUNT = auto()
    TOTAL_COUNT = auto()
    TOTAL = auto()
    MEAN = auto()
    MOST = auto()
    LEAST = auto()
    LATEST = auto()
    EARLIEST = auto()
    MORE = auto()
    LESS = auto()
    DISTINCT = auto()
    ONLY = auto()
    NOT = auto()
    AND = auto()
    OR = auto()
    ABOVE = auto()
    BELOW = auto()
    AT_LEAST = auto()
    AT_MOST = auto()
    AFTER = auto()
    BEFORE = auto()
    SINCE = auto()
    UNTIL = auto()
    BETWEEN = auto()
    OR_MORE = auto()
    OR_LESS = auto()
    WHICH = auto()
    WHO = auto()
    WHEN = auto()
    WHERE = auto()
    HOW = auto()
    LIST = auto()
    TIMES = auto()
    # A question's word for the rows of a table is "rows", or a word of the table's caption, such as "countries".
    ROWS = auto()
    # A word that may mean the rows of any table of goods, such as "products".
    GOODS = auto()
    FILLER = auto()


_TABLES = read_sections("tables")


def _normalise_nouns(words: str) -> frozenset[str]:
    return frozenset(make_singular(word) for word in words.split())


@dataclass(frozen=True, slots=True)
class Concept:
    """A quantity, such as weight, that has words of its own in questions ("heavy").

    ``columns`` are names of columns with this quantity. ``phrases`` maps a phrase to the extreme that it asks for
    ("heaviest": the largest), or to None ("how heavy").
    """

    columns: frozenset[str]
    phrases: Mapping[str, GrammarWord | None]


def _build_concept(languages: Iterable[Mapping[str, str]]) -> Concept:
    columns = ""
    phrases: dict[str, GrammarWord | None] = {}
    for words in languages:
        columns += f" {words['columns']}"
        phrases |= dict.fromkeys(words["degree"].split())
        for word in (GrammarWord.MOST, GrammarWord.LEAST, GrammarWord.MORE, GrammarWord.LESS):
            phrases |= dict.fromkeys(words.get(word.name.lower(), "").split(), word)
            if words.get("compared"):
                phrases[f"{word.name.lower()} {words['compared']}"] = word
    return Concept(_normalise_nouns(columns), phrases)


def _read_concepts(tables: Mapping[str, Any]) -> tuple[Concept, ...]:
    names = dict.fromkeys(name for words in tables.values() for name in words["concepts"])
    return tuple(
        _build_concept([words["concepts"][name] for words in tables.values() if name in words["concepts"]])
        for name in names
    )


CONCEPTS = _read_concepts(_TABLES)
# These words need no meaning in the table, such as "won" in "who won three gold medals".
VERBS = frozenset(join_lists(_TABLES, "verbs").split())
# "Who", "when" and "where" ask for a column with one of these names. WHO_COLUMNS has several sets; the first
# that matches a column is used.
WHO_COLUMNS = tuple(
    _normalise_nouns(" ".join(names))
    for names in zip_longest(*(words.get("who_columns", []) for words in _TABLES.values()), fillvalue="")
)
WHEN_COLUMNS = _normalise_nouns(join_lists(_TABLES, "when_columns"))
WHERE_COLUMNS = _normalise_nouns(join_lists(_TABLES, "where_columns"))
# Columns with these names contain ranks or identifying numbers, which are not summed.
ORDINALS = _normalise_nouns(join_lists(_TABLES, "ordinals"))
# A row that has one of these words as a cell is a row of totals.
SUMMARIES = frozenset(join_lists(_TABLES, "summaries").split())
YES_OR_NO = frozenset(join_lists(_TABLES, "yes_or_no").split())
# Dutch "een" (one) is also the article "a", so it is no number here.
NUMBERS: Mapping[str, float] = {
    word: float(number)
    for words in _TABLES.values()
    for number, word in enumerate(words["numbers"].split())
    if word not in words["phrases"]["filler"].split("|")
}
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9}
SCALES: Mapping[str, float] = {
    word: _SCALES[name] for words in _TABLES.values() for name, word in words["scales"].items() if word
}


def _build_phrases(words: Mapping[GrammarWord, str]) -> dict[tuple[str, ...], GrammarWord]:
    phrases = {tuple(phrase.split()): word for word, row in words.items() for phrase in row.split("|")}
    extremes = {phrase: word for phrase, word in phrases.items() if word in (GrammarWord.MOST, GrammarWord.LEAST)}
    return phrases | {(*phrase, noun, "of"): extremes[phrase] for phrase in extremes for noun in ("number", "amount")}


_PHRASES = {
    code: _build_phrases({GrammarWord[name.upper()]: row for name, row in words["phrases"].items()})
    for code, words in _TABLES.items()
}
_ALONE = {language: {phrase[0] for phrase in known if len(phrase) == 1} for language, known in _PHRASES.items()}
# Names are compared without these words, because "date of birth" is also called "birth date".
JOINING = frozenset(join_lists(_TABLES, "joining").split())
GRAMMAR_WORDS = frozenset().union(*_ALONE.values())


def choose_phrases_by_language(words: Iterable[str]) -> Mapping[tuple[str, ...], GrammarWord]:
    """Return the phrases with a special meaning, in the language that has most of a question's ``words``."""
    found = set(words)
    distinct = {
        code: len(found & alone.difference(*(others for other, others in _ALONE.items() if other != code)))
        for code, alone in _ALONE.items()
    }
    return _PHRASES[max(distinct, key=lambda code: (distinct[code], code == "en"))]


# Words that ask for several rows of a table, or for one row among all.
_SELECTING = frozenset(
    {
        GrammarWord.COUNT, GrammarWord.TOTAL_COUNT, GrammarWord.MEAN, GrammarWord.MOST, GrammarWord.LEAST,
        GrammarWord.ABOVE, GrammarWord.BELOW, GrammarWord.AT_LEAST, GrammarWord.AT_MOST, GrammarWord.BETWEEN,
    }
)  # fmt: skip


def asks_for_several_rows(words: Sequence[str]) -> bool:
    """Return whether a question, as lower-case words, has a word that compares, ranks or counts rows of a table."""
    phrases = choose_phrases_by_language(words)
    spoken = f" {' '.join(words)} "
    return any(word in _SELECTING and f" {' '.join(phrase)} " in spoken for phrase, word in phrases.items()) or any(
        phrase in words and word is not None for concept in CONCEPTS for phrase, word in concept.phrases.items()
    )
