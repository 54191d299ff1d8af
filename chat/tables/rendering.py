"""What a computation over a table says, in Markdown: the value first, then the rows that it rests on. PURE."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chat.grounding.citations import quote_for_answer
from retrieval.tables.cells import read_quantity
from retrieval.tables.reading import CAPTION_SEPARATOR
from retrieval.tables.types import Operation, ResultCell, ResultRow, TableResult
from retrieval.tables.words import show_name, words_of_name

# Stands in a line where the marker of a row's source belongs: the first of the line's rows has the first one.
PLACE = "\ue000"
MOST_ROWS = 25
# A count names some of what it counted, in at most this many characters.
_LONGEST_EXAMPLES = 160
_MOST_EXAMPLES = 5
_SHARES = frozenset("rate share percent percentage pct ratio fraction aandeel percentage deel quote".split())  # noqa: SIM905
_SIGNS = {"eur": "euro", "usd": "dollars", "gbp": "pounds", "percent": "%", "pct": "%"}
_PLAIN = re.compile(r"[-+]?[\d.,' \u00a0]+")
_MARKS = re.compile(r"[\\`*_\[\]<|]")
_PHRASES = {
    "en": {
        "of": "{value} – {column} of {name}",
        "and": "; {column}: {value}",
        "rows": "**{matched}** of {total} rows",
        "all": "**{matched}** rows",
        "most": "{name} – {column} {value}, the highest of {matched} rows",
        "least": "{name} – {column} {value}, the lowest of {matched} rows",
        "share_most": "{count} rows share the highest {column}, {value}",
        "share_least": "{count} rows share the lowest {column}, {value}",
        "sum": "**{value}** – total {column} of {matched} rows",
        "mean": "**{value}** – mean {column} of {matched} rows",
        "compare": "{column}: {values}",
        "against": " against ",
        "points": "percentage points",
        "more": "; {name} has {difference} more",
        "same": "; both are the same",
        "among": ": {names}",
        "further": " and {count} more",
        "none": "None of {total} rows",
        "yes": "yes",
        "no": "no",
    },
    "nl": {
        "of": "{value} – {column} van {name}",
        "and": "; {column}: {value}",
        "rows": "**{matched}** van {total} rijen",
        "all": "**{matched}** rijen",
        "most": "{name} – {column} {value}, het hoogste van {matched} rijen",
        "least": "{name} – {column} {value}, het laagste van {matched} rijen",
        "share_most": "{count} rijen delen het hoogste: {column} {value}",
        "share_least": "{count} rijen delen het laagste: {column} {value}",
        "sum": "**{value}** – {column} opgeteld over {matched} rijen",
        "mean": "**{value}** – {column} gemiddeld over {matched} rijen",
        "compare": "{column}: {values}",
        "against": " tegen ",
        "points": "procentpunt",
        "more": "; {name} heeft {difference} meer",
        "same": "; beide zijn gelijk",
        "among": ": {names}",
        "further": " en nog {count}",
        "none": "Geen van {total} rijen",
        "yes": "ja",
        "no": "nee",
    },
}


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of the answer. It holds :data:`PLACE` once for each of ``rows``, in their order."""

    text: str
    rows: tuple[ResultRow, ...] = ()


def render_result(result: TableResult, language: str) -> tuple[TableLine, ...]:
    """The lines of the answer; an empty one parts the sentence from the table."""
    return _Writer(result, _PHRASES.get(language, _PHRASES["en"])).write()


def fill_in_markers(lines: Sequence[TableLine], marker_of: Callable[[ResultRow], str]) -> str:
    """The answer, with the markers of its sources; ``marker_of`` may give an empty one."""
    written = []
    for line in lines:
        text = line.text
        for row in line.rows:
            marker = marker_of(row)
            text = text.replace(PLACE, f" {marker}" if marker else "", 1)
        written.append(text)
    return "\n".join(written)


