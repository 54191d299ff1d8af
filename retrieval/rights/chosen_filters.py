"""Convert a reader's chosen filters from one form to another: HTML form, link, or JSON of the API's `filters`.

An example of the JSON:

`{"languages": ["en"], "metadata_any": {"author": ["Jansen"]}, "dates": [{"field": "added", "from": "2026-01-01"}]}`
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import QueryDict
from django.utils.formats import date_format
from django.utils.timezone import localdate
from django.utils.translation import gettext as _

from retrieval.models import MarkedFilter
from retrieval.models.collection import BUILT_IN_FILTERS
from retrieval.rights.offered_filters import (
    LONGEST_VALUE,
    OfferedFilter,
    OfferedValue,
    get_value_label,
    write_plain_number,
)
from retrieval.types import DateRange, NumberRange

Kind = MarkedFilter.Kind
# Prefix of form fields and URL parameters: `filter.author`, `filter.added.from`.
PREFIX = "filter."
MOST_CHOSEN = 50
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


@dataclass(frozen=True, slots=True)
class FilterChip:
    """A label for a chosen value or range of a filter, with a button to remove it.

    ``token`` is the argument of :func:`remove_chip`.
    """

    field: str
    label: str
    text: str
    token: str


@dataclass(frozen=True, slots=True)
class FormFilter:
    """A filter as a form shows it.

    Each of ``options`` is a value, and whether it is chosen. ``first`` and ``last`` are the ends of the chosen range.
    """

    offered: OfferedFilter
    options: tuple[tuple[OfferedValue, bool], ...] = ()
    first: str = ""
    last: str = ""

    @property
    def name(self) -> str:
        return PREFIX + self.offered.field

    @property
    def is_chosen(self) -> bool:
        return bool(self.first or self.last) or any(chosen for _value, chosen in self.options)


def to_json(restrictions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the restrictions of a search as JSON, without empty ones."""
    written = {**restrictions}
    for part, first, last in (("dates", "first", "last"), ("numbers", "least", "most")):
        written[part] = [
            {
                "field": each.field,
                **{
                    side: end.isoformat() if isinstance(end, date) else end
                    for side, end in (("from", getattr(each, first)), ("to", getattr(each, last)))
                    if end is not None
                },
            }
            for each in restrictions.get(part) or ()
        ]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in written.items() if value}


