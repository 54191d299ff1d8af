"""What a computation over a table looks like in an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chat.tables.computed import is_asked_for
from chat.tables.rendering import MOST_ROWS, fill_in_markers, render_result
from retrieval.tables.types import Operation, ResultCell, ResultRow, TableResult


def row(place: int, *cells: tuple[str, str, str]) -> ResultRow:
    """Cells as (column, text, unit); a column of digits is one of numbers."""
    made = (
        ResultCell(column, text, unit, 0, len(text), "number" if text[:1].isdigit() else "text")
        for column, text, unit in cells
    )
    return ResultRow(place, place, place + 1, tuple(made))


WEIGHTS = TableResult(
    operation=Operation.LOOK_UP,
    document_id=1,
    document_title="Catalogue",
    caption="Catalogue",
    columns=("sku", "weight_g"),
    rows=(row(1, ("sku", "MX-1", ""), ("weight_g", "3450", "g")),),
    conditions=(),
    matched=1,
    total=78,
    value="",
    confidence=1.0,
    targets=(1,),
)
TWO = (
    row(1, ("sku", "MX-1", ""), ("weight_g", "3450", "g")),
    row(2, ("sku", "MX_2*", ""), ("weight_g", "5200", "g")),
)


def write(result: TableResult, language: str = "en") -> str:
    return fill_in_markers(render_result(result, language), lambda row: f"[{row.chunk_id}]")


def test_a_look_up_is_one_line_with_the_value_first() -> None:
    assert write(WEIGHTS) == "**3450 g** – weight of MX-1 [1]"
    assert write(WEIGHTS, "nl") == "**3450 g** – weight van MX-1 [1]"
    assert len(write(WEIGHTS)) < 300


def test_without_markers_nothing_is_left_of_their_places() -> None:
    assert fill_in_markers(render_result(WEIGHTS, "en"), lambda _row: "") == "**3450 g** – weight of MX-1"


def test_the_row_that_has_the_most_is_named_first() -> None:
    result = replace(WEIGHTS, operation=Operation.MOST, matched=17, conditions=("category = pump",))
    assert write(result) == "**MX-1** – weight **3450 g**, the highest of 17 rows: category = pump [1]"


def test_rows_that_share_the_first_place_are_shown_as_a_table() -> None:
    rows = tuple(row(place, ("sku", f"A{place}", ""), ("weight_g", "7", "g")) for place in (1, 2))
    text = write(replace(WEIGHTS, operation=Operation.LEAST, rows=rows, matched=9))
    assert text.splitlines()[0] == "2 rows share the lowest weight, **7 g**"
    assert text.splitlines()[-1] == "| A2 | 7 g [2] |"
    assert "more" not in text


def test_a_comparison_has_both_values_and_their_difference() -> None:
    text = write(replace(WEIGHTS, operation=Operation.COMPARE, rows=TWO, matched=2))
    assert text == "weight: MX-1 **3450 g** [1] against MX\\_2\\* **5200 g** [2]; MX\\_2\\* has 1750 g more"


def test_a_count_says_what_it_counted_and_names_some() -> None:
    rows = tuple(row(place, ("sku", f"A{place}", ""), ("nut", "1", "")) for place in range(1, 10))
    counted = replace(
        WEIGHTS, operation=Operation.COUNT, rows=rows, conditions=("nut = yes",), matched=37, total=85, targets=()
    )
    assert write(counted) == ("**37** of 85 rows: nut = yes. A1 [1], A2 [2], A3 [3], A4 [4], A5 [5] and 32 more")
    assert write(replace(counted, rows=(), matched=0)) == "None of 85 rows: nut = yes"
    assert write(replace(counted, rows=(), matched=0), "nl") == "Geen van 85 rijen: nut = yes"


def test_a_list_shows_the_columns_that_differ_and_says_how_many_more_there_are() -> None:
    rows = tuple(
        row(place, ("sku", f"A{place}", ""), ("weight_g", str(place), "g"), ("nut", "1", "")) for place in range(1, 51)
    )
    result = replace(
        WEIGHTS,
        operation=Operation.LIST,
        columns=("sku", "weight_g", "nut"),
        rows=rows,
        conditions=("nut = yes",),
        matched=60,
    )
    lines = write(result).splitlines()
    assert lines[:5] == ["**60** of 78 rows: nut = yes", "", "| sku | weight |", "|---|---|", "| A1 | 1 g [1] |"]
    assert lines[-1] == f"… and {60 - MOST_ROWS} more"
    assert [line.rows for line in render_result(result, "en")][4] == (rows[0],)


def test_a_list_of_one_row_is_a_sentence() -> None:
    result = replace(WEIGHTS, operation=Operation.LIST, conditions=("weight > 3000",))
    assert write(result) == "**MX-1**; weight: **3450 g** – 1 of 78 rows: weight > 3000 [1]"


def test_a_share_below_one_is_shown_as_a_percentage_too() -> None:
    rates = (row(1, ("major", "Nursing", ""), ("Unemployment_rate", "0.177226407", "")),)
    text = write(replace(WEIGHTS, columns=("major", "Unemployment_rate"), rows=rates))
    assert text == "**0.177226407 (17.7 %)** – unemployment rate of Nursing [1]"


def test_a_mean_names_its_rows_and_its_unit() -> None:
    text = write(replace(WEIGHTS, operation=Operation.MEAN, rows=TWO, matched=2, value="4325"))
    assert text == "**4325 g** – mean weight of 2 rows: MX-1 3450 g [1], MX\\_2\\* 5200 g [2]"


def test_numbers_in_brackets_of_a_cell_are_no_markers() -> None:
    noted = (row(1, ("sku", "A", ""), ("note", "see [2]", "")),)
    assert "[2]" not in write(replace(WEIGHTS, columns=("sku", "note"), rows=noted, is_markup=True))


@pytest.mark.parametrize(
    ("question", "value", "is_asked"),
    [
        ("When should I replace the seal?", ("replaces", "SK-9910-W", ""), False),
        ("When should I replace the seal?", ("interval", "every 5 years", ""), True),
        ("When should I replace the seal?", ("interval", "500", "hours"), True),
        ("When should I replace the membrane?", ("weight_g", "2100", "g"), False),
        ("When was it built?", ("year", "1912", ""), True),
        ("Hoe laat mag ik op bezoek komen?", ("bezoekers", "3", ""), False),
        ("Hoe laat mag ik op bezoek komen?", ("bezoekuren", "15.00 – 20.00 uur", ""), True),
        ("What time does it open?", ("floor", "2", ""), False),
        ("Which seal replaces it?", ("replaces", "SK-9910-W", ""), True),
    ],
)
def test_rows_without_a_time_are_no_answer_to_when(question: str, value: tuple[str, str, str], is_asked: bool) -> None:
    result = replace(WEIGHTS, rows=(row(1, ("name", "Ward 1 of 2020", ""), value),))
    assert is_asked_for(result, question) is is_asked


def test_what_a_thing_is_asks_for_no_list() -> None:
    assert not is_asked_for(replace(WEIGHTS, operation=Operation.LIST), "What is a pump?")
    assert is_asked_for(WEIGHTS, "What is a pump?")
