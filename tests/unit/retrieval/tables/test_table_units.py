"""Units by their names, and numbers in other units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.tables.units import UNIT_WORDS, convert_number, find_unit
from retrieval.text.word_lists import read_sections

NAMES = [
    (unit, name)
    for words in read_sections("tables").values()
    for unit, names in words["unit_names"].items()
    for name in names.split()
]
UNITS = sorted(UNIT_WORDS)


@pytest.mark.parametrize(
    ("number", "unit", "wanted", "converted"),
    [
        (5, "kg", "g", 5000),
        (2.5, "kilos", "g", 2500),
        (3, "g", "gram", 3),
        (0.5, "inch", "mm", 12.7),
        (18, "months", "year", 1.5),
        (1, "year", "days", None),
        (90, "minutes", "h", 1.5),
        (100, "euros", "€", 100),
        (100, "euro", "usd", None),
        (5, "kg", "m", None),
        (5, "kg", "", None),
        (20, "percent", "%", 20),
        # A column may have a unit that the site does not know.
        (7, "pieces", "pieces", 7),
        (7, "pieces", "boxes", None),
    ],
)
def test_numbers_are_converted_within_a_quantity(number, unit, wanted, converted):
    assert convert_number(number, unit, wanted) == converted


@given(st.floats(1e-6, 1e9), st.sampled_from(UNITS), st.sampled_from(UNITS))
def test_a_conversion_is_undone_by_its_opposite(number, unit, wanted):
    converted = convert_number(number, unit, wanted)
    back = None if converted is None else convert_number(converted, wanted, unit)
    assert back == (None if converted is None else pytest.approx(number, rel=1e-10))


@pytest.mark.parametrize(("unit", "name"), NAMES)
def test_each_name_means_its_unit(unit, name):
    assert find_unit(name) == unit
    assert find_unit(unit) == unit
