"""Numbers and days as the language of the reader writes them, for sentences, tables and charts that Python makes.

Templates have Django's own filters for it. What machines read, such as JSON, CSV and coordinates, is not written here.
"""

from __future__ import annotations

from datetime import date

from django.utils.formats import date_format, number_format


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """The number with exactly so many digits after the point, thousands set apart; ``signed`` also with a plus.

    It is rounded, where Django's number_format cuts digits off. What is rounded to zero has no minus.
    """
    magnitude = f"{abs(value):.{digits}f}"
    is_negative = value < 0 and float(magnitude) != 0
    # The sign is put here, because number_format takes a plus for a digit of the thousands.
    sign = "-" if is_negative else "+" if signed else ""
    return f"{sign}{number_format(magnitude, force_grouping=True)}"


def whole(value: float) -> str:
    """The number without digits after the point."""
    return fixed(value, 0)


def percent(share: float, digits: int, *, signed: bool = False) -> str:
    """The share in percent, with exactly so many digits after the point."""
    return f"{fixed(100 * share, digits, signed=signed)}%"


def day_and_month(day: date) -> str:
    """The day and the abbreviated month: 23 Oct, 23 okt."""
    # Django's short names have a capital in every language, or in none; its full names have one where the language has.
    has_capital = date_format(day, "F")[:1].isupper()
    return date_format(day, "j M" if has_capital else "j b")
