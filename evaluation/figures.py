"""Numbers and days as the language of the reader writes them, for sentences, tables and charts that Python makes.

Templates have Django's own filters for it. What machines read, such as JSON, CSV and coordinates, is not written here.
"""

from __future__ import annotations

from datetime import date

from django.template.defaultfilters import floatformat
from django.utils.formats import date_format


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """The number with exactly so many digits after the point, thousands set apart; ``signed`` also with a plus."""
    written = floatformat(value, f"{digits}g")
    return f"+{written}" if signed and not written.startswith("-") else written


def whole(value: float) -> str:
    """The number without digits after the point."""
    return fixed(value, 0)


def percent(share: float | None, digits: int = 1) -> str:
    """The share in percent, with exactly so many digits after the point; a dash when it is unknown."""
    return "–" if share is None else f"{fixed(100 * share, digits)}%"


def day_and_month(day: date) -> str:
    """The day and the abbreviated month: 23 Oct, 23 okt."""
    # Django's short names have a capital in every language, or in none; its full names have one where the language has.
    has_capital = date_format(day, "F")[:1].isupper()
    return date_format(day, "j M" if has_capital else "j b")
