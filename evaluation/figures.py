from __future__ import annotations

from datetime import date

from django.template.defaultfilters import floatformat
from django.utils.formats import date_format


def format_fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """Return the number with ``digits`` decimals and thousands separators; with + or - in front if ``signed``."""
    written = floatformat(value, f"{digits}g")
    return f"+{written}" if signed and not written.startswith("-") else written


def format_whole_number(value: float) -> str:
    return format_fixed(value, 0)


def format_percent(share: float | None, digits: int = 1) -> str:
    return "–" if share is None else f"{format_fixed(100 * share, digits)}%"


def format_day_and_month(day: date) -> str:
    """Return the day and the short name of the month, such as 23 Oct or 23 okt."""
    # Django's full names of months begin with a capital only if the language requires it.
    has_capital = date_format(day, "F")[:1].isupper()
    return date_format(day, "j M" if has_capital else "j b")
