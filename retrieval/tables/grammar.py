"""Interpret a question as one operation on a table, with conditions and a column for the answer.

A question with an unclear word or phrase is not interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from retrieval.tables.known_tables import LoadedTable, find_years, is_empty, make_cell_lookup_keys
from retrieval.tables.lexicon import WHEN_COLUMNS, WHERE_COLUMNS, WHO_COLUMNS, YES_OR_NO, GrammarWord
from retrieval.tables.linking import QuestionSpan, QuestionSpanKind, link_question_to_table
from retrieval.tables.names import fold_text, make_singular, tokenize
from retrieval.tables.results import TableOperation
from retrieval.tables.table_reading import CellValue
from retrieval.tables.units import convert_number
from retrieval.text.word_lists import read_words

# Tables with fewer rows answer look-ups and comparisons, but no counts or rankings.
FEWEST_ROWS = 5
COMPARATORS = {
    GrammarWord.ABOVE: ">",
    GrammarWord.BELOW: "<",
    GrammarWord.AT_LEAST: ">=",
    GrammarWord.AT_MOST: "<=",
    GrammarWord.AFTER: ">",
    GrammarWord.BEFORE: "<",
    GrammarWord.SINCE: ">=",
    GrammarWord.UNTIL: "<=",
}
OR_BEYOND = {GrammarWord.OR_MORE: ">=", GrammarWord.OR_LESS: "<="}
COMPARED = {GrammarWord.MORE: ">", GrammarWord.LESS: "<"}
_ASKING = {GrammarWord.WHICH, GrammarWord.WHO, GrammarWord.WHEN, GrammarWord.WHERE, GrammarWord.HOW, GrammarWord.LIST}
# A year after one of these words limits a period ("to 2020"), and is not used as a condition.
_OPEN = read_words("tables", "ends_period")
_WHAT = read_words("tables", "what")
_ROWS = {GrammarWord.ROWS, GrammarWord.GOODS}
_EXTREMES = {GrammarWord.MOST: TableOperation.MOST, GrammarWord.LEAST: TableOperation.LEAST}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the cells of one column, which is given as an index.

    ``operator`` is one of these:

    - ``=``, ``<``, ``<=``, ``>``, ``>=`` or ``between`` for numbers;
    - the same with the prefix ``year`` for years;
    - ``is`` for texts that equal a value, ``contains`` for texts that contain one.

    ``values`` are the bounds, or alternatives of which one must match. ``shown`` is its text in the question.
    """

    column: int
    operator: str
    values: tuple[CellValue, ...]
    shown: str = ""
    is_negated: bool = False

    def is_met_by(self, value: CellValue) -> bool | None:
        """Return whether a cell's value meets the condition; None if the value cannot be compared."""
        found = self._compare_value(value)
        return found if found is None or not self.is_negated else not found

    def _compare_value(self, value: CellValue) -> bool | None:
        if is_empty(value):
            is_low = self.operator in ("<", "<=") or (self.operator == "=" and 0.0 in self.values)
            return None if self.is_negated or is_low else False
        if self.operator.startswith("year"):
            years = find_years(value)
            return _is_comparison_true(float(min(years)), self.operator[4:], self.values) if len(years) == 1 else None
        if self.operator not in ("is", "contains"):
            return (
                None if isinstance(value, str) else _is_comparison_true(float(value or 0), self.operator, self.values)
            )
        if not isinstance(value, str):
            return None
        if self.operator == "contains":
            return any(str(words) in fold_text(value) for words in self.values)
        return value in self.values or not make_cell_lookup_keys(value).isdisjoint(map(str, self.values))


def _is_comparison_true(number: float, sign: str, values: Sequence[CellValue]) -> bool:
    bounds = [float(value) for value in values if value is not None]
    match sign:
        case "<":
            return number < bounds[0]
        case "<=":
            return number <= bounds[0]
        case ">":
            return number > bounds[0]
        case ">=":
            return number >= bounds[0]
        case "between":
            return bounds[0] <= number <= bounds[1]
    return number in bounds


@dataclass(frozen=True, slots=True)
class QuestionInterpretation:
    """An interpretation of a question about a table. Columns are given as indexes.

    - ``answer``: the column with the answer.
    - ``order``: the column that is ranked, summed or averaged.
    - ``is_distinct``: whether equal cells count once.
    - ``is_least``: whether the lowest number is wanted.
    - ``shown``: more columns to show.
    """

    operation: TableOperation
    conditions: tuple[Condition, ...] = ()
    answer: int | None = None
    order: int | None = None
    is_distinct: bool = False
    is_least: bool = False
    shown: tuple[int, ...] = ()


