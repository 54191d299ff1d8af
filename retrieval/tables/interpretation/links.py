"""A table as questions name it, and what the words of one question were found to mean in it. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from retrieval.tables.interpretation.lexicon import SOFT_WORDS, STOP_WORDS
from retrieval.tables.reading import Column
from retrieval.tables.words import YEAR, QuestionToken, squeeze, stem, stems_of, words_of, words_of_name

EXACT, BY_STEM, BY_CONCEPT, BY_PREFIX, PARTIAL = 1.0, 0.95, 0.9, 0.85, 0.8
# How columns are called by whose cells a row is called.
_NAMING = frozenset(
    "name title label code id sku description product item naam titel omschrijving artikel".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class KnownTable:
    """A table with what a question may name: ``texts`` has, by text column, the distinct cells and how many rows hold
    each.
    """

    pk: int
    caption: str
    columns: tuple[Column, ...]
    row_count: int
    texts: Mapping[int, Mapping[str, int]]

    @cached_property
    def key(self) -> int:
        """The column that names the rows: the first whose texts are nearly all different, else the first of text."""
        return next((at for at in self.texts if self._tells_apart(at)), next(iter(self.texts), 0))

    @cached_property
    def names(self) -> frozenset[int]:
        """The columns by whose cells a row is called: the key, and those called name or title."""
        called = {at for at in self.texts if _NAMING & set(words_of_name(self.columns[at].name))}
        return frozenset({self.key, *(at for at in called if self._tells_apart(at))})

    @cached_property
    def shown_names(self) -> tuple[int, ...]:
        """The key, and where that is a code, the column that says what it is."""
        if any(" " in text for text in self.texts.get(self.key, {})):
            return (self.key,)
        spoken = [at for at in sorted(self.names - {self.key}) if any(" " in text for text in self.texts[at])]
        return (self.key, *spoken[:1])

    def _tells_apart(self, at: int) -> bool:
        return len(self.texts[at]) >= 0.9 * sum(self.texts[at].values()) >= 0.9 * 0.9 * self.row_count

    @cached_property
    def cells_by_label(self) -> dict[str, list[tuple[int, str]]]:
        cells: dict[str, list[tuple[int, str]]] = {}
        for at, texts in self.texts.items():
            for text in texts:
                cells.setdefault(squeeze(text), []).append((at, text))
        return cells

    @cached_property
    def cells_by_stems(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        cells: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for at, texts in self.texts.items():
            for text in texts:
                cells.setdefault(stems_of(text), []).append((at, text))
        return cells

    @cached_property
    def column_words(self) -> tuple[tuple[str, ...], ...]:
        return tuple(words_of_name(column.name) for column in self.columns)

    @cached_property
    def column_stems(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(stem(word) for word in words) for words in self.column_words)

    def words_of_length(self, length: int) -> tuple[str, ...]:
        """Those of the vocabulary that are made of so many letters."""
        return self._by_length.get(length, ())

    @cached_property
    def _by_length(self) -> dict[int, tuple[str, ...]]:
        found: dict[int, list[str]] = {}
        for word in sorted(self.vocabulary):
            if word.isalpha():
                found.setdefault(len(word), []).append(word)
        return {length: tuple(words) for length, words in found.items()}

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem, self.vocabulary))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        words = {word for texts in self.texts.values() for text in texts for word in words_of(text)}
        words.update(word for column in self.columns for word in words_of_name(column.name))
        return frozenset(words | set(words_of(self.caption)))

    @cached_property
    def caption_words(self) -> frozenset[str]:
        return frozenset(words_of(self.caption))

    @cached_property
    def caption_years(self) -> frozenset[str]:
        return frozenset(word for word in self.caption_words if YEAR.fullmatch(word))

    @cached_property
    def caption_stems(self) -> frozenset[str]:
        return frozenset(stems_of(self.caption))


@dataclass(frozen=True, slots=True)
class ValueLink:
    """Tokens ``first`` to ``last`` (included), the question's ``words``, name the cells of one column."""

    first: int
    last: int
    column: int
    texts: tuple[str, ...]
    quality: float
    words: str = ""
    others: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnLink:
    """Tokens name one column; several when it is not clear which (the same figure of several periods)."""

    tokens: tuple[int, ...]
    columns: tuple[int, ...]
    quality: float

    @property
    def first(self) -> int:
        return self.tokens[0]


@dataclass(slots=True)
class Links:
    tokens: list[QuestionToken]
    values: list[ValueLink] = field(default_factory=list)
    columns: list[ColumnLink] = field(default_factory=list)
    explained: set[int] = field(default_factory=set)
    # Places of words that say what a row is: by the name of the key column, or by the caption.
    names_key: set[int] = field(default_factory=set)
    names_caption: set[int] = field(default_factory=set)

    def is_free(self, at: int) -> bool:
        return at not in self.explained

    @property
    def unexplained(self) -> list[QuestionToken]:
        return [
            token
            for at, token in enumerate(self.tokens)
            if at not in self.explained and token.norm not in STOP_WORDS and token.stem not in SOFT_WORDS
        ]
