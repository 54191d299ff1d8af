from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext, gettext_noop

from chat.answering.checking.citations import escape_bracketed_numbers
from retrieval.tables.names import format_column_name, split_name
from retrieval.tables.results import ResultCell, ResultRow, TableOperation, TableResult
from retrieval.tables.table_reading import CAPTION_SEPARATOR, read_quantity
from retrieval.tables.units import add_unit
from retrieval.text.word_lists import read_words

MOST_ROWS = 25
_MOST_EXAMPLES = 5
_SHARES = read_words("tables", "shares")
_PLAIN = re.compile(r"[-+]?[\d.,' \u00a0]+")
_MARKS = re.compile(r"[\\`*_\[\]<|]")
_PHRASES = {
    "look_up": gettext_noop("The {column} of {name} is {value}"),
    "look_up_all": gettext_noop("The {column} of all {matched} rows{where} is {value}"),
    "only": gettext_noop("{name} is the only one of {total} rows{where}"),
    "count": gettext_noop("There are {matched} rows{where}, of {total} in the table"),
    "count_all": gettext_noop("The table has {value} rows"),
    "distinct": gettext_noop("{matched} rows{where} have {value} different values of {column}"),
    "rows": gettext_noop("Rows of the table {caption}{where} ({matched} of {total})"),
    "rows_most": gettext_noop("Rows of the table {caption}{where}, the highest {column} first"),
    "rows_least": gettext_noop("Rows of the table {caption}{where}, the lowest {column} first"),
    "most": gettext_noop("Of {matched} rows{where}, {name} has the highest {column}: {value}"),
    "least": gettext_noop("Of {matched} rows{where}, {name} has the lowest {column}: {value}"),
    "is_most": gettext_noop("The highest {column} of {matched} rows{where} is {value} ({name})"),
    "is_least": gettext_noop("The lowest {column} of {matched} rows{where} is {value} ({name})"),
    "sum": gettext_noop("The {column} of {matched} rows{where} is {value} in total"),
    "mean": gettext_noop("The mean {column} of {matched} rows{where} is {value}"),
    "more": gettext_noop("{name} has the higher {column}: {value}; {other} has {less}"),
    "less": gettext_noop("{name} has the lower {column}: {value}; {other} has {less}"),
    "where": gettext_noop(" where {conditions}"),
    "and": gettext_noop(" and "),
    "further": gettext_noop(" and {count} more"),
}


def render_result(result: TableResult, language: str, get_marker: Callable[[ResultRow], str]) -> str:
    """Render the result as Markdown, in ``language`` if the site has a translation, or else in English.

    ``get_marker`` returns the marker of a row, or "".
    """
    with translation.override(language if language in dict(settings.LANGUAGES) else "en"):
        return "\n".join(_Writer(result, get_marker).write_lines())


def format_table_cell(cell: ResultCell, *, is_share: bool, is_markup: bool) -> str:
    """Render a table cell with its unit of measure. A share below 1 is also shown as a percentage."""
    text = cell.text.strip()
    if cell.kind == "boolean" and text in ("0", "1"):
        return gettext("yes") if text == "1" else gettext("no")
    if not text:
        return "–"
    if not _PLAIN.fullmatch(text):
        return escape_bracketed_numbers(text) if is_markup else escape_bracketed_numbers(_escape(text))
    number = read_quantity(text)
    if is_share and number is not None:
        return f"{text} ({100 * number.value:.1f} %)"
    return add_unit(text, cell.unit)


