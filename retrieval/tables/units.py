"""Recognise units of numbers by their names, and convert numbers between units of one quantity."""

from __future__ import annotations

from retrieval.text.word_lists import read_sections

# Each unit as a multiple of the first unit of its quantity. A month has no fixed number of days.
_QUANTITIES = (
    {"g": 1.0, "mg": 0.001, "kg": 1_000.0, "t": 1_000_000.0, "lb": 453.59237, "oz": 28.349523125},
    {"m": 1.0, "mm": 0.001, "cm": 0.01, "km": 1_000.0, "inch": 0.0254, "ft": 0.3048, "mile": 1_609.344},
    {"m2": 1.0, "km2": 1_000_000.0, "sqft": 0.09290304},
    {"l": 1.0, "dl": 0.1, "cl": 0.01, "ml": 0.001, "m3": 1_000.0},
    {"s": 1.0, "ms": 0.001, "min": 60.0, "h": 3_600.0, "day": 86_400.0, "week": 604_800.0},
    {"month": 1.0, "year": 12.0},
    {"bar": 1.0, "kpa": 0.01, "psi": 0.0689475729},
    {"w": 1.0, "kw": 1_000.0},
    {"v": 1.0, "mv": 0.001},
    {"a": 1.0, "ma": 0.001},
    {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    {"kb": 1.0, "mb": 1e3, "gb": 1e6, "tb": 1e9},
)
CURRENCY_SIGNS = {"€": "eur", "$": "usd", "£": "gbp"}
CURRENCIES = frozenset(CURRENCY_SIGNS.values())
_OTHERS = frozenset(["%", "c", "db", "degc", "kwh", "lm", "nm", "rpm"])
_NAMES = {
    name: unit
    for words in read_sections("tables").values()
    for unit, names in words.get("unit_names", {}).items()
    for name in names.split()
}
_LABELS = {"eur": "euro", "usd": "dollars", "gbp": "pounds", "percent": "%", "pct": "%"}
UNIT_WORDS = CURRENCIES.union(_OTHERS, _NAMES, _NAMES.values(), *_QUANTITIES)


def find_unit(word: str) -> str:
    """Return the unit that a lower-case word or a sign means, such as "kg" for "kilos"; "" if it means none."""
    unit = CURRENCY_SIGNS.get(word) or _NAMES.get(word, word)
    return unit if unit in UNIT_WORDS else ""


def convert_number(number: float, unit: str, wanted: str) -> float | None:
    """Return the number in the unit ``wanted``; None if the units are of different quantities."""
    unit, wanted = find_unit(unit) or unit, find_unit(wanted) or wanted
    if unit == wanted:
        return number
    for sizes in _QUANTITIES:
        if unit in sizes and wanted in sizes:
            # Twelve digits are exact enough, and hide that 0.1 has no exact binary form.
            return float(f"{number * sizes[unit] / sizes[wanted]:.12g}")
    return None


def add_unit(number: str, unit: str) -> str:
    return f"{number} {_LABELS.get(unit, unit)}" if unit else number
