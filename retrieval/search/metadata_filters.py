"""Validation of a document's metadata, and of filters on it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import date
from typing import cast

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from retrieval.types import DateRange

LONGEST_METADATA = 20_000
LONGEST_KEY = 200
# Each value of a list is two conditions in SQL.
MOST_ALTERNATIVES = 50

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def validated_metadata(value: object) -> dict[str, object]:
    """``value``, a JSON object that PostgreSQL can store. Raises: ValidationError, with one sentence."""
    if not isinstance(value, dict):
        raise ValidationError(_('Metadata must be a JSON object, such as {"department": "sales"}.'))
    for leaf in _leaves(value):
        if isinstance(leaf, str) and ("\x00" in leaf or any("\ud800" <= char <= "\udfff" for char in leaf)):
            raise ValidationError(_("Metadata must not hold NUL characters or halves of surrogate pairs."))
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ValidationError(_("Metadata must not hold numbers that are not finite."))
    try:
        too_long = len(json.dumps(value)) > LONGEST_METADATA
    except RecursionError:
        raise ValidationError(_("Metadata must not be nested so deeply.")) from None
    if too_long:
        limit = {"limit": LONGEST_METADATA}
        raise ValidationError(_("Metadata must be shorter than %(limit)d characters."), params=limit)
    return value


def parse_metadata(text: str) -> object:
    """The value of a JSON text. Raises: ValidationError, with one sentence."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError(_("Metadata must be valid JSON.")) from None


def validated_any_of(value: object) -> dict[str, list[object]]:
    """``value``, if it is a JSON object of lists of values. Raises: ValidationError, with one sentence."""
    checked = validated_metadata(value)
    for key, values in checked.items():
        if not isinstance(values, list) or not 1 <= len(values) <= MOST_ALTERNATIVES:
            raise ValidationError(
                _("“%(key)s” must have a list of 1 to %(limit)d values; a document matches with any of them."),
                params={"key": key[:40], "limit": MOST_ALTERNATIVES},
            )
    return cast("dict[str, list[object]]", checked)


def date_range(field: object, first: object, last: object) -> DateRange:
    """The range of dates in a request; None leaves a side open. Raises: ValidationError, with one sentence."""
    if not isinstance(field, str) or not 0 < len(field) <= LONGEST_KEY:
        raise ValidationError(_("A range of dates needs a field: added, changed, or a key of the metadata."))
    validated_metadata({field: None})
    try:
        return DateRange(field, _day(first), _day(last))
    except ValueError as error:
        raise ValidationError(str(error)) from None


def _day(value: object) -> date | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        raise ValidationError(_("A date must be written as YYYY-MM-DD, such as 2026-01-31."))
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValidationError(_("%(day)s is not a day of the calendar."), params={"day": value}) from None


def _leaves(value: object) -> Iterator[object]:
    """Keys, and values without nested ones; without recursion, because the sender chooses the depth."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield from part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        else:
            yield part
