"""Meanings of cells and columns, in English and Dutch notation."""

import pytest

from retrieval.tables.table_reading import has_decimal_commas, infer_column_kind, read_boolean, read_date, read_quantity


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("3450", 3450, ""),
        ("-12.5", -12.5, ""),
        (".94099998", 0.94099998, ""),
        ("1,234.50", 1234.5, ""),
        ("1.234,50", 1234.5, ""),
        ("1,234", 1234, ""),
        ("0.125", 0.125, ""),
        ("€ 9,00", 9, "eur"),
        ("$1,099.00", 1099, "usd"),
        ("12 %", 12, "%"),
        ("3 years", 3, "years"),
        ("120k", 120_000, ""),
        ("2.5 million", 2_500_000, ""),
        ("48 000", 48_000, ""),
        ("8,935,112^3", 8_935_112, ""),
        ("$320^1", 320, "usd"),
        ("12 %^a", 12, "%"),
        ("210^3", 210, ""),
    ],
)
def test_a_number_is_read_with_its_unit(text, value, unit):
    quantity = read_quantity(text)
    assert (quantity.value, quantity.unit) == (pytest.approx(value), unit)


@pytest.mark.parametrize(
    "text", ["", "10^6", "5 x 10^6", "MX-9920-W", "G 1 1/2", "14.00 - 16.00", "2 to 4 years", "v1.2.3", "10-29"]
)
def test_text_with_digits_is_no_number(text):
    assert read_quantity(text) is None


def test_a_table_that_writes_decimal_commas_groups_thousands_by_points():
    assert has_decimal_commas(["367.984", "99,21"])
    assert not has_decimal_commas(["367.984", "1,234"])
    assert list(infer_column_kind("inwoners", ["367.984", "3.864"], decimal_commas=True)[1]) == [367_984, 3_864]
    assert list(infer_column_kind("ratio", ["0.125", "3.864"])[1]) == [0.125, 3.864]


def test_amounts_of_money_with_three_digits_behind_the_point_are_thousands():
    assert list(infer_column_kind("salaris", ["€ 3.850", "€ 12.400"])[1]) == [3_850, 12_400]


@pytest.mark.parametrize(
    ("text", "value"), [("yes", True), ("Ja", True), ("TRUE", True), ("nee", False), ("no", False), ("maybe", None)]
)
def test_yes_and_no(text, value):
    assert read_boolean(text) is value


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2020-01-15", "2020-01-15"),
        ("15-01-2020", "2020-01-15"),
        ("3 maart 2021", "2021-03-03"),
        ("March 3, 2021", "2021-03-03"),
        ("31-02-2020", None),
        ("soon", None),
    ],
)
def test_dates(text, day):
    assert read_date(text) == day


def test_columns_of_zeros_and_ones_are_flags():
    assert infer_column_kind("chocolate", ["1", "0", "1"])[0].kind == "boolean"
    assert infer_column_kind("wins", ["1", "0", "2"])[0].kind == "number"


def test_the_unit_comes_from_the_cells_or_else_from_the_name():
    assert infer_column_kind("weight_g", ["3450", "38"])[0].unit == "g"
    assert infer_column_kind("Annual fee", ["$ 25", "free", *["$ 12"] * 18])[0].unit == "usd"
    assert infer_column_kind("Area (km2)", ["12"])[0].unit == "km2"


def test_cells_of_different_units_are_text():
    assert infer_column_kind("Response time", ["20 minutes", "2 hours"])[0].kind == "text"


def test_a_cell_that_is_not_of_the_kind_of_its_column_has_no_value():
    column, values = infer_column_kind("price", [*map(str, range(20)), "on request"])
    assert (column.kind, values[-1]) == ("number", None)