def build_search_restrictions(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of ``build_filters`` for ``chosen``, the filters as the API receives them."""
    restrictions = {name: tuple(value) if isinstance(value, list) else value for name, value in chosen.items()}
    if "dates" in chosen:
        restrictions["dates"] = tuple(
            DateRange(each["field"], *(_read_day(each.get(side, "")) for side in ("from", "to")))
            for each in chosen["dates"]
        )
    if "numbers" in chosen:
        restrictions["numbers"] = tuple(
            NumberRange(each["field"], each.get("from"), each.get("to")) for each in chosen["numbers"]
        )
    return restrictions


def has_filters(data: QueryDict) -> bool:
    return "filters" in data or any(name.startswith(PREFIX) for name in data)


def read_chosen_filters(data: QueryDict, offered: Iterable[OfferedFilter]) -> tuple[dict[str, Any], str]:
    """Return the filters chosen in a form or link, and a sentence on an invalid value, or "".

    Invalid values, and filters that are not ``offered``, are ignored.
    """
    chosen: dict[str, Any] = {}
    problem = ""
    for each in offered:
        name = PREFIX + each.field
        if each.kind == Kind.VALUES:
            values = [value.replace("\0", "").strip()[:LONGEST_VALUE] for value in data.getlist(name)]
            if kept := list(dict.fromkeys(filter(None, values)))[:MOST_CHOSEN]:
                _add_values(chosen, each, kept)
            continue
        try:
            first, last = _read_range(data, name, each.kind)
            if first is not None or last is not None:
                made = (DateRange if each.kind == Kind.DATES else NumberRange)(each.field, first, last)
                chosen.setdefault(each.filters_key, []).extend(to_json({each.filters_key: [made]})[each.filters_key])
        except ValueError:
            said = _("Check the filter “%s”: one of its ends cannot be read, or the last comes before the first.")
            problem = problem or said % each.label
    return chosen, problem


def _add_values(chosen: dict[str, Any], offered: OfferedFilter, texts: Sequence[str]) -> None:
    if offered.filters_key != "metadata_any":
        chosen[offered.filters_key] = list(texts)
        return
    # A form sends "5" as text, but the metadata may contain the number 5.
    values = [value for text in texts for value in (text, *_read_scalar(text))]
    chosen.setdefault("metadata_any", {})[offered.field] = values


def _read_scalar(text: str) -> Iterator[object]:
    if text in ("true", "false") or _NUMBER.fullmatch(text):
        try:
            yield json.loads(text)
        except ValueError:
            return  # a number with a leading zero is not JSON


def _read_range(data: QueryDict, name: str, kind: str) -> tuple[Any, Any]:
    today = localdate()
    match data.get(f"{name}.quick"):
        case "year":
            return today.replace(month=1, day=1), None
        case "months":
            return today - timedelta(days=365), None
        case "days":
            return today - timedelta(days=30), None
    read = _read_day if kind == Kind.DATES else _read_number
    first, last = (read(data.get(f"{name}.{side}", "").strip()) for side in ("from", "to"))
    return first, last


def _read_day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


def _read_number(text: str) -> float | None:
    if not text:
        return None
    number = float(text.replace(",", "."))
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _iterate_chosen_values(chosen: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for part, field in (("languages", "language"), ("formats", "format")):
        if chosen.get(part):
            yield part, field, chosen[part]
    for field, values in chosen.get("metadata_any", {}).items():
        yield "metadata_any", field, values
    for field, value in chosen.get("metadata", {}).items():
        yield "metadata", field, value if isinstance(value, list) else [value]
    for part in ("dates", "numbers"):
        for each in chosen.get(part, ()):
            yield part, each["field"], each


def keep_offered_filters(chosen: Mapping[str, Any], offered: Iterable[OfferedFilter]) -> dict[str, Any]:
    known = {(each.filters_key, each.field) for each in offered}
    kept: dict[str, Any] = {}
    for part, field, value in _iterate_chosen_values(chosen):
        if (part, field) not in known:
            continue
        if part == "metadata_any":
            kept.setdefault(part, {})[field] = value
        elif part in ("dates", "numbers"):
            kept.setdefault(part, []).append(value)
        else:
            kept[part] = value
    return kept


def list_chips(chosen: Mapping[str, Any], offered: Iterable[OfferedFilter]) -> list[FilterChip]:
    labels = {each.field: each.label for each in offered}
    chips = []
    for part, field, value in _iterate_chosen_values(chosen):
        built_in = BUILT_IN_FILTERS.get(field)
        label = labels.get(field) or (str(built_in[0]) if built_in else field)
        if part in ("dates", "numbers"):
            chips.append(FilterChip(field, label, _describe_range(part, value), f"{field}="))
            continue
        for text in dict.fromkeys(map(_format_value, value)):
            chips.append(FilterChip(field, label, get_value_label(field, text), f"{field}={text}"))
    if named := chosen.get("documents"):
        chips.append(FilterChip("", _("Documents"), str(len(named)), ""))
    return chips


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _describe_range(part: str, ends: Mapping[str, Any]) -> str:
    def write(end: Any) -> str:
        return (
            date_format(date.fromisoformat(end), "DATE_FORMAT") if part == "dates" else write_plain_number(float(end))
        )

    first, last = ends.get("from"), ends.get("to")
    if first is not None and last is not None:
        return _("%(first)s to %(last)s") % {"first": write(first), "last": write(last)}
    return _("from %s") % write(first) if first is not None else _("up to %s") % write(last)


def remove_chip(chosen: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return the chosen filters without the value or range to which ``token`` belongs."""
    left: dict[str, Any] = {}
    for part, field, value in _iterate_chosen_values(chosen):
        if part in ("dates", "numbers"):
            if token != f"{field}=":
                left.setdefault(part, []).append(value)
            continue
        kept = [each for each in value if token != f"{field}={_format_value(each)}"]
        if not kept:
            continue
        if part == "metadata_any":
            left.setdefault(part, {})[field] = kept
        else:
            left[part] = kept
    return left


def build_query_parameters(chosen: Mapping[str, Any]) -> QueryDict:
    query = QueryDict(mutable=True)
    for part, field, value in _iterate_chosen_values(chosen):
        if part in ("dates", "numbers"):
            for side in ("from", "to"):
                if value.get(side) is not None:
                    query[f"{PREFIX}{field}.{side}"] = write_plain_number(value[side])
        else:
            query.setlist(PREFIX + field, list(dict.fromkeys(map(_format_value, value))))
    return query


def build_form(offered: Iterable[OfferedFilter], chosen: Mapping[str, Any]) -> list[FormFilter]:
    """Return the offered filters, with chosen values marked. Chosen values that are not offered come first."""
    held = {(part, field): value for part, field, value in _iterate_chosen_values(chosen)}
    shown = []
    for each in offered:
        value = held.get((each.filters_key, each.field))
        if each.kind == Kind.VALUES:
            texts = dict.fromkeys(map(_format_value, value or ()))
            known = {option.value for option in each.values}
            numbers = {_format_value(number) for text in texts if text in known for number in _read_scalar(text)}
            others = [
                OfferedValue(text, get_value_label(each.field, text), 0)
                for text in texts
                if text not in known and text not in numbers
            ]
            options = tuple((option, option.value in texts) for option in (*others, *each.values))
            shown.append(FormFilter(each, options))
        else:
            ends = value or {}
            first, last = (str(ends[side]) if ends.get(side) is not None else "" for side in ("from", "to"))
            if each.kind == Kind.NUMBERS:
                first, last = (write_plain_number(float(end)) if end else "" for end in (first, last))
            shown.append(FormFilter(each, first=first, last=last))
    return shown
