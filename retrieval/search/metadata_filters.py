from __future__ import annotations

import json
import math
from collections.abc import Iterator

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

LONGEST_METADATA = 20_000


def validate_metadata(value: object) -> dict[str, object]:
    """Return ``value`` if it is a JSON object that PostgreSQL can store. Raises: ValidationError, with one sentence."""
    if not isinstance(value, dict):
        raise ValidationError(_('Metadata must be names and values in braces, such as {"department": "sales"}.'))
    for leaf in _iterate_leaves(value):
        if isinstance(leaf, str) and ("\x00" in leaf or any("\ud800" <= char <= "\udfff" for char in leaf)):
            raise ValidationError(_("Metadata must not contain NUL characters or halves of surrogate pairs."))
        if isinstance(leaf, float) and not math.isfinite(leaf):
            raise ValidationError(_("Metadata must not contain numbers that are not finite."))
    try:
        too_long = len(json.dumps(value)) > LONGEST_METADATA
    except RecursionError:
        raise ValidationError(_("Metadata must not be nested so deeply.")) from None
    if too_long:
        limit = {"limit": LONGEST_METADATA}
        raise ValidationError(_("Metadata must be shorter than %(limit)d characters."), params=limit)
    return value


def parse_metadata(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValidationError(_("Metadata must be valid JSON.")) from None


def _iterate_leaves(value: object) -> Iterator[object]:
    """Yield all keys and values. It is not recursive, because API clients can nest metadata deeply."""
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
