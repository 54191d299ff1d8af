"""Find the rows that a question names, if it is too unclear to compute a value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from retrieval.tables.grammar import (
    COMPARATORS,
    COMPARED,
    OR_BEYOND,
    Condition,
    QuestionInterpretation,
    convert_bounds,
    find_columns_in_unit,
    get_bounds,
)
from retrieval.tables.known_tables import LoadedTable, normalize_column_word
from retrieval.tables.lexicon import GrammarWord
from retrieval.tables.linking import QuestionSpan, QuestionSpanKind, link_question_to_table
from retrieval.tables.names import keep_letters_and_digits, tokenize
from retrieval.tables.results import TableOperation

# A word that occurs in the names of more columns than this does not select any of these columns.
_MOST_MEANT = 3
_SHORTEST_BEGINNING = 4

Choose = Callable[[Sequence[int]], int]


def interpret_row_selection(question: str, table: LoadedTable, choose: Choose) -> QuestionInterpretation | None:
    """Return the question's conditions on rows, or the column to sort them by; None if it has neither.

    ``choose`` picks one of several possible columns.
    """
    spans = link_question_to_table(question, table, keeps_unclear_words=True) or []
    words = [_find_words(question, span) for span in spans]
    conditions = [
        *_read_values(question, spans),
        *_read_number_bounds(question, spans, words, table, choose),
        *_read_years(question, spans, table),
    ]
    order, is_least = _find_order_column(spans, words, table, choose)
    if not conditions and order is None:
        return None
    taken = {condition.column for condition in conditions} | {order, table.subject_column}
    meant = dict.fromkeys(
        column for run in _join_neighbouring_words(words) for column in _find_best_columns(run, table, _MOST_MEANT)
    )
    shown = tuple(column for column in meant if column not in taken)
    return QuestionInterpretation(TableOperation.ROWS, tuple(conditions), order=order, is_least=is_least, shown=shown)


def uses_every_word(question: str, table: LoadedTable, reading: QuestionInterpretation) -> bool:
    """Return whether ``reading``, an interpretation of the question, leaves no word of the question unused.

    Words in the name of a column count as used. The result is False if the question names no column, bound, order or
    rows ("products").
    """
    spans = link_question_to_table(question, table, keeps_unclear_words=True) or []
    bounds = sum(condition.operator != "is" for condition in reading.conditions)
    if sum(span.kind is QuestionSpanKind.NUMBER for span in spans) > bounds:
        return False
    left = [word for span in spans if span.kind is QuestionSpanKind.OTHER for word in _find_words(question, span)]
    named = [any(_is_word_of_column(word, table, at) for at in range(len(table.columns))) for word in left]
    is_about_table = bool(named) or any(
        span.kind is QuestionSpanKind.COLUMN or span.word in (GrammarWord.ROWS, GrammarWord.GOODS) for span in spans
    )
    return all(named) and (is_about_table or bounds > 0 or reading.order is not None)


def _find_words(question: str, span: QuestionSpan) -> tuple[str, ...]:
    if span.kind not in (QuestionSpanKind.COLUMN, QuestionSpanKind.OTHER):
        return ()
    return tuple(normalize_column_word(token.norm) for token in tokenize(question[span.start : span.end]))


def _join_neighbouring_words(words: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    run: tuple[str, ...] = ()
    for each in [*words, ()]:
        if not each and run:
            yield run
        run = (*run, *each) if each else ()


def _find_best_columns(run: Sequence[str], table: LoadedTable, most: int) -> list[int]:
    held = {at: sum(_is_word_of_column(word, table, at) for word in set(run)) for at in range(len(table.columns))}
    best = max(held.values(), default=0)
    found = [at for at, count in held.items() if count == best]
    return found if best and len(found) <= most else []


def _find_following_columns(
    at: int, spans: Sequence[QuestionSpan], words: Sequence[tuple[str, ...]], table: LoadedTable
) -> list[int]:
    if at + 1 == len(spans) or not words[at + 1]:
        return []
    return list(spans[at + 1].columns) or _find_best_columns(
        next(_join_neighbouring_words(words[at + 1 :])), table, _MOST_MEANT
    )


def _find_columns_before(
    at: int, spans: Sequence[QuestionSpan], words: Sequence[tuple[str, ...]], table: LoadedTable
) -> list[int]:
    if at == 0 or not words[at - 1]:
        return []
    return list(spans[at - 1].columns) or _find_best_columns(words[at - 1], table, _MOST_MEANT)


def _is_word_of_column(word: str, table: LoadedTable, column: int) -> bool:
    begins = len(word) >= _SHORTEST_BEGINNING and keep_letters_and_digits(table.columns[column].name).startswith(word)
    return begins or word in table.list_column_words(column)


def _read_values(question: str, spans: Sequence[QuestionSpan]) -> Iterator[Condition]:
    values: dict[tuple[int, bool], list[QuestionSpan]] = {}
    for at, span in enumerate(spans):
        if span.kind is QuestionSpanKind.VALUE and not span.key.isdigit():
            # If several columns contain this value, the leftmost is used, because left columns usually name the row.
            is_negated = at > 0 and spans[at - 1].word is GrammarWord.NOT
            values.setdefault((min(span.columns), is_negated), []).append(span)
    for (column, is_negated), found in values.items():
        shown = " / ".join(question[span.start : span.end] for span in found)
        yield Condition(column, "is", tuple(span.key for span in found), shown, is_negated)


def _read_number_bounds(
    question: str, spans: Sequence[QuestionSpan], words: Sequence[tuple[str, ...]], table: LoadedTable, choose: Choose
) -> Iterator[Condition]:
    for at, span in enumerate(spans):
        first, last, sign = at, at, ""
        if span.word is GrammarWord.BETWEEN and span.kind is not QuestionSpanKind.WORD:
            sign = "between"
        elif at and spans[at - 1].word in COMPARATORS:
            first, sign = at - 1, COMPARATORS[spans[at - 1].word]  # type: ignore[index]
        elif at + 1 < len(spans) and spans[at + 1].word in OR_BEYOND:
            last, sign = at + 1, OR_BEYOND[spans[at + 1].word]  # type: ignore[index]
        elif at and spans[at - 1].word in COMPARED:
            sign = COMPARED[spans[at - 1].word]  # type: ignore[index]
        is_bound = span.kind is QuestionSpanKind.NUMBER and sign
        beside = _find_following_columns(last, spans, words, table) or _find_columns_before(first, spans, words, table)
        columns = [column for column in beside if table.columns[column].kind == "number"]
        columns = columns or find_columns_in_unit(span.unit, table)
        bounds = {column: _convert_bounds_if_known(span, table.columns[column].unit) for column in columns}
        comparable = [column for column in columns if bounds[column] is not None]
        if is_bound and comparable:
            column = choose(comparable)
            yield Condition(column, sign, bounds[column] or (), question[span.start : span.end])
        elif span.word is GrammarWord.NOT and columns:
            yield Condition(choose(columns), "=", (0.0,), "0")


def _convert_bounds_if_known(span: QuestionSpan, unit: str) -> tuple[float, ...] | None:
    return convert_bounds(span, unit) if unit else get_bounds(span)


def _read_years(question: str, spans: Sequence[QuestionSpan], table: LoadedTable) -> Iterator[Condition]:
    if len(table.year_columns) != 1:
        return
    (column,) = table.year_columns
    for at, span in enumerate(spans):
        if span.kind is QuestionSpanKind.YEAR:
            sign = COMPARATORS.get(spans[at - 1].word, "=") if at else "="  # type: ignore[arg-type]
            sign = "between" if span.word is GrammarWord.BETWEEN else sign
            yield Condition(column, f"year{sign}", get_bounds(span), question[span.start : span.end])


def _find_order_column(
    spans: Sequence[QuestionSpan], words: Sequence[tuple[str, ...]], table: LoadedTable, choose: Choose
) -> tuple[int | None, bool]:
    for at, span in enumerate(spans):
        if span.word not in (GrammarWord.MOST, GrammarWord.LEAST):
            continue
        meant = list(span.columns) or _find_following_columns(at, spans, words, table)
        if columns := [column for column in meant if column in table.rankable_columns]:
            return choose(columns), span.word is GrammarWord.LEAST
    return None, False
