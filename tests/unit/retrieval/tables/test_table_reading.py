"""Tables of a document's text: their places, and the places of their cells."""

import pytest

from retrieval.documents.extraction import extract
from retrieval.tables.table_reading import find_pipe_tables, read_tables
from tests.support.tables import read_table

HOURS = """# Library

Everybody is welcome.

## Opening hours

| Branch | Weekdays | **Phone** |
|:--|---|--:|
| Central | 8:30 \\| 20:00 | 555-0100 |
| [Harbour](harbour.md) |  | 555-0122 |

More text | with a pipe.
"""


def test_rows_of_a_csv_file_keep_the_places_of_their_cells():
    extracted = extract(b'sku,note,price_eur\nA-1,"a; b",2.50\nB-2,,3\n', "parts.csv")
    (table,) = read_tables(extracted)
    assert [(column.name, column.kind, column.unit) for column in table.columns] == [
        ("sku", "text", ""),
        ("note", "text", ""),
        ("price_eur", "number", "eur"),
    ]
    cells = [[extracted.text[start:end] for start, end in row.cells] for row in table.rows]
    assert cells == [["A-1", "a; b", "2.50"], ["B-2", "", "3"]]
    assert [row.values for row in table.rows] == [("A-1", "a; b", 2.5), ("B-2", None, 3.0)]
    assert [extracted.text[row.start : row.end] for row in table.rows] == extracted.text.splitlines()
    assert table.rows[0].labels == ("a1", "ab")


def test_a_pipe_table_stands_below_its_headings():
    extracted = extract(HOURS.encode(), "library.md")
    (table,) = read_tables(extracted)
    assert table.caption == "Library › Opening hours"
    assert [column.name for column in table.columns] == ["Branch", "Weekdays", "Phone"]
    assert [row.values for row in table.rows] == [
        ("Central", "8:30 | 20:00", "555-0100"),
        ("Harbour", None, "555-0122"),
    ]
    for row in table.rows:
        assert all(row.start <= start <= end <= row.end for start, end in row.cells)
    assert extracted.text[slice(*table.rows[1].cells[2])] == "555-0122"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a | b\nc | d\n",
        "| a | b |\n|---|\n| 1 | 2 |\n",
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\n",
        "| a | b |\n|---|---|\n",
        "|\n|-\n|||\n",
    ],
)
def test_what_is_no_table_is_none_and_no_error(text):
    assert not [grid for grid in find_pipe_tables(text) if grid.rows and len(grid.header) > 1]


def test_rows_that_are_too_short_or_too_long_are_fitted():
    table = read_table("# T\n\n| a | b |\n|---|---|\n| x |\n| y | z | more |\n", "t.md")
    assert [row.values for row in table.rows] == [("x", None), ("y", "z")]
