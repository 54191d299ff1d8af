"""What each operation needs to be found in a question, and what it then computes. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.tables.interpretation.columns import columns_of_concept
from retrieval.tables.interpretation.conditions import Condition
from retrieval.tables.interpretation.lexicon import (
    ADJECTIVES,
    ALTERNATIVES,
    ASKS_FOR_ROWS,
    ASKS_FOR_VALUES,
    ROW_WORDS,
    SOFT_WORDS,
    STOP_WORDS,
    Direction,
    Extreme,
)
from retrieval.tables.interpretation.linking import is_same_word
from retrieval.tables.interpretation.links import ColumnLink, KnownTable, Links, ValueLink
from retrieval.tables.reading import CAPTION_SEPARATOR
from retrieval.tables.types import Operation
from retrieval.tables.words import QuestionToken, stem, words_of

# A look-up that fits more rows than this did not name one of them.
_MOST_ROWS_LOOKED_UP = 12
_MOST_COLUMNS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Interpretation:
    """``entities`` are the rows that are named, ``targets`` the columns asked for, ``order`` the one that ranks."""

    operation: Operation
    entities: tuple[ValueLink, ...]
    targets: tuple[int, ...]
    conditions: tuple[Condition, ...]
    order: int | None
    confidence: float


@dataclass(frozen=True, slots=True)
class FoundExtreme:
    """``place`` is the token; the columns that its adjective names, if it names any."""

    place: int
    extreme: Extreme
    columns: tuple[int, ...]
    is_comparative: bool


@dataclass(slots=True)
class QuestionReader:
    links: Links
    table: KnownTable
    mentions: Sequence[ColumnLink]
    conditions: tuple[Condition, ...]
    entities: list[ValueLink]
    of_values: list[ValueLink]

    def compare(self, extreme: FoundExtreme | None, compares: bool) -> Interpretation | None:
        columns = {value.column for value in self.entities}
        targets = self._targets() or (extreme.columns[:1] if extreme else ())
        if len(columns) != 1 or not targets or self.of_values:
            return None
        alternatives = any(token.norm in ALTERNATIVES - {"and", "en"} for token in self.links.tokens)
        operation = Operation.COMPARE if compares or alternatives or extreme else Operation.LOOK_UP
        return self._make(operation, entities=tuple(self.entities), targets=targets)

    def look_up(self, extreme: FoundExtreme | None, counts: bool) -> Interpretation | None:
        entity = self.entities[0]
        targets = self._targets() or (extreme.columns[:1] if extreme else ())
        targets = targets or tuple(condition.column for condition in self.conditions if condition.is_yes)
        if not targets or len(entity.texts) > _MOST_ROWS_LOOKED_UP:
            return None
        kept = tuple(condition for condition in self.conditions if condition.column not in targets)
        conditions = (*kept, *self._value_conditions(()))
        return self._make(Operation.LOOK_UP, entities=(entity,), targets=targets, conditions=conditions)

    def rank(self, extreme: FoundExtreme) -> Interpretation | None:
        targets = self._targets()
        ranked = [column for column in targets if self.table.columns[column].kind in ("number", "date")]
        order = ranked[0] if ranked else extreme.columns[0] if extreme.columns else None
        if order is None:
            return None
        direction = extreme.extreme.direction
        if extreme.extreme.reversed_on & set(self.table.column_stems[order]):
            direction = Direction(-direction)
        operation = Operation.MOST if direction is Direction.MOST else Operation.LEAST
        conditions = (*self.conditions, *self._value_conditions(self.entities))
        targets = (order, *(column for column in targets if column != order))
        return self._make(operation, targets=targets, conditions=conditions, order=order)

    def aggregate(self, operation: Operation) -> Interpretation | None:
        targets = tuple(column for column in self._targets() if self.table.columns[column].kind == "number")
        if len(targets) != 1:
            return None
        conditions = (*self.conditions, *self._value_conditions(self.entities))
        return self._make(operation, targets=targets, conditions=conditions)

    def count(self) -> Interpretation | None:
        conditions = (*self.conditions, *self._value_conditions(self.entities))
        if self._targets() or not (conditions or self._names_rows()):
            return None
        if len(self.entities) == 1 and len(self.entities[0].texts) == 1:
            # There is one of it: how many there are is asked of a column of stocks.
            in_stock = columns_of_concept("stock", self.table)
            return (
                self._make(Operation.LOOK_UP, entities=tuple(self.entities), targets=tuple(in_stock[:1]))
                if in_stock
                else None
            )
        return self._make(Operation.COUNT, targets=(), conditions=conditions)

    def list(self) -> Interpretation | None:
        conditions = (*self.conditions, *self._value_conditions(self.entities))
        targets = self._targets()
        if not conditions:
            whole = targets and self._asks_for_values() and self._names_heading()
            return self._make(Operation.LOOK_UP, targets=targets) if whole else None
        if not targets and not self.of_values and not self.conditions and all(len(e.texts) == 1 for e in self.entities):
            return self._show_row()
        compares = any(condition.operator in ("<", "<=", ">", ">=") for condition in self.conditions)
        if not (self._names_rows() or self._asks_for_rows() or targets or compares):
            return None
        if targets and not self.links.names_key:
            return self._make(Operation.LOOK_UP, targets=targets, conditions=conditions)
        return self._make(Operation.LIST, targets=targets, conditions=conditions)

    def _show_row(self) -> Interpretation | None:
        """A row of a short table that is named, of which nothing is asked but what the heading says."""
        if len(self.entities) != 1 or not self._names_heading() or len(self.table.columns) > _MOST_COLUMNS_SHOWN:
            return None
        others = tuple(at for at in range(len(self.table.columns)) if at != self.table.key)
        return self._make(Operation.LOOK_UP, entities=tuple(self.entities), targets=others)

    def _targets(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(column for mention in self.mentions for column in mention.columns))

    def _names_rows(self) -> bool:
        return bool(self.links.names_key or self.links.names_caption) or any(
            token.stem in ROW_WORDS for token in self.links.tokens
        )

    def _names_heading(self) -> bool:
        """Whether the question names the heading of a short table: all of its rows are asked for."""
        heading = {stem(word) for word in words_of(self.table.caption.rsplit(CAPTION_SEPARATOR, 1)[-1])}
        of_columns = {at for mention in self.mentions for at in mention.tokens}
        named = any(
            is_same_word(token.stem, word)
            for at, token in enumerate(self.links.tokens)
            if at not in of_columns and not _is_idle(token)
            for word in heading
        )
        return named and self.table.row_count <= _MOST_ROWS_LOOKED_UP

    def _asks_for_values(self) -> bool:
        norms = [token.norm for token in self.links.tokens]
        at = next((at for at, norm in enumerate(norms[:2]) if norm in ASKS_FOR_VALUES), None)
        if at is None:
            return False
        # "How much" and "how long" ask for a value, "how do I" does not.
        degree = norms[at + 1] if at + 1 < len(norms) else ""
        return norms[at] not in ("how", "hoe") or degree in ADJECTIVES or degree == "much"

    def _asks_for_rows(self) -> bool:
        return any(token.norm in ASKS_FOR_ROWS for token in self.links.tokens[:3])

    def _value_conditions(self, entities: Sequence[ValueLink]) -> tuple[Condition, ...]:
        """The values that are named, as conditions on their columns."""
        return tuple(Condition(value.column, "in", value.texts, value.words) for value in (*self.of_values, *entities))

    def _make(
        self,
        operation: Operation,
        *,
        entities: tuple[ValueLink, ...] = (),
        targets: tuple[int, ...],
        conditions: tuple[Condition, ...] | None = None,
        order: int | None = None,
    ) -> Interpretation:
        qualities = [value.quality for value in self.links.values]
        qualities += [mention.quality for mention in self.mentions]
        ambiguous = sum(len(mention.columns) > 2 for mention in self.mentions)
        confidence = min(qualities, default=1.0) * 0.5**ambiguous
        conditions = self.conditions if conditions is None else conditions
        return Interpretation(operation, entities, targets, conditions, order, confidence)


def _is_idle(token: QuestionToken) -> bool:
    return token.norm in STOP_WORDS or token.stem in SOFT_WORDS
