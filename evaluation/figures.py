"""Numbers and days as the language of the reader writes them, for sentences, tables and charts that Python makes.

Templates have Django's own filters for it. What machines read, such as JSON, CSV and coordinates, is not written here.
"""

from __future__ import annotations

import math
from datetime import date

from django.utils.formats import date_format, number_format


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """The number with exactly so many digits after the point, thousands set apart; ``signed`` also with a plus.

    It is rounded, where Django's number_format cuts digits off. What is rounded to zero has no minus.
    """
    return _write(value, f"{abs(value):.{digits}f}", signed=signed)


def whole(value: float) -> str:
    """The number without digits after the point."""
    return fixed(value, 0)


def percent(share: float, digits: int, *, signed: bool = False) -> str:
    """The share in percent, with exactly so many digits after the point."""
    return f"{fixed(100 * share, digits, signed=signed)}%"


def significant(value: float, digits: int, *, signed: bool = False) -> str:
    """The number rounded to at most so many digits that say something: 1,230 and 0.0123 of 1234.5 and 0.012345.

    Raises: ValueError for NaN and the infinities.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no digits.")
    rounded = f"{abs(value):.{digits - 1}e}"
    power = int(rounded.partition("e")[2])
    text = f"{float(rounded):.{max(0, digits - 1 - power)}f}"
    return _write(value, text.rstrip("0").rstrip(".") if "." in text else text, signed=signed)


def day_and_month(day: date) -> str:
    """The day and the abbreviated month: 23 Oct, 23 okt."""
    # Django's short names have a capital in every language, or in none; its full names have one where the language has.
    has_capital = date_format(day, "F")[:1].isupper()
    return date_format(day, "j M" if has_capital else "j b")


def _write(value: float, magnitude: str, *, signed: bool) -> str:
    """``magnitude``, the digits of the number's absolute value, in the reader's language behind the number's sign."""
    is_negative = value < 0 and float(magnitude) != 0
    # The sign is put here, because number_format takes a plus for a digit of the thousands.
    sign = "-" if is_negative else "+" if signed else ""
    return f"{sign}{number_format(magnitude, force_grouping=True)}"
