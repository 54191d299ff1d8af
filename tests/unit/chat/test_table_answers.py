"""The form of a computation over a table in an answer."""

from dataclasses import replace

import pytest

from chat.answering.computed_text import MOST_ROWS, render_result
from retrieval.tables.results import ResultCell, ResultRow, TableOperation, TableResult


def row(place, *cells):
    """Cells as (column, text, unit); a column of digits is one of numbers."""
    made = (
        ResultCell(column, text, unit, 0, len(text), "number" if text[:1].isdigit() else "text")
        for column, text, unit in cells
    )
    return ResultRow(place, place, place + 1, tuple(made))


WEIGHTS = TableResult(
    operation=TableOperation.LOOK_UP, document_id=1, document_title="Catalogue", caption="Catalogue",
    columns=("sku", "weight_g"), rows=(row(1, ("sku", "MX-1", ""), ("weight_g", "3450", "g")),), conditions=(),
    matched=1, total=78, value="", targets=(1,),
)  # fmt: skip
TWO = (row(1, ("sku", "MX-1", ""), ("weight_g", "3450", "g")), row(2, ("sku", "MX_2*", ""), ("weight_g", "5200", "g")))


def write(result, language="en"):
    return render_result(result, language, lambda row: f"[{row.chunk_id}]")


MOST = {"operation": TableOperation.MOST, "matched": 17, "conditions": ("category = pump",)}
COMPARED = {"operation": TableOperation.COMPARE, "matched": 2}
RATES = (row(1, ("major", "Nursing", ""), ("Unemployment_rate", "0.177226407", "")),)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "The weight of MX-1 is 3450 g [1]."),
        (MOST, "Of 17 rows where category = pump, MX-1 has the highest weight: 3450 g [1]."),
        (MOST | {"is_value": True}, "The highest weight of 17 rows where category = pump is 3450 g (MX-1) [1]."),
        (COMPARED | {"rows": TWO}, "MX-1 has the lower weight: 3450 g [1]; MX\\_2\\* has 5200 g [2]."),
        (COMPARED | {"rows": TWO[::-1]}, "MX\\_2\\* has the higher weight: 5200 g [2]; MX-1 has 3450 g [1]."),
        (
            {"columns": ("major", "Unemployment_rate"), "rows": RATES},
            "The unemployment rate of Nursing is 0.177226407 (17.7 %) [1].",
        ),
    ],
)
def test_a_value_is_one_plain_sentence(changes, sentence):
    assert write(replace(WEIGHTS, **changes)) == sentence


def test_a_sentence_is_in_the_questions_language_and_needs_no_markers():
    assert write(WEIGHTS, "nl") == "weight van MX-1 is 3450 g [1]."
    assert render_result(WEIGHTS, "en", lambda _row: "") == "The weight of MX-1 is 3450 g."


def test_rows_without_a_claim_say_how_they_were_chosen():
    named = replace(WEIGHTS, operation=TableOperation.ROWS, rows=TWO, matched=2, conditions=("category = pump",))
    assert not named.is_computed
    assert WEIGHTS.is_computed
    assert write(named).startswith("Rows of the table Catalogue where category = pump (2 of 78):\n\n| sku | weight |")
    ordered = replace(named, conditions=(), matched=78, is_ordered=True)
    assert write(ordered).startswith("Rows of the table Catalogue, the highest weight first:")
    assert write(replace(ordered, is_least=True)).startswith("Rows of the table Catalogue, the lowest weight first:")
    assert write(replace(named, rows=TWO[:1], matched=1)) == "sku: MX-1; weight: 3450 g [1]"


def test_cells_that_are_asked_for_come_before_the_others_of_a_record():
    cells = (("sku", "MX-1", ""), ("weight_g", "3450", "g"), ("price_eur", "9.50", "eur"), ("notes", "", ""))
    record = replace(
        WEIGHTS,
        operation=TableOperation.ROWS,
        columns=tuple(cell[0] for cell in cells),
        rows=(row(1, *cells),),
        asked=(2,),
    )
    assert write(record) == "price: 9.50 euro [1]\n\nsku: MX-1; weight: 3450 g [1]"


def test_two_cells_of_a_row_are_two_sentences():
    cells = (("sku", "MX-1", ""), ("weight_g", "3450", "g"), ("price_eur", "9.50", "eur"))
    both = replace(WEIGHTS, columns=tuple(cell[0] for cell in cells), rows=(row(1, *cells),), targets=(1, 2))
    assert write(both) == "The weight of MX-1 is 3450 g [1]. The price of MX-1 is 9.50 euro [1]."


def test_a_count_is_a_sentence_that_says_what_it_counted():
    rows = tuple(row(place, ("sku", f"A{place}", ""), ("nut", "1", "")) for place in range(1, 10))
    counted = replace(
        WEIGHTS, operation=TableOperation.COUNT, rows=rows, conditions=("nut = yes",), matched=37, total=85, targets=(),
        value="37",
    )  # fmt: skip
    assert write(counted) == "There are 37 rows where nut = yes, of 85 in the table [1]."
    different = replace(counted, columns=("sku", "nut"), targets=(1,), value="4", conditions=())
    assert write(different) == "37 rows have 4 different values of nut [1]."


def test_a_list_shows_the_columns_that_differ_and_says_how_many_more_there_are():
    rows = tuple(
        row(place, ("sku", f"A{place}", ""), ("weight_g", str(place), "g"), ("nut", "1", "")) for place in range(1, 51)
    )
    result = replace(
        WEIGHTS,
        operation=TableOperation.LIST,
        columns=("sku", "weight_g", "nut"),
        rows=rows,
        conditions=("nut = yes",),
        matched=60,
    )
    lines = write(result).splitlines()
    assert lines[:4] == ["There are 60 rows where nut = yes, of 78 in the table:", "", "| sku | weight |", "|---|---|"]
    assert lines[4] == "| A1 | 1 g [1] |"
    assert lines[-1] == f"… and {60 - MOST_ROWS} more"


def test_a_mean_has_its_unit():
    text = write(replace(WEIGHTS, operation=TableOperation.MEAN, rows=TWO, matched=2, value="4325"))
    assert text == "The mean weight of 2 rows is 4325 g [1]."


def test_no_value_is_set_off_in_bold():
    for operation in TableOperation:
        assert "**" not in write(replace(WEIGHTS, operation=operation, rows=TWO, matched=2, value="2"))


def test_numbers_in_brackets_of_a_cell_are_no_markers():
    noted = (row(1, ("sku", "A", ""), ("note", "see [2]", "")),)
    assert "[2]" not in write(replace(WEIGHTS, columns=("sku", "note"), rows=noted, is_markup=True))