def get_bounds(span: QuestionSpan) -> tuple[float, ...]:
    return (span.number, span.upper) if span.word is GrammarWord.BETWEEN else (span.number,)


def find_columns_in_unit(unit: str, table: LoadedTable) -> list[int]:
    """Return the columns of numbers in this unit, or in another unit of the same quantity; none if ``unit`` is empty.

    In "products under 100 euros", the unit means the column of prices.
    """
    return [
        at
        for at, column in enumerate(table.columns)
        if unit and column.kind == "number" and column.unit and convert_number(1.0, unit, column.unit) is not None
    ]


def convert_bounds(span: QuestionSpan, unit: str) -> tuple[float, ...] | None:
    """Return the bounds in a column's unit; None if the question's unit is of another quantity."""
    bounds = get_bounds(span)
    if not span.unit:
        return bounds
    converted = [convert_number(bound, span.unit, unit) for bound in bounds]
    return None if None in converted else tuple(bound for bound in converted if bound is not None)


def interpret_question(question: str, table: LoadedTable) -> QuestionInterpretation | None:
    spans = link_question_to_table(question, table) if table.columns_by_name else None
    reading = _Reader(question, spans, table).read() if spans else None
    is_short = table.row_count < FEWEST_ROWS
    if reading is None or (is_short and reading.operation not in (TableOperation.LOOK_UP, TableOperation.COMPARE)):
        return None
    return reading


