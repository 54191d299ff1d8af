"""Find which columns, cells, numbers and phrases the words of a question mean in a table."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from retrieval.tables.known_tables import LoadedTable, normalize_column_word
from retrieval.tables.lexicon import (
    CONCEPTS,
    GRAMMAR_WORDS,
    JOINING,
    NUMBERS,
    SCALES,
    VERBS,
    GrammarWord,
    choose_phrases_by_language,
)
from retrieval.tables.names import YEAR, QuestionToken, make_comparison_key, make_singular, tokenize
from retrieval.tables.table_reading import read_date, read_digits
from retrieval.tables.units import CURRENCIES, find_unit

_LONGEST_SPAN = 12
_LONGEST_NUMBER, _LONGEST_CONCEPT = 4, 2
_JOINED_NAME = re.compile(r"(?<!\w)[^\W_]++(?:_++[^\W_]++)+")
_JOINT = re.compile("_+")
_DIGITS = re.compile(r"\d[\d.,]*")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_SCALED = re.compile(r"(\d+(?:[.,]\d+)?)(k)")
# One letter alone could also be a scale, such as m for million.
_NUMBER_WITH_UNIT = re.compile(r"(\d+(?:[.,]\d+)?)([a-z]{2,4}\d?)")


class QuestionSpanKind(Enum):
    WORD = auto()
    COLUMN = auto()
    VALUE = auto()
    NUMBER = auto()
    YEAR = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class QuestionSpan:
    """A word or phrase of a question, ``question[start:end]``, with its meaning in a table.

    - ``columns``: indexes of the columns that the span names (kind COLUMN), or in which it may be a cell (kind VALUE).
    - ``key``: for the kind VALUE, the cell's text in the form of :func:`make_comparison_key`, or a date.
    - ``number``: a number or year, with its ``unit``. In a range, ``number`` and ``upper`` are the bounds.
    """

    kind: QuestionSpanKind
    start: int
    end: int
    word: GrammarWord | None = None
    columns: frozenset[int] = frozenset()
    key: str = ""
    number: float = 0.0
    unit: str = ""
    upper: float = 0.0


def link_question_to_table(
    question: str, table: LoadedTable, *, keeps_unclear_words: bool = False
) -> Sequence[QuestionSpan] | None:
    """Return the question's words and phrases with their meanings, in order; None if a meaning is unclear.

    If ``keeps_unclear_words`` is true, unclear words are kept, and the result is never None.
    """
    linked = _link_words_to_table(question, table)
    return linked.spans if keeps_unclear_words else linked.whole


@dataclass(frozen=True, slots=True)
class _LinkedQuestion:
    """The meanings of a question's words in a table.

    ``spans`` include words without a meaning, as OTHER. ``whole`` leaves out OTHER. It is None if the meaning of a
    needed word is missing or unclear.
    """

    spans: Sequence[QuestionSpan]
    whole: Sequence[QuestionSpan] | None


@functools.lru_cache(maxsize=32)
def _link_words_to_table(question: str, table: LoadedTable) -> _LinkedQuestion:
    return _QuestionLinker(question, _read_words(question), table).link()


def _sort_spans(found: Mapping[int, QuestionSpan]) -> Sequence[QuestionSpan]:
    return tuple(_join_ranges([span for _, span in sorted(found.items()) if span.word is not GrammarWord.FILLER]))


def _join_ranges(spans: list[QuestionSpan]) -> list[QuestionSpan]:
    for at in range(len(spans) - 3):
        opening, low, joining, high = spans[at : at + 4]
        kinds = {low.kind, high.kind}
        if (opening.word, joining.word) == (GrammarWord.BETWEEN, GrammarWord.AND) and kinds <= {
            QuestionSpanKind.NUMBER,
            QuestionSpanKind.YEAR,
        }:
            kind = QuestionSpanKind.YEAR if kinds == {QuestionSpanKind.YEAR} else QuestionSpanKind.NUMBER
            joined = replace(
                high, kind=kind, start=opening.start, word=GrammarWord.BETWEEN, number=low.number, upper=high.number
            )
            return [*spans[:at], joined, *_join_ranges(spans[at + 4 :])]
    return spans


@functools.lru_cache(maxsize=2_000)
def _read_number(words: tuple[str, ...]) -> tuple[QuestionSpanKind, float, str] | None:
    norms, unit = list(words), ""
    if len(norms) == 1 and (joined := _NUMBER_WITH_UNIT.fullmatch(norms[0])) is not None and find_unit(joined[2]):
        norms = [joined[1], joined[2]]
    if len(norms) > 1 and find_unit(norms[0]) in CURRENCIES:
        unit = find_unit(norms.pop(0))
    elif len(norms) > 1 and find_unit(norms[-1]):
        unit = find_unit(norms.pop())
    scale = SCALES[norms.pop()] if len(norms) == 2 and norms[1] in SCALES else 1.0
    if len(norms) != 1:
        return None
    if (scaled := _SCALED.fullmatch(norms[0])) is not None:
        norms, scale = [scaled[1]], 1e3
    value = NUMBERS.get(norms[0])
    if value is None:
        # A point before three digits groups thousands, as in Dutch "200.000 inwoners".
        digits = norms[0].replace(".", "") if _THOUSANDS.fullmatch(norms[0]) else norms[0]
        value = read_digits(digits) if _DIGITS.fullmatch(digits) else None
    if value is None:
        return None
    return (
        QuestionSpanKind.YEAR if len(words) == 1 and YEAR.fullmatch(norms[0]) else QuestionSpanKind.NUMBER,
        value * scale,
        unit,
    )


@dataclass(frozen=True, slots=True)
class _WordRun:
    """Successive words of a question, in the forms that are compared with a table.

    ``name`` is compared with names of columns, ``key`` with cells. ``first`` and ``end`` are indexes of words,
    ``start`` and ``stop`` of characters.
    """

    first: int
    end: int
    start: int
    stop: int
    norms: tuple[str, ...]
    name: tuple[str, ...]
    key: str
    caption: frozenset[str]
    word: GrammarWord | None


@functools.lru_cache(maxsize=8)
def _read_words(question: str) -> tuple[Sequence[QuestionToken], Sequence[_WordRun]]:
    """Return the question's words, and all sequences of at most `_LONGEST_SPAN` of them, longest first."""
    tokens = tokenize(question)
    phrases = choose_phrases_by_language(token.norm for token in tokens)
    runs = []
    for length in range(min(_LONGEST_SPAN, len(tokens)), 0, -1):
        for first in range(len(tokens) - length + 1):
            run = tokens[first : first + length]
            start, stop, norms = run[0].start, run[-1].end, tuple(token.norm for token in run)
            runs.append(
                _WordRun(
                    first,
                    first + length,
                    start,
                    stop,
                    norms,
                    # In "Name the teams", the first word is a verb.
                    () if norms == ("name",) and first == 0 else _extract_column_words(norms),
                    _make_word_run_key(question[start:stop], norms),
                    frozenset(map(make_singular, norms)) if not all(map(str.isdigit, norms)) else frozenset(),
                    phrases.get(norms),
                )
            )
    return tokens, runs