def show_cell(
    cell: ResultCell, phrases: dict[str, str] | None = None, *, is_share: bool = False, is_markup: bool = False
) -> str:
    """The cell as the document has it, with its unit; a share below one as a percentage too."""
    text = cell.text.strip()
    if phrases and cell.kind == "boolean" and text in ("0", "1"):
        return phrases["yes"] if text == "1" else phrases["no"]
    if not text:
        return "–"
    if not _PLAIN.fullmatch(text):
        return quote_for_answer(text) if is_markup else quote_for_answer(_escape(text))
    number = read_quantity(text)
    if is_share and number is not None:
        return f"{text} ({100 * number.value:.1f} %)"
    unit = _SIGNS.get(cell.unit, cell.unit)
    return f"{text} {unit}" if unit else text


class _Writer:
    def __init__(self, result: TableResult, phrases: dict[str, str]) -> None:
        self._result = result
        self._phrases = phrases
        self._shares = {at for at in range(1, len(result.columns)) if self._is_share(at)}

    def write(self) -> tuple[TableLine, ...]:
        result = self._result
        operation = result.operation
        if operation is Operation.COUNT:
            return (self._count(),)
        if operation is Operation.COMPARE and len(result.rows) == 2 and result.targets:
            return tuple(self._compare(target) for target in result.targets)
        if operation in (Operation.SUM, Operation.MEAN):
            return (self._aggregate(),)
        if len(result.rows) != 1 or (operation is not Operation.LIST and not result.targets):
            return self._rows()
        sentences = {Operation.LIST: self._only_row, Operation.MOST: self._extreme, Operation.LEAST: self._extreme}
        return (sentences.get(operation, self._look_up)(),)

    # Sentences -------------------------------------------------------------------------------------------------------

    def _look_up(self) -> TableLine:
        row, targets = self._result.rows[0], self._result.targets
        text = self._say("of", value=self._bold(row, targets[0]), column=self._column(targets[0]), name=self._name(row))
        for target in targets[1:]:
            text += self._say("and", column=self._column(target), value=self._bold(row, target))
        return TableLine(f"{text}{PLACE}", (row,))

    def _extreme(self) -> TableLine:
        result, row = self._result, self._result.rows[0]
        text = self._say(
            result.operation.value,
            name=f"**{self._name(row)}**",
            column=self._column(result.targets[0]),
            value=self._bold(row, result.targets[0]),
            matched=result.matched,
        )
        for target in result.targets[1:]:
            text += self._say("and", column=self._column(target), value=self._bold(row, target))
        return TableLine(f"{text}{self._conditions()}{PLACE}", (row,))

    def _only_row(self) -> TableLine:
        row = self._result.rows[0]
        text = f"**{self._name(row)}**"
        for target in self._result.targets:
            if target >= self._result.name_columns:
                text += self._say("and", column=self._column(target), value=self._bold(row, target))
        return TableLine(f"{text} – {self._rows_counted().replace('**', '')}{PLACE}", (row,))

    def _compare(self, target: int) -> TableLine:
        rows = self._result.rows
        values = self._say("against").join(f"{self._name(row)} {self._bold(row, target)}{PLACE}" for row in rows)
        text = self._say("compare", column=self._column(target), values=values)
        numbers = [read_quantity(row.cells[target].text) for row in rows]
        if self._result.kinds[target] == "number" and numbers[0] is not None and numbers[1] is not None:
            difference = numbers[0].value - numbers[1].value
            if not difference:
                text += self._say("same")
            else:
                cell = rows[0].cells[target]
                written = f"{abs(difference):.6g}" if abs(difference) < 1e6 else f"{abs(difference):.0f}"
                amount = (
                    f"{100 * abs(difference):.1f} {self._say('points')}"
                    if target in self._shares
                    else self._with_unit(written, cell)
                )
                text += self._say("more", name=self._cell(rows[0 if difference > 0 else 1], 0), difference=amount)
        return TableLine(text, rows)

    def _aggregate(self) -> TableLine:
        result = self._result
        target = result.targets[0]
        value = self._with_unit(result.value, result.rows[0].cells[target]) if result.rows else result.value
        text = self._say(result.operation.value, value=value, column=self._column(target), matched=result.matched)
        examples, rows = self._examples(target)
        return TableLine(f"{text}{self._conditions()}{examples}", rows)

    def _count(self) -> TableLine:
        text = self._rows_counted()
        examples, rows = self._examples(None)
        return TableLine(f"{text}{examples}", rows)

    def _rows_counted(self) -> str:
        result = self._result
        if not result.matched:
            return self._say("none", total=result.total) + self._conditions()
        phrase = "rows" if result.conditions else "all"
        return self._say(phrase, matched=result.matched, total=result.total) + self._conditions()

    def _examples(self, target: int | None) -> tuple[str, tuple[ResultRow, ...]]:
        """The names of the first rows, as far as they are short."""
        rows: list[ResultRow] = []
        names: list[str] = []
        for row in self._result.rows[:_MOST_EXAMPLES]:
            name = self._name(row) + (f" {self._cell(row, target)}" if target is not None else "")
            if rows and sum(map(len, names)) + len(name) > _LONGEST_EXAMPLES:
                break
            rows.append(row)
            names.append(f"{name}{PLACE}")
        if not rows:
            return "", ()
        text = self._say("among", names=", ".join(names))
        if (further := self._result.matched - len(rows)) > 0:
            text += self._say("further", count=further)
        return (f". {text[2:]}" if self._result.conditions else text), tuple(rows)

    # The table -------------------------------------------------------------------------------------------------------

    def _rows(self) -> tuple[TableLine, ...]:
        result = self._result
        if result.operation in (Operation.MOST, Operation.LEAST):
            target = result.targets[0]
            value, column = self._bold(result.rows[0], target), self._column(target)
            phrase = f"share_{result.operation.value}"
            head = self._say(phrase, count=len(result.rows), column=column, value=value) + self._conditions()
        elif result.operation is Operation.LOOK_UP and not result.conditions:
            head = f"**{_escape(result.caption.rsplit(CAPTION_SEPARATOR, 1)[-1])}**"
        else:
            head = self._rows_counted()
        columns = [*range(result.name_columns), *self._varying_columns()]
        lines = [TableLine(head), TableLine("")]
        lines.append(TableLine(self._row([self._column(at) for at in columns])))
        lines.append(TableLine("|" + "---|" * len(columns)))
        for row in result.rows[:MOST_ROWS]:
            cells = [self._cell(row, at) for at in columns]
            cells[-1] += PLACE
            lines.append(TableLine(self._row(cells), (row,)))
        shown = min(len(result.rows), MOST_ROWS)
        matched = len(result.rows) if result.operation in (Operation.MOST, Operation.LEAST) else result.matched
        if matched > shown:
            lines += [TableLine(""), TableLine("…" + self._say("further", count=matched - shown))]
        return tuple(lines)

    def _varying_columns(self) -> list[int]:
        """What was asked for, and of the columns of conditions those that differ from row to row."""
        result = self._result
        return [
            at
            for at in range(result.name_columns, len(result.columns))
            if at in result.targets or len({row.cells[at].text for row in result.rows}) > 1
        ]

    # Parts -----------------------------------------------------------------------------------------------------------

    def _say(self, phrase: str, **values: object) -> str:
        return self._phrases[phrase].format(**values)

    def _conditions(self) -> str:
        return f": {_escape(', '.join(self._result.conditions))}" if self._result.conditions else ""

    def _name(self, row: ResultRow) -> str:
        first, *others = (self._cell(row, at) for at in range(self._result.name_columns))
        return f"{first} ({', '.join(others)})" if others else first

    def _column(self, at: int) -> str:
        return _escape(show_name(self._result.columns[at]))

    def _bold(self, row: ResultRow, at: int) -> str:
        return f"**{self._cell(row, at)}**"

    def _cell(self, row: ResultRow, at: int) -> str:
        return show_cell(row.cells[at], self._phrases, is_share=at in self._shares, is_markup=self._result.is_markup)

    def _with_unit(self, number: str, cell: ResultCell) -> str:
        unit = _SIGNS.get(cell.unit, cell.unit)
        return f"{number} {unit}" if unit else number

    def _is_share(self, at: int) -> bool:
        """Whether all the cells lie between 0 and 1, in a column that says that it holds shares."""
        if not _SHARES & set(words_of_name(self._result.columns[at])):
            return False
        numbers = [read_quantity(row.cells[at].text) for row in self._result.rows if row.cells[at].text]
        return bool(numbers) and all(number is not None and 0 <= number.value <= 1 for number in numbers)

    @staticmethod
    def _row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    """Text in which nothing is taken for Markdown."""
    return _MARKS.sub(lambda mark: f"\\{mark.group()}", text)