class _Writer:
    def __init__(self, result: TableResult, get_marker: Callable[[ResultRow], str]) -> None:
        self._result = result
        self._marker_of = get_marker
        self._shares = {at for at in range(1, len(result.columns)) if self._is_proportion_column(at)}

    def write_lines(self) -> list[str]:
        match self._result.operation:
            case TableOperation.COUNT | TableOperation.LIST | TableOperation.ROWS:
                return self._write_rows()
            case TableOperation.SUM | TableOperation.MEAN:
                return [self._write_sentence(self._result.operation.value, ends=True, value=self._format_total())]
            case TableOperation.COMPARE:
                return [self._write_comparison()]
            case TableOperation.MOST | TableOperation.LEAST:
                phrase = f"{'is_' if self._result.is_value else ''}{self._result.operation.value}"
                return [self._write_sentence(phrase, ends=True)]
        return self._write_found_values()

    def _write_found_values(self) -> list[str]:
        result = self._result
        if len(result.rows) > 1:
            return [self._write_sentence("look_up_all" if result.targets else "count"), *self._write_table()]
        if not result.targets:
            return [self._write_sentence("only", ends=True)]
        row = result.rows[0]
        cells = [{"column": self._format_column(at), "value": self._format_cell(row, at)} for at in result.targets]
        return [" ".join(self._write_sentence("look_up", ends=True, **cell) for cell in cells)]

    def _write_rows(self) -> list[str]:
        result = self._result
        if result.operation is TableOperation.ROWS:
            if len(result.rows) == 1:
                return [self._write_record(result.rows[0])]
            phrase = ("rows_least" if result.is_least else "rows_most") if result.is_ordered else "rows"
        elif result.operation is TableOperation.COUNT:
            is_distinct = result.value != str(result.matched)
            return [
                self._write_sentence(
                    "distinct" if is_distinct else "count" if result.conditions else "count_all", ends=True
                )
            ]
        else:
            phrase = "count" if result.conditions else "count_all"
        return [self._write_sentence(phrase), *self._write_table()]

    def _write_record(self, row: ResultRow) -> str:
        filled = [at for at, cell in enumerate(row.cells) if cell.text.strip()]
        shown = {at: f"{self._format_column(at)}: {self._format_cell(row, at)}" for at in filled}
        asked = [f"{shown.pop(at)}{self._write_marker(row)}" for at in self._result.asked if at in shown]
        return "\n\n".join([*asked, f"{'; '.join(shown.values())}{self._write_marker(row)}"])

    def _write_comparison(self) -> str:
        (first, second), target = self._result.rows[:2], self._result.targets[0]
        numbers = [read_quantity(row.cells[target].text) for row in (first, second)]
        is_more = numbers[0] is None or numbers[1] is None or numbers[0].value > numbers[1].value
        text = self._say(
            "more" if is_more else "less",
            column=self._format_column(target),
            name=self._format_cell(first, 0),
            value=f"{self._format_cell(first, target)}{self._write_marker(first)}",
            other=self._format_cell(second, 0),
            less=f"{self._format_cell(second, target)}{self._write_marker(second)}",
        )
        return f"{text}."

    def _write_sentence(self, phrase: str, *, ends: bool = False, **values: object) -> str:
        result = self._result
        known: dict[str, object] = {
            "matched": result.matched,
            "total": result.total,
            "value": result.value,
            "where": self._say("where", conditions=_escape(self._say("and").join(result.conditions)))
            if result.conditions
            else "",
            "caption": _escape(result.caption.rsplit(CAPTION_SEPARATOR, 1)[-1]),
        }
        if result.rows:
            known["name"] = self._format_cell(result.rows[0], 0)
            if result.targets:
                known["value"] = result.value or self._format_cell(result.rows[0], result.targets[0])
        if result.targets:
            known["column"] = self._format_column(result.targets[0])
        text = self._say(phrase, **(known | values))
        if ends:
            return f"{text}{self._write_marker(result.rows[0]) if result.rows else ''}."
        return f"{text}{':' if result.rows else '.'}"

    def _format_total(self) -> str:
        result = self._result
        return add_unit(result.value, result.rows[0].cells[result.targets[0]].unit) if result.rows else result.value

    def _write_table(self) -> list[str]:
        result = self._result
        if not result.rows:
            return []
        columns = [*range(result.name_columns), *self._find_varying_columns()]
        lines = ["", self._write_row([self._format_column(at) for at in columns]), "|" + "---|" * len(columns)]
        shown = result.rows[: _MOST_EXAMPLES if result.is_ordered else MOST_ROWS]
        for row in shown:
            cells = [self._format_cell(row, at) for at in columns]
            cells[-1] += self._write_marker(row)
            lines.append(self._write_row(cells))
        if (further := result.matched - len(shown)) > 0:
            lines += ["", "…" + self._say("further", count=further)]
        return lines

    def _find_varying_columns(self) -> list[int]:
        result = self._result
        return [
            at
            for at in range(result.name_columns, len(result.columns))
            if at in result.targets or len({row.cells[at].text for row in result.rows}) > 1
        ]

    def _say(self, phrase: str, **values: object) -> str:
        return gettext(_PHRASES[phrase]).format(**values)

    def _write_marker(self, row: ResultRow) -> str:
        marker = self._marker_of(row)
        return f" {marker}" if marker else ""

    def _format_column(self, at: int) -> str:
        return _escape(format_column_name(self._result.columns[at]))

    def _format_cell(self, row: ResultRow, at: int) -> str:
        return format_table_cell(row.cells[at], is_share=at in self._shares, is_markup=self._result.is_markup)

    def _is_proportion_column(self, at: int) -> bool:
        if not _SHARES & set(split_name(self._result.columns[at])):
            return False
        numbers = [read_quantity(row.cells[at].text) for row in self._result.rows if row.cells[at].text]
        return bool(numbers) and all(number is not None and 0 <= number.value <= 1 for number in numbers)

    @staticmethod
    def _write_row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    return _MARKS.sub(lambda mark: f"\\{mark.group()}", text)