def _extract_column_words(norms: Sequence[str]) -> tuple[str, ...]:
    is_grammar = len(norms) == 1 and norms[0] in GRAMMAR_WORDS - {"total", "name"}
    if is_grammar or norms[0] in JOINING or norms[-1] in JOINING:
        return ()
    return tuple(sorted(normalize_column_word(norm) for norm in norms if norm not in JOINING))


def _make_word_run_key(text: str, normalised_words: Sequence[str]) -> str:
    if all(norm in GRAMMAR_WORDS or norm in NUMBERS for norm in normalised_words):
        return ""
    key = make_comparison_key(text)
    return "" if len(normalised_words) == 1 and len(key) < 2 else key


class _QuestionLinker:
    def __init__(
        self, question: str, words: tuple[Sequence[QuestionToken], Sequence[_WordRun]], table: LoadedTable
    ) -> None:
        self.question = question
        self.tokens, self.runs = words
        self.table = table

    def link(self) -> _LinkedQuestion:
        found: dict[int, QuestionSpan] = {}
        is_clear = True
        taken = [False] * len(self.tokens)
        for run in self.runs:
            if any(taken[run.first : run.end]) or self._is_part_of_underscored_name(run):
                continue
            meanings = list(self._find_word_run_meanings(run))
            is_clear = is_clear and len(meanings) <= 1
            if meanings:
                found[run.first] = meanings[-1]
                taken[run.first : run.end] = [True] * (run.end - run.first)
        left = [at for at, is_taken in enumerate(taken) if not is_taken]
        is_clear = is_clear and all(self.tokens[at].norm in VERBS for at in left)
        rest = {at: QuestionSpan(QuestionSpanKind.OTHER, self.tokens[at].start, self.tokens[at].end) for at in left}
        return _LinkedQuestion(_sort_spans(found | rest), _sort_spans(found) if is_clear else None)

    def _is_part_of_underscored_name(self, run: _WordRun) -> bool:
        return bool(self._joining_underscore_positions) and (
            run.start in self._joining_underscore_positions or run.stop in self._joining_underscore_positions
        )

    @functools.cached_property
    def _joining_underscore_positions(self) -> frozenset[int]:
        if "_" not in self.question:
            return frozenset()
        columns = {make_comparison_key(column.name) for column in self.table.columns}
        names = (
            name for name in _JOINED_NAME.finditer(self.question) if make_comparison_key(name.group()) not in columns
        )
        joints = (joint for name in names for joint in _JOINT.finditer(self.question, *name.span()))
        return frozenset(place for joint in joints for place in joint.span())

    def _find_word_run_meanings(self, run: _WordRun) -> Iterator[QuestionSpan]:
        columns = self.table.columns_by_name.get(run.name, frozenset()) if run.name else frozenset()
        if columns:
            yield QuestionSpan(QuestionSpanKind.COLUMN, run.start, run.stop, columns=columns)
        if cells := self._columns_of_cell(run.key):
            yield QuestionSpan(QuestionSpanKind.VALUE, run.start, run.stop, columns=cells, key=run.key)
        if columns or cells:
            return
        length = run.end - run.first
        is_caption = bool(run.caption) and run.caption <= self.table.caption_words
        if is_caption and run.word in (None, GrammarWord.GOODS):
            yield QuestionSpan(QuestionSpanKind.WORD, run.start, run.stop, word=GrammarWord.ROWS)
        elif run.word is not None:
            yield QuestionSpan(QuestionSpanKind.WORD, run.start, run.stop, word=run.word)
        elif length <= _LONGEST_NUMBER and (number := self._find_number_span(run)) is not None:
            yield number
        elif length <= _LONGEST_CONCEPT and (concept := self._find_concept_span(run)) is not None:
            yield concept

    def _columns_of_cell(self, key: str) -> frozenset[int]:
        columns = self.table.columns_by_cell.get(key, frozenset()) if key else frozenset()
        return columns - self.table.year_columns if columns and YEAR.fullmatch(key) else columns

    def _find_number_span(self, run: _WordRun) -> QuestionSpan | None:
        if len(run.norms) == 3 and (day := read_date(self.question[run.start : run.stop])) is not None:
            days = frozenset(at for at, column in enumerate(self.table.columns) if column.kind == "date")
            return QuestionSpan(QuestionSpanKind.VALUE, run.start, run.stop, columns=days, key=day)
        if (found := _read_number(run.norms)) is None:
            return None
        kind, number, unit = found
        return QuestionSpan(kind, run.start, run.stop, number=number, unit=unit)

    def _find_concept_span(self, run: _WordRun) -> QuestionSpan | None:
        phrase = " ".join(run.norms)
        for concept in CONCEPTS:
            if phrase not in concept.phrases:
                continue
            columns = frozenset(
                at
                for at in range(len(self.table.columns))
                if (words := self.table.list_column_words(at)) and words[-1] in concept.columns
            )
            if not columns:
                return None
            return QuestionSpan(
                QuestionSpanKind.COLUMN, run.start, run.stop, columns=columns, word=concept.phrases[phrase]
            )
        return None