@dataclass(slots=True)
class _Reader:
    question: str
    spans: Sequence[QuestionSpan]
    table: LoadedTable
    conditions: list[Condition] = field(default_factory=list)
    used: set[int] = field(default_factory=set)

    def read(self) -> QuestionInterpretation | None:
        if not self._read_conditions():
            return None
        words = [span.word for at, span in enumerate(self.spans) if at not in self.used and span.word is not None]
        columns = [
            at for at, span in enumerate(self.spans) if at not in self.used and span.kind is QuestionSpanKind.COLUMN
        ]
        if any(len(self.spans[at].columns) != 1 for at in columns):
            return None
        is_pair = len(columns) == 2 and self._are_joined_by_and(*columns)
        ignored = {*_ASKING, *_ROWS, *([GrammarWord.AND] if is_pair else [])}
        operations = [word for word in words if word not in ignored]
        asks = [word for word in words if word in _ASKING]
        is_yes_or_no = tokenize(self.question)[0].norm in YES_OR_NO and not asks
        if is_yes_or_no and GrammarWord.OR not in operations:
            return None
        if (
            set(operations) <= {GrammarWord.COUNT}
            and (compared := self._interpret_comparison(columns, None)) is not None
        ):
            return compared
        match sorted(set(operations), key=lambda word: word.value):
            case []:
                return self._interpret_look_up(columns, asks, is_single=False)
            case [GrammarWord.ONLY]:
                return self._interpret_look_up(columns, asks, is_single=True)
            case [GrammarWord.COUNT]:
                return self._interpret_count(columns)
            case [GrammarWord.TIMES]:
                counts = bool(self.conditions) and not columns
                return QuestionInterpretation(TableOperation.COUNT, tuple(self.conditions)) if counts else None
            case [GrammarWord.TOTAL_COUNT] | [GrammarWord.COUNT, GrammarWord.TOTAL]:
                return self._interpret_count(columns, is_total=True)
            case [GrammarWord.COUNT, GrammarWord.DISTINCT]:
                return self._interpret_count(columns, is_distinct=True)
            case [GrammarWord.TOTAL] | [GrammarWord.MEAN]:
                return self._interpret_aggregate(
                    columns, TableOperation.SUM if operations[0] is GrammarWord.TOTAL else TableOperation.MEAN
                )
            case [GrammarWord.MOST] | [GrammarWord.LEAST]:
                return self._interpret_ranking(columns, asks, operations[0])
            case [GrammarWord.OR]:
                return self._interpret_comparison(columns, None)
            case [GrammarWord.MORE, GrammarWord.OR] | [GrammarWord.LESS, GrammarWord.OR]:
                return self._interpret_comparison(
                    columns, GrammarWord.MOST if GrammarWord.MORE in operations else GrammarWord.LEAST
                )
        return None

    def _read_conditions(self) -> bool:
        for at, span in enumerate(self.spans):
            if at in self.used:
                continue
            readers = {
                QuestionSpanKind.VALUE: self._read_value,
                QuestionSpanKind.NUMBER: self._read_number,
                QuestionSpanKind.YEAR: self._read_year,
            }
            if span.kind in readers and not readers[span.kind](at):
                return False
        for at, span in enumerate(self.spans):
            if at not in self.used and span.kind is QuestionSpanKind.COLUMN and len(span.columns) == 1:
                self._add_named_column_condition(at)
        for at in range(1, len(self.spans) - 1):
            if self._get_unused_word(at) is GrammarWord.AND and {at - 1, at + 1} <= self.used:
                self.used.add(at)
        return True

    def _get_unused_word(self, at: int) -> GrammarWord | None:
        return self.spans[at].word if 0 <= at < len(self.spans) and at not in self.used else None

    def _find_columns_at(self, at: int) -> frozenset[int]:
        is_free = 0 <= at < len(self.spans) and at not in self.used and self.spans[at].kind is QuestionSpanKind.COLUMN
        return self.spans[at].columns if is_free else frozenset()

    def _text(self, at: int) -> str:
        return self.question[self.spans[at].start : self.spans[at].end]

    def _read_value(self, at: int) -> bool:
        span = self.spans[at]
        columns = span.columns
        beside = [place for place in (at - 1, at + 1) if self._find_columns_at(place) & columns]
        if len(columns) > 1 and len(beside) == 1:
            columns = columns & self.spans[beside[0]].columns
        if len(columns) != 1:
            return False
        (column,) = columns
        self.used.update([at, *(place for place in beside if not self._is_after_question_word(place))])
        is_negated = self._get_unused_word(at - 1) is GrammarWord.NOT
        if is_negated:
            self.used.add(at - 1)
        self.conditions.append(Condition(column, "is", (span.key,), self._text(at), is_negated))
        return True

    def _is_after_question_word(self, at: int) -> bool:
        return self._get_unused_word(at - 1) in (
            GrammarWord.WHICH,
            GrammarWord.LIST,
            GrammarWord.ONLY,
            GrammarWord.DISTINCT,
            GrammarWord.COUNT,
            GrammarWord.TOTAL_COUNT,
        )

    def _read_number(self, at: int) -> bool:
        sign, first, last = "=", at, at
        if self.spans[at].word is GrammarWord.BETWEEN:
            sign = "between"
        elif self._get_unused_word(at - 1) in COMPARATORS:
            sign, first = COMPARATORS[self.spans[at - 1].word], at - 1  # type: ignore[index]
        elif self._get_unused_word(at + 1) in OR_BEYOND:
            sign, last = OR_BEYOND[self.spans[at + 1].word], at + 1  # type: ignore[index]
        place = next((one for one in (last + 1, first - 1) if len(self._find_columns_at(one)) == 1), None)
        if place is not None:
            if sign == "=" and place == at - 1:
                sign = COMPARED.get(self.spans[place].word, "=")  # type: ignore[arg-type]  # "heavier than 5"
            (column,) = self.spans[place].columns
        elif sign != "=" and len(measured := find_columns_in_unit(self.spans[at].unit, self.table)) == 1:
            (column,) = measured
        else:
            return False
        bounds = convert_bounds(self.spans[at], self.table.columns[column].unit)
        if self.table.columns[column].kind != "number" or bounds is None:
            return False
        self.used.update([*range(first, last + 1), *([] if place is None else [place])])
        self.conditions.append(Condition(column, sign, bounds, self._text(at)))
        return True

    def _read_year(self, at: int) -> bool:
        columns = self.table.year_columns
        beside = [place for place in (at - 1, at + 1) if self._find_columns_at(place) & columns]
        if len(beside) == 1:
            columns = columns & self.spans[beside[0]].columns
        elif not beside:
            columns = frozenset(at for at in columns if set(self.table.list_column_words(at)) <= WHEN_COLUMNS)
        if len(columns) != 1:
            return False
        (column,) = columns
        before = tokenize(self.question[: self.spans[at].start])[-1:]
        if before and before[0].norm in _OPEN:
            return False
        self.used.update([at, *(place for place in beside if not self._is_after_question_word(place))])
        word, sign = self._get_unused_word(at - 1), "between" if self.spans[at].word is GrammarWord.BETWEEN else "="
        if word in COMPARATORS:
            self.used.add(at - 1)
            sign = COMPARATORS[word]
        self.conditions.append(Condition(column, f"year{sign}", get_bounds(self.spans[at]), self._text(at)))
        return True

    def _add_named_column_condition(self, at: int) -> None:
        """Add a condition for a named column: yes ("with nougat") or no; in a column of numbers, 0 ("no alcohol")."""
        (column,) = self.spans[at].columns
        is_negated = self._get_unused_word(at - 1) is GrammarWord.NOT
        kind = self.table.columns[column].kind
        if kind == "boolean" and not self._is_after_question_word(at):
            self.conditions.append(Condition(column, "=", (0.0 if is_negated else 1.0,)))
            self.used.add(at)
        elif kind == "number" and is_negated:
            self.conditions.append(Condition(column, "=", (0.0,), "0"))
            self.used.add(at)
        if at in self.used and is_negated:
            self.used.add(at - 1)

    def _get_only_column(self, at: int) -> int:
        (column,) = self.spans[at].columns
        return column

    def _is_number(self, column: int) -> bool:
        return self.table.columns[column].kind == "number"

    def _asked_column(self, columns: Sequence[int], asks: Sequence[GrammarWord]) -> int | None:
        if columns:
            return self._get_only_column(columns[0]) if len(columns) == 1 else None
        wanted = {GrammarWord.WHO: WHO_COLUMNS, GrammarWord.WHEN: (WHEN_COLUMNS,), GrammarWord.WHERE: (WHERE_COLUMNS,)}
        for called in next((wanted[word] for word in asks if word in wanted), ()):
            names = [self.table.list_column_words(at)[-1:] for at in range(len(self.table.columns))]
            found = [at for at, last in enumerate(names) if not called.isdisjoint(last)]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def _interpret_look_up(
        self, columns: Sequence[int], asks: Sequence[GrammarWord], *, is_single: bool
    ) -> QuestionInterpretation | None:
        if not self.conditions:
            return None
        conditions = tuple(self.conditions)
        if len(columns) == 2 and self._are_joined_by_and(*columns) and not is_single:
            first, second = map(self._get_only_column, columns)
            is_clear = {first, second}.isdisjoint(condition.column for condition in conditions)
            return (
                QuestionInterpretation(TableOperation.LOOK_UP, conditions, answer=first, shown=(second,))
                if is_clear
                else None
            )
        asked = self._asked_column(columns, asks)
        if not columns and asks == [GrammarWord.LIST] and any(span.word in _ROWS for span in self.spans):
            asked = self.table.subject_column
        if asked is None:
            is_open = columns or (asks and not self._has_value_after(GrammarWord.WHICH))
            return None if is_open else QuestionInterpretation(TableOperation.ROWS, conditions)
        if any(condition.column == asked and not condition.is_negated for condition in conditions):
            return None
        is_plural = GrammarWord.LIST in asks or any(self._is_plural(at) for at in columns)
        if is_plural and not is_single:
            return QuestionInterpretation(TableOperation.LIST, conditions, answer=asked)
        return QuestionInterpretation(TableOperation.LOOK_UP, conditions, answer=asked)

    def _are_joined_by_and(self, first: int, second: int) -> bool:
        return second == first + 2 and self.spans[first + 1].word is GrammarWord.AND and first + 1 not in self.used

    def _is_plural(self, at: int) -> bool:
        last = tokenize(self._text(at))[-1].norm
        return make_singular(last) != last and last not in self.table.columns[self._get_only_column(at)].name.casefold()

    def _interpret_count(
        self, columns: Sequence[int], *, is_total: bool = False, is_distinct: bool = False
    ) -> QuestionInterpretation | None:
        # Without a condition, "How many products are there?" may be about another table.
        words = _ROWS if self.conditions else {GrammarWord.ROWS}
        rows = [at for at, span in enumerate(self.spans) if span.word in words]
        if (
            not columns
            and not is_distinct
            and (
                self._has_value_after(GrammarWord.COUNT, GrammarWord.TOTAL_COUNT)
                or (rows and self._has_word_before(rows[0], GrammarWord.COUNT))
            )
        ):
            return QuestionInterpretation(TableOperation.COUNT, tuple(self.conditions))
        if len(columns) != 1 or not self._has_word_before(columns[0], GrammarWord.COUNT):
            return None
        column = self._get_only_column(columns[0])
        conditions = tuple(self.conditions)
        if any(one.column == column and one.operator == "is" and not one.is_negated for one in conditions):
            return None
        if not self._is_number(column) or column in self.table.year_columns:
            return QuestionInterpretation(TableOperation.COUNT, conditions, answer=column, is_distinct=is_distinct)
        if self.table.is_ordinal_column(column) or is_distinct:
            return None
        if is_total:
            return QuestionInterpretation(TableOperation.SUM, conditions, order=column)
        return QuestionInterpretation(TableOperation.LOOK_UP, conditions, answer=column) if conditions else None

    def _has_value_after(self, *words: GrammarWord) -> bool:
        return any(
            before.word in words
            and one.kind is QuestionSpanKind.VALUE
            and self.question[before.end : one.start].isspace()
            for before, one in pairwise(self.spans)
        )

    def _has_word_before(self, at: int, word: GrammarWord) -> bool:
        before = [span for place, span in enumerate(self.spans) if place < at and place not in self.used]
        while before and before[-1].word in (GrammarWord.TOTAL, GrammarWord.DISTINCT):
            before.pop()
        return bool(before) and before[-1].word in (word, GrammarWord.TOTAL_COUNT)

    def _interpret_aggregate(self, columns: Sequence[int], operation: TableOperation) -> QuestionInterpretation | None:
        if len(columns) != 1:
            return None
        column = self._get_only_column(columns[0])
        if not self._is_number(column) or self.table.is_ordinal_column(column):
            return None
        # "What does salary mean?" does not ask for a mean.
        if operation is TableOperation.MEAN and not self._has_word_before(columns[0], GrammarWord.MEAN):
            return None
        return QuestionInterpretation(operation, tuple(self.conditions), order=column)

    def _interpret_ranking(
        self, columns: Sequence[int], asks: Sequence[GrammarWord], word: GrammarWord
    ) -> QuestionInterpretation | None:
        ranking = [
            at
            for at in columns
            if self.spans[at].word is word
            or (at and self.spans[at - 1].word is word and self.spans[at - 1].kind is QuestionSpanKind.WORD)
        ]
        if len(ranking) == 1:
            order = self._get_only_column(ranking[0])
        elif not ranking and len(self.table.rankable_columns) == 1:
            order = self.table.rankable_columns[0]
        else:
            return None
        if not self._is_number(order) or self.table.is_ordinal_column(order):
            return None
        others = [at for at in columns if at not in ranking]
        if any(at and not self._is_after_question_word(at) for at in others):
            return None
        answer = self._asked_column(others, asks)
        if answer is None and not others:
            if not asks or (set(asks) == {GrammarWord.WHICH} and ranking and self.spans[ranking[0]].word is word):
                answer = self.table.subject_column  # "The cheapest" asks for the subject.
            elif set(asks) == {GrammarWord.WHICH} and self._text(0).casefold() in _WHAT:
                answer = order  # The question is like "what is the highest price".
        if answer is None or any(one.column in (answer, order) and not one.is_negated for one in self.conditions):
            return None
        return QuestionInterpretation(_EXTREMES[word], tuple(self.conditions), answer=answer, order=order)

    def _interpret_comparison(self, columns: Sequence[int], word: GrammarWord | None) -> QuestionInterpretation | None:
        """Interpret a comparison of two rows, as in "who has more gold, Spain or Italy".

        The result is None if the question does not compare two rows.
        """
        named = [condition for condition in self.conditions if condition.operator in ("is", "year=")]
        numbers = [at for at in columns if self._is_number(self._get_only_column(at))]
        others = [self._get_only_column(at) for at in columns if at not in numbers]
        if len(named) != 2 or len(self.conditions) != 2 or len(numbers) != 1 or any(one.is_negated for one in named):
            return None
        column = named[0].column
        if named[1].column != column or any(other != column for other in others):
            return None
        order = self._get_only_column(numbers[0])
        if self.table.is_ordinal_column(order):
            return None
        return QuestionInterpretation(
            TableOperation.COMPARE, tuple(named), answer=column, order=order, is_least=word is GrammarWord.LEAST
        )
