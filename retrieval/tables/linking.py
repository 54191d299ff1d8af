"""Find the columns, cells, numbers and phrases that the words of a question mean in a table. PURE."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from retrieval.tables.known_tables import KnownTable, name_word
from retrieval.tables.lexicon import CONCEPTS, GRAMMAR_WORDS, JOINING, NUMBERS, SCALES, VERBS, Word, choose_phrases
from retrieval.tables.names import YEAR, QuestionToken, make_key, make_singular, tokenize
from retrieval.tables.table_reading import UNIT_WORDS, read_date, read_digits

_LONGEST_SPAN = 12
_LONGEST_NUMBER, _LONGEST_CONCEPT = 4, 2
_JOINED_NAME = re.compile(r"(?<!\w)[^\W_]++(?:_++[^\W_]++)+")
_JOINT = re.compile("_+")
_DIGITS = re.compile(r"\d[\d.,]*")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_SCALED = re.compile(r"(\d+(?:[.,]\d+)?)(k)")
_SYMBOLS = {"€": "eur", "euro": "eur", "$": "usd", "dollar": "usd", "dollars": "usd", "£": "gbp", "%": "%"}


class Kind(Enum):
    WORD = auto()
    COLUMN = auto()
    VALUE = auto()
    NUMBER = auto()
    YEAR = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class QuestionSpan:
    """A part of the question, ``question[start:end]``, with its meaning in the table.

    ``columns`` are the columns that it names, or that contain the value ``key``. ``number`` is a number or year, with
    its ``unit``. A range has the ``word`` BETWEEN, and ends at ``upper``.
    """

    kind: Kind
    start: int
    end: int
    word: Word | None = None
    columns: frozenset[int] = frozenset()
    key: str = ""
    number: float = 0.0
    unit: str = ""
    upper: float = 0.0


def link(question: str, table: KnownTable, *, partly: bool = False) -> Sequence[QuestionSpan] | None:
    """Return the spans of the question in order, without filler words; None if a word has no clear meaning.

    Words that name both a column and a cell are unclear. With ``partly``, the result is never None: these words name
    the cell, and words without a meaning are kept.
    """
    linked = _link(question, table)
    return linked.spans if partly else linked.whole


@dataclass(frozen=True, slots=True)
class _Linked:
    """The results of :func:`link` with ``partly`` (``spans``) and without (``whole``)."""

    spans: Sequence[QuestionSpan]
    whole: Sequence[QuestionSpan] | None


# Cached, because several steps link the same question.
@functools.lru_cache(maxsize=32)
def _link(question: str, table: KnownTable) -> _Linked:
    tokens = tokenize(question)
    return _Linker(question, tokens, table, choose_phrases(token.norm for token in tokens)).link()


def _sort_spans(found: Mapping[int, QuestionSpan]) -> Sequence[QuestionSpan]:
    return tuple(_join_ranges([span for _, span in sorted(found.items()) if span.word is not Word.FILLER]))


def _join_ranges(spans: list[QuestionSpan]) -> list[QuestionSpan]:
    for at in range(len(spans) - 3):
        opening, low, joining, high = spans[at : at + 4]
        kinds = {low.kind, high.kind}
        if (opening.word, joining.word) == (Word.BETWEEN, Word.AND) and kinds <= {Kind.NUMBER, Kind.YEAR}:
            kind = Kind.YEAR if kinds == {Kind.YEAR} else Kind.NUMBER
            joined = replace(
                high, kind=kind, start=opening.start, word=Word.BETWEEN, number=low.number, upper=high.number
            )
            return [*spans[:at], joined, *_join_ranges(spans[at + 4 :])]
    return spans


@dataclass
class _Linker:
    question: str
    tokens: Sequence[QuestionToken]
    table: KnownTable
    phrases: Mapping[tuple[str, ...], Word]

    def link(self) -> _Linked:
        found: dict[int, QuestionSpan] = {}
        is_clear = True
        taken = [False] * len(self.tokens)
        for length in range(min(_LONGEST_SPAN, len(self.tokens)), 0, -1):
            for first in range(len(self.tokens) - length + 1):
                end = first + length
                if any(taken[first:end]) or self._is_part_of_name(first, end):
                    continue
                meanings = list(self._find_meanings(first, end))
                is_clear = is_clear and len(meanings) <= 1
                if meanings:
                    found[first] = meanings[-1]
                    taken[first:end] = [True] * length
        left = [at for at, is_taken in enumerate(taken) if not is_taken]
        is_clear = is_clear and all(self.tokens[at].norm in VERBS for at in left)
        rest = {at: self._make_span(Kind.OTHER, at, at + 1) for at in left}
        return _Linked(_sort_spans(found | rest), _sort_spans(found) if is_clear else None)

    def _is_part_of_name(self, first: int, end: int) -> bool:
        """Return whether the tokens are only a part of an identifier such as ``PING_BODY_LIMIT``."""
        return self.tokens[first].start in self._joints or self.tokens[end - 1].end in self._joints

    @functools.cached_property
    def _joints(self) -> frozenset[int]:
        columns = {make_key(column.name) for column in self.table.columns}
        names = (name for name in _JOINED_NAME.finditer(self.question) if make_key(name.group()) not in columns)
        joints = (joint for name in names for joint in _JOINT.finditer(self.question, *name.span()))
        return frozenset(place for joint in joints for place in joint.span())

    def _find_meanings(self, first: int, end: int) -> Iterator[QuestionSpan]:
        span = self.tokens[first:end]
        norms = tuple(token.norm for token in span)
        # In "Name the teams", "name" is a verb and not a column.
        columns = frozenset() if norms == ("name",) and first == 0 else self._find_named_columns(norms)
        if columns:
            yield self._make_span(Kind.COLUMN, first, end, columns=columns)
        if held := self._find_value_columns_of(span):
            yield self._make_span(Kind.VALUE, first, end, columns=held, key=self._make_span_key(span))
        if columns or held:
            return
        if (word := self.phrases.get(norms)) is not None:
            yield self._make_span(Kind.WORD, first, end, word=word)
        elif self._is_caption(norms):
            yield self._make_span(Kind.WORD, first, end, word=Word.ROWS)
        elif len(span) <= _LONGEST_NUMBER and (number := self._read_number_span(first, end)) is not None:
            yield number
        elif len(span) <= _LONGEST_CONCEPT and (concept := self._read_concept_span(first, end)) is not None:
            yield concept

    def _make_span(self, kind: Kind, first: int, end: int, **means: Any) -> QuestionSpan:
        return QuestionSpan(kind, self.tokens[first].start, self.tokens[end - 1].end, **means)

    def _find_named_columns(self, norms: Sequence[str]) -> frozenset[int]:
        if len(norms) == 1 and norms[0] in GRAMMAR_WORDS - {"total", "name"}:
            return frozenset()
        if norms[0] in JOINING or norms[-1] in JOINING:
            return frozenset()
        words = sorted(name_word(norm) for norm in norms if norm not in JOINING)
        return self.table.names_of_columns.get(tuple(words), frozenset())

    def _is_caption(self, norms: Sequence[str]) -> bool:
        words = [make_singular(norm) for norm in norms]
        return not all(word.isdigit() for word in words) and self.table.caption_words.issuperset(words)

    def _make_span_key(self, span: Sequence[QuestionToken]) -> str:
        return make_key(self.question[span[0].start : span[-1].end])

    def _find_value_columns_of(self, span: Sequence[QuestionToken]) -> frozenset[int]:
        if all(token.norm in GRAMMAR_WORDS or token.norm in NUMBERS for token in span):
            return frozenset()
        key = self._make_span_key(span)
        if len(span) == 1 and len(key) < 2:
            return frozenset()
        held = self.table.columns_of_cells.get(key, frozenset())
        return held - self.table.year_columns if YEAR.fullmatch(key) else held

    def _read_number_span(self, first: int, end: int) -> QuestionSpan | None:
        span = self.tokens[first:end]
        text = self.question[span[0].start : span[-1].end]
        if len(span) == 3 and (day := read_date(text)) is not None:
            days = frozenset(at for at, column in enumerate(self.table.columns) if column.kind == "date")
            return self._make_span(Kind.VALUE, first, end, columns=days, key=day)
        norms = [_SYMBOLS.get(token.norm, token.norm) for token in span]
        unit = ""
        if len(norms) > 1 and norms[0] in _SYMBOLS.values():
            unit = norms.pop(0)
        elif len(norms) > 1 and (norms[-1] in UNIT_WORDS or norms[-1] in _SYMBOLS.values()):
            unit = norms.pop()
        scale = SCALES[norms.pop()] if len(norms) == 2 and norms[1] in SCALES else 1.0
        if len(norms) != 1:
            return None
        if (scaled := _SCALED.fullmatch(norms[0])) is not None:
            norms, scale = [scaled[1]], 1e3
        value = NUMBERS.get(norms[0])
        if value is None:
            # Three digits after a point are thousands: 200.000 inwoners.
            digits = norms[0].replace(".", "") if _THOUSANDS.fullmatch(norms[0]) else norms[0]
            value = read_digits(digits) if _DIGITS.fullmatch(digits) else None
        if value is None:
            return None
        kind = Kind.YEAR if len(span) == 1 and YEAR.fullmatch(norms[0]) else Kind.NUMBER
        return self._make_span(kind, first, end, number=value * scale, unit=unit)

    def _read_concept_span(self, first: int, end: int) -> QuestionSpan | None:
        said = " ".join(token.norm for token in self.tokens[first:end])
        for concept in CONCEPTS:
            if said not in concept.phrases:
                continue
            columns = frozenset(
                at
                for at in range(len(self.table.columns))
                if (words := self.table.list_column_words(at)) and words[-1] in concept.columns
            )
            return (
                self._make_span(Kind.COLUMN, first, end, columns=columns, word=concept.phrases[said])
                if columns
                else None
            )
        return None
