"""Filters of a table's columns as a reader types them."""

import pytest

from retrieval.tables.filters import filter_rows, parse_filter, sort_rows, write_filter
from tests.support.tables import known_table

STAFF = known_table(
    """name,department,salary,remote,hired,note
Ann,Sales,"1,200",yes,2018-03-12,
Bob,Engineering,900,no,2015-07-01,on leave
Émile,"Sales, Engineering",3000,yes,2020-02-02,
Dan,Support,,no,2021-05-05,
Eve,Support,2500,yes,2019-09-09,Leave in May
Fay,Sales,2400,no,2017-01-01,
""",
    "staff.csv",
)
AT = {column.name: at for at, column in enumerate(STAFF.columns)}


def names(column, typed):
    at = AT[column]
    return [row.values[0] for row in filter_rows(STAFF, parse_filter(typed, at, STAFF.columns[at]), None)]


@pytest.mark.parametrize(
    ("column", "typed", "found"),
    [
        ("name", "", ["Ann", "Bob", "Émile", "Dan", "Eve", "Fay"]),
        ("note", "leave", ["Bob", "Eve"]),
        ("name", "emil", ["Émile"]),
        ("department", "=sales", ["Ann", "Émile", "Fay"]),
        ("department", "=sales|support", ["Ann", "Émile", "Dan", "Eve", "Fay"]),
        ("department", "!=Sales", ["Bob", "Dan", "Eve"]),
        ("salary", ">=1,200 <2500", ["Ann", "Fay"]),
        ("salary", "900", ["Bob"]),
        ("salary", "> 2400", ["Émile", "Eve"]),
        ("salary", "!=900", ["Ann", "Émile", "Eve", "Fay"]),
        ("remote", "ja", ["Ann", "Émile", "Eve"]),
        ("hired", ">=2019", ["Émile", "Dan", "Eve"]),
        ("hired", "2018-03", ["Ann"]),
    ],
)
def test_rows_are_those_that_fit(column, typed, found):
    assert names(column, typed) == found


@pytest.mark.parametrize(
    ("column", "typed"), [("salary", "much"), ("salary", ">"), ("salary", "> 5 !"), ("remote", "?")]
)
def test_what_is_no_filter_is_an_error(column, typed):
    with pytest.raises(ValueError, match=r".*"):
        parse_filter(typed, AT[column], STAFF.columns[AT[column]])


@pytest.mark.parametrize(
    ("column", "typed"),
    [("note", "leave"), ("department", "=Sales"), ("department", "!=Sales"), ("salary", ">=900"), ("remote", "no"),
     ("hired", "<2019"), ("salary", "!=900")],
)  # fmt: skip
def test_a_filter_that_is_written_is_read_as_the_same(column, typed):
    at = AT[column]
    conditions = parse_filter(typed, at, STAFF.columns[at])
    written = " ".join(write_filter(each, STAFF.columns[at]) for each in conditions)
    assert parse_filter(written, at, STAFF.columns[at]) == conditions


def test_rows_are_sorted_by_values_and_empty_cells_come_last():
    rows = STAFF.read_rows([])
    assert [row.values[0] for row in sort_rows(rows, AT["salary"], descending=False)][-2:] == ["Émile", "Dan"]
    assert [row.values[0] for row in sort_rows(rows, AT["salary"], descending=True)][0::5] == ["Émile", "Dan"]
    assert [row.values[0] for row in sort_rows(rows, AT["name"], descending=False)][3:5] == ["Émile", "Eve"]
