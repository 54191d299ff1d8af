"""The rows and columns of a table that are shown for a question."""

import pytest

from retrieval.tables.choosing import MOST_COLUMNS, MOST_ROWS, WHOLE_ROWS, choose_table_part, score_named_words
from retrieval.tables.names import format_column_label, split_name
from tests.support.tables import known_table

PARTS = known_table(
    """sku,name,category,weight_g,price_eur,stock,thread,notes,first_sold
MX-9920-W,Wet-rotor pump 9920,pump,3450,418.50,3,G 1,,2019-03-01
MX-9940-W,Wet-rotor pump 9940,pump,5200,664.00,2,G 1,,2021-05-02
SK-9940-D,Seal kit for MX-9940,seal kit,142,68.00,9,,,2022-01-09
BV-1015,Ball valve DN 15,valve,210,12.40,8,G 1/2,brass,2015-07-01
BV-1020,Ball valve DN 20,valve,300,15.10,4,G 3/4,brass,2016-07-01
GV-2040,Gate valve DN 40,valve,2100,48.00,1,G 1 1/2,bronze,2018-02-03
""",
    "catalogue.csv",
)
ACCIDENTS = known_table(
    "airline,deaths_85_99,deaths_00_14\n"
    + "".join(f"Line {letter},{20 - place},{place}\n" for place, letter in enumerate("ABCDEFGHIJKLMNOPQRST")),
    "safety.csv",
)


def make_nearness(table):
    """Return a function that counts the words shared with a column's name, in place of an embedder."""

    def nearness(text, columns):
        return [float(len(set(split_name(table.columns[at].name)) & set(text.lower().split()))) for at in columns]

    return nearness


def chosen(question, table=PARTS, near_rows=()):
    return choose_table_part(question, table, make_nearness(table), near_rows)


def names(choice):
    return [row.values[0] for row in choice.rows]


def test_rows_that_fit_are_shown_alone_where_the_question_is_understood():
    choice = chosen("Which valves have a price between 12 and 20?")
    assert names(choice) == ["BV-1015", "BV-1020"]
    assert choice.matched == 2
    assert [(each.operator, each.values) for each in choice.conditions] == [
        ("is", ("valv",)),
        ("between", (12.0, 20.0)),
    ]


@pytest.mark.parametrize(
    ("question", "weight"),
    [
        ("the default of pump_timeout", 0.0),
        ("the default of MAX_PUMP", 0.0),
        ("the default of STOCK_PER_DAY", 0.0),
        ("the weight_g of _pump_", 2.0),
        ("the category of MX-9920-W", 2.0),
    ],
)
def test_a_part_of_a_name_names_no_cell_and_no_column(question, weight):
    assert score_named_words(question, PARTS) == weight


def test_words_that_mean_nothing_in_the_table_leave_the_rows_beside_those_that_fit():
    choice = chosen("Which of the ball valves, Ball valve DN 20 say, suits my grandmother's garden best?")
    assert choice.matched == 1
    assert names(choice)[:3] == ["BV-1020", "BV-1015", "GV-2040"]
    assert len(choice.rows) == PARTS.row_count


def test_conditions_that_leave_no_row_are_dropped():
    choice = chosen("pump above 100000 price")
    assert [each.operator for each in choice.conditions] == ["is"]
    assert choice.matched == 2


@pytest.mark.parametrize(
    ("question", "first", "order", "is_least"),
    [
        ("cheapest valve", "BV-1015", "price_eur", True),
        # No column has such a name, so the nearest in meaning ranks.
        ("Which thing has the most stock rotting in Delft?", "SK-9940-D", "stock", False),
        ("What did you put on the market last?", "SK-9940-D", "first_sold", False),
        ("Welk product werd het eerst verkocht?", "BV-1015", "first_sold", True),
    ],
)
def test_rows_are_ordered_by_what_is_asked_for(question, first, order, is_least):
    choice = chosen(question)
    assert names(choice)[0] == first
    assert PARTS.columns[choice.order].name == order
    assert choice.is_least == is_least


def test_of_columns_alike_the_one_of_the_years_that_are_named_is_meant():
    assert (
        ACCIDENTS.columns[chosen("most deaths between 1985 and 1999 of them", ACCIDENTS).order].name == "deaths_85_99"
    )
    assert ACCIDENTS.columns[chosen("most deaths from 2000 to 2014 of them", ACCIDENTS).order].name == "deaths_00_14"


def test_the_columns_that_matter_come_first_and_a_code_has_its_name_beside_it():
    choice = chosen("What does the BV-1020 weigh, and the thread?")
    assert [PARTS.columns[at].name for at in choice.columns[:4]] == ["sku", "name", "weight_g", "thread"]
    assert len(choice.columns) == MOST_COLUMNS


def test_long_tables_are_cut_and_short_ones_are_whole():
    assert len(chosen("deaths of airlines over the years", ACCIDENTS).rows) == MOST_ROWS
    assert PARTS.row_count <= WHOLE_ROWS
    assert len(chosen("anything").rows) == PARTS.row_count
    # All rows that fit are shown if they are few.
    assert len(chosen("airlines with more than 8 deaths 85 99", ACCIDENTS).rows) == 12


def test_rows_that_the_search_found_come_before_others():
    assert names(chosen("something for my trip", ACCIDENTS, near_rows=[15, 12]))[:2] == ["Line P", "Line M"]


def test_a_table_weighs_more_the_more_of_it_is_named():
    weights = [score_named_words(question, PARTS) for question in ("How are you?", "price", "price of the BV-1020")]
    assert weights[0] == 0
    assert weights == sorted(set(weights))


@pytest.mark.parametrize("source", ["a,b\n1,2\n", "x,y\n,\nTotal,5\nmean,\n", 'name,"a, b"\n"one, two",\n'])
def test_odd_tables_are_shown_too(source):
    table = known_table(source, "odd.csv")
    for question in ("highest a", "total?", "", "one not two between 3 and 4", "the last one"):
        assert len(choose_table_part(question, table, make_nearness(table)).rows) <= table.row_count


def test_labels_of_columns_have_their_unit_in_brackets():
    names = ("weight_g", "max_pressure_bar", "Full name", "A (m)", "WebDAV", "RPM")
    labels = ["weight (g)", "max pressure (bar)", "Full name", "A (m)", "WebDAV", "RPM"]
    assert list(map(format_column_label, names)) == labels


def test_rows_are_not_said_to_be_sorted_by_cells_that_cannot_be_compared():
    rows = "".join(f"A{number},{number}\n" for number in range(20))
    table = known_table(f"name,points\n{rows}B,31 (two)\n", "points.csv")
    assert chosen("who had the most points in Delft", table).order is None
    assert chosen("who had the most points in Delft", known_table(f"name,points\n{rows}", "points.csv")).order == 1
