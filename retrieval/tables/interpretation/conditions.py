"""Conditions on rows: "more than 12 litres", "without chocolate", "since 2000", "no fatal accident". PURE."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from retrieval.tables.cells import CellValue, read_digits
from retrieval.tables.interpretation.columns import columns_of_concept, in_period
from retrieval.tables.interpretation.concepts import UNITS
from retrieval.tables.interpretation.lexicon import COMPARATORS, EXTREMES, NEGATIONS, STOP_WORDS
from retrieval.tables.interpretation.links import ColumnLink, KnownTable, Links
from retrieval.tables.words import YEAR, period_of, stem

_NUMBER = re.compile(r"\d[\d.,]*")
_SCALES = {"k": 1e3, "thousand": 1e3, "duizend": 1e3, "million": 1e6, "miljoen": 1e6, "m": 1e6, "billion": 1e9}
_SHORT = re.compile(r"(\d+(?:[.,]\d+)?)(k|m|kg|g|mm|cm|km|ml|l|h|v|w)")
# Tokens between a negation and what it negates, or between a number and its column.
_REACH = 3
_BEFORE_YEARS = frozenset(
    [
        "since",
        "after",
        "before",
        "from",
        "until",
        "till",
        "sinds",
        "na",
        "voor",
        "vanaf",
        "tot",
        "through",
        "during",
        "tijdens",
    ]
)
_YEAR_WORDS = frozenset(stem(word) for word in ("year", "jaar", "season", "seizoen"))
_START_WORDS = frozenset(
    stem(word) for word in ("start", "begin", "from", "founded", "hired", "joined", "since", "opened")
)


@dataclass(frozen=True, slots=True)
class Condition:
    """``operator`` is one of = != < <= > >= in; ``values`` has one value, or those that "in" allows, which
    all hold the question's ``words``.
    """

    column: int
    operator: str
    values: tuple[CellValue, ...]
    words: str = ""

    @property
    def is_yes(self) -> bool:
        return self.operator == "=" and self.values == (True,)


@dataclass(slots=True)
class FoundConditions:
    """``mentions`` are the tokens of the columns that conditions use; ``period`` the years that are named."""

    conditions: list[Condition] = field(default_factory=list)
    mentions: set[tuple[int, ...]] = field(default_factory=set)
    period: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Number:
    """Tokens ``first`` to ``last`` are a number with its unit."""

    first: int
    last: int
    value: float
    unit: str


def find_conditions(links: Links, table: KnownTable, extreme: int | None) -> FoundConditions | None:
    """None when a number stands there that has no part in a condition."""
    found = FoundConditions()
    _find_periods(links, table, found)
    for number in _numbers(links):
        if not _compare_with(number, links, table, found):
            return None
    for mention in links.columns:
        if mention.tokens not in found.mentions:
            _find_yes_or_none(mention, links, table, found, extreme)
    return found


# Years ---------------------------------------------------------------------------------------------------------------


def _find_periods(links: Links, table: KnownTable, found: FoundConditions) -> None:
    places = [
        at
        for at, token in enumerate(links.tokens)
        # Behind the name of a table that has a year in it, another year names another table.
        if links.is_free(at)
        and YEAR.fullmatch(token.norm)
        and not (at - 1 in links.names_caption and table.caption_years)
    ]
    if not places or len(places) > 2:
        return
    years = [int(links.tokens[at].norm) for at in places]
    for at in range(max(0, places[0] - 1), places[-1]):
        if links.tokens[at].norm in _BEFORE_YEARS:
            links.explained.add(at)
    before = {token.norm for token in links.tokens[max(0, places[0] - 2) : places[0]]}
    is_open = len(years) == 1 and bool(before & {"since", "after", "from", "sinds", "na", "vanaf"})
    if any(period_of(column.name) for column in table.columns):
        found.period = (years[0], 9999 if is_open else years[-1])
        links.explained.update(places)
        return
    dated = _column_of_years(table)
    if dated is None:
        return
    if table.columns[dated].kind == "date":
        bounds: tuple[CellValue, CellValue] = (f"{years[0]}-01-01", f"{years[-1]}-12-31")
    else:
        bounds = (float(years[0]), float(years[-1]))
    sign = _comparator(links, places[0])[0] if len(years) == 1 else ""
    if sign in (">", "<"):
        found.conditions.append(Condition(dated, sign, (bounds[1] if sign == ">" else bounds[0],)))
    elif sign in ("<=", ">="):
        found.conditions.append(Condition(dated, sign, (bounds[1] if sign == "<=" else bounds[0],)))
    else:
        found.conditions.append(Condition(dated, ">=", (bounds[0],)))
        found.conditions.append(Condition(dated, "<=", (bounds[1],)))
    links.explained.update(places)
    for mention in links.columns:
        if dated in mention.columns and len(mention.columns) == 1 and abs(mention.first - places[0]) <= _REACH:
            found.mentions.add(mention.tokens)


def _column_of_years(table: KnownTable) -> int | None:
    """The one column that holds years or days: by its name, or the only one of dates."""
    named = [
        at
        for at, column in enumerate(table.columns)
        if column.kind in ("number", "date") and (_YEAR_WORDS | _START_WORDS) & set(table.column_stems[at])
    ]
    dates = [at for at, column in enumerate(table.columns) if column.kind == "date"]
    return named[0] if len(named) == 1 else dates[0] if len(dates) == 1 else named[0] if named else None


# Numbers -------------------------------------------------------------------------------------------------------------


def _numbers(links: Links) -> list[_Number]:
    numbers = []
    tokens = links.tokens
    for at, token in enumerate(tokens):
        if not links.is_free(at):
            continue
        short = _SHORT.fullmatch(token.norm)
        digits = short[1] if short else token.norm if _NUMBER.fullmatch(token.norm) else ""
        value = read_digits(digits) if digits else None
        if value is None:
            continue
        last = at
        unit = short[2] if short else ""
        if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", digits):
            value = float(digits.replace(".", ""))  # nobody types three decimals
        if unit == "k":
            value, unit = value * _SCALES[unit], ""
        if not unit and last + 1 < len(tokens) and links.is_free(last + 1):
            following = tokens[last + 1].norm
            if following in _SCALES and following not in UNITS:
                value, last = value * _SCALES[following], last + 1
                following = tokens[last + 1].norm if last + 1 < len(tokens) else ""
        if not unit and last + 1 < len(tokens) and tokens[last + 1].norm in UNITS:
            unit, last = tokens[last + 1].norm, last + 1
        first = at
        if at and tokens[at - 1].norm in ("€", "$", "£"):
            unit, first = tokens[at - 1].norm, at - 1
        numbers.append(_Number(first, last, value, unit))
    return numbers


def _comparator(links: Links, at: int) -> tuple[str, int]:
    """The sign of the words right before a number, and where they begin."""
    while at and links.tokens[at - 1].norm in ("the", "a", "de", "het"):
        at -= 1
    norms = [token.norm for token in links.tokens[:at]]
    best = ("", at)
    for words, sign in COMPARATORS:
        if tuple(norms[-len(words) :]) == words and at - len(words) < best[1]:
            best = (sign, at - len(words))
    return best


def _compare_with(number: _Number, links: Links, table: KnownTable, found: FoundConditions) -> bool:
    sign, begin = _comparator(links, number.first)
    tokens = links.tokens
    following = [token.norm for token in tokens[number.last + 1 : number.last + 3]]
    if not sign and following[:2] in (["or", "more"], ["of", "meer"]):
        sign = ">="
    elif not sign and following[:2] in (["or", "less"], ["of", "minder"], ["or", "fewer"]):
        sign = "<="
    concept = ""
    if not sign and begin and tokens[begin - 1].norm in ("than", "dan") and begin >= 2:
        extreme = EXTREMES.get(tokens[begin - 2].norm)
        if extreme is not None:
            sign, concept = (">" if extreme.direction > 0 else "<"), extreme.concept
            links.explained.add(begin - 2)
    before = len(found.mentions)
    column = _column_beside(number, concept, links, table, found, is_compared=bool(sign))
    if column is None:
        return False
    value = _convert(number, table.columns[column].unit)
    if value is None:
        return False
    if not sign and _is_lower_bound(number, links):
        found.conditions.append(Condition(column, ">=", (value,)))
    elif not sign and _is_upper_bound(number, links):
        found.conditions.append(Condition(column, "<=", (value,)))
    else:
        found.conditions.append(Condition(column, sign or "=", (value,)))
    if len(found.mentions) > before and number.last + 1 < len(tokens) and sign:
        links.explained.add(number.last + 1)  # what is counted: "lost more than 8 games"
    links.explained.update(range(begin if sign else number.first, number.last + 1))
    return True


def _is_lower_bound(number: _Number, links: Links) -> bool:
    """The first of two, as in "between 5 and 10"."""
    tokens = links.tokens
    before = tokens[number.first - 1].norm if number.first else ""
    after = tokens[number.last + 1].norm if number.last + 1 < len(tokens) else ""
    return before in ("between", "tussen") and after in ("and", "en")


def _is_upper_bound(number: _Number, links: Links) -> bool:
    norms = [token.norm for token in links.tokens[max(0, number.first - 5) : number.first]]
    return bool(norms) and norms[-1] in ("and", "en") and bool({"between", "tussen"} & set(norms))


def _column_beside(
    number: _Number, concept: str, links: Links, table: KnownTable, found: FoundConditions, *, is_compared: bool
) -> int | None:
    """The column that the number is about: the one named behind it, else before it, else by adjective or unit."""
    usable = [
        mention
        for mention in links.columns
        if any(table.columns[column].kind in ("number", "date") for column in mention.columns)
    ]
    after = [mention for mention in usable if 0 < mention.first - number.last <= _REACH]
    before = [mention for mention in usable if 0 < number.first - mention.tokens[-1] <= _REACH + 2]
    inside = [mention for mention in usable if number.first <= mention.first <= number.last]
    for mention in (*inside, *after, *reversed(before)):
        numeric = [column for column in mention.columns if table.columns[column].kind in ("number", "date")]
        narrowed = in_period([replace(mention, columns=tuple(numeric))], found.period, table)
        if narrowed and len(narrowed[0].columns) == 1:
            found.mentions.add(mention.tokens)
            return narrowed[0].columns[0]
    if concept:
        columns = columns_of_concept(concept, table)
        return columns[0] if columns else None
    if number.unit in UNITS:
        kind = UNITS[number.unit][0]
        same = [at for at, column in enumerate(table.columns) if UNITS.get(column.unit, ("",))[0] == kind]
        return same[0] if len(same) == 1 else None
    return None


def _convert(number: _Number, unit: str) -> float | None:
    """The number in the column's unit; None when it cannot be."""
    if not number.unit or number.unit == unit:
        return number.value
    asked, held = UNITS.get(number.unit), UNITS.get(unit)
    if asked is None or held is None:
        # The unit may be a word of the column's name: "12 litres" of ``total_litres``.
        return number.value if held is None else None
    return number.value * asked[1] / held[1] if asked[0] == held[0] else None


# Yes and none --------------------------------------------------------------------------------------------------------


def _find_yes_or_none(
    mention: ColumnLink, links: Links, table: KnownTable, found: FoundConditions, extreme: int | None
) -> None:
    """ "with nougat", "without nougat", "no alcohol"."""
    before = range(max(0, mention.first - _REACH), mention.first)
    negation = next((at for at in before if links.tokens[at].norm in NEGATIONS), None)
    narrowed = in_period([mention], found.period, table)
    if not narrowed or len(narrowed[0].columns) != 1:
        return
    column = narrowed[0].columns[0]
    kind = table.columns[column].kind
    if kind == "boolean":
        found.conditions.append(Condition(column, "=", (negation is None,)))
        found.mentions.add(mention.tokens)
    elif kind == "number" and negation is not None and extreme is None:
        between = [token for token in links.tokens[negation + 1 : mention.first] if token.norm not in STOP_WORDS]
        if not between:
            found.conditions.append(Condition(column, "=", (0.0,)))
            found.mentions.add(mention.tokens)
