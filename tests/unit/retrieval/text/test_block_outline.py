import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.block import Block, BlockKind
from retrieval.text.block_items import find_table_header, read_cells, split_items
from retrieval.text.blocks import find_blocks

STEPS = """Do this:

1. Fill the pump. Wait until it is full, which takes some minutes.
   - Use clean water.
2. Run:

   ```
   1. no item
   - none either
   ```
3. Close the screw. Not too tightly.
"""
TABLE = """| Size | Price |
| --- | --- |
| S | 10 |
| M | 12 |
| L | 15 |
"""


def only_block(text):
    (block,) = find_blocks(text, [])
    return block


def items(text):
    return [text[start:end] for start, end in split_items(text, only_block(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            STEPS,
            [
                "1. Fill the pump. Wait until it is full, which takes some minutes.\n   - Use clean water.",
                "2. Run:\n\n   ```\n   1. no item\n   - none either\n   ```",
                "3. Close the screw. Not too tightly.",
            ],
        ),
        (TABLE, ["| S | 10 |", "| M | 12 |", "| L | 15 |"]),
        ("sku: A; price: 1\nsku: B; price: 2\n", ["sku: A; price: 1", "sku: B; price: 2"]),
        ("A sentence. Another one.", []),
    ],
)
def test_items_hold_what_belongs_to_them(text, expected):
    assert items(text) == expected


def test_the_header_of_a_table_is_no_item():
    assert TABLE[slice(*find_table_header(TABLE, only_block(TABLE)))] == "| Size | Price |\n| --- | --- |"


def test_rows_of_html_are_items_too():
    table = (
        "<table>\n<tr><th>Years</th>\n<th>Pay</th></tr>\n<tr>\n<td>1 &amp; 2</td><td><b>$70k</b></td></tr>\n</table>"
    )
    (row,) = items(table)
    assert read_cells(row) == ["1 & 2", "$70k"]
    assert read_cells(r"| S \| M | 10 |") == ["S | M", "10"]
    assert read_cells(table[slice(*find_table_header(table, only_block(table)))]) == ["Years", "Pay"]


def test_of_a_part_of_the_document_what_is_there_is_taken():
    block = only_block(STEPS)
    cut = STEPS.index("2. Run")
    last = split_items(STEPS[cut:], block, origin=cut)[-1]
    assert STEPS[slice(*last)] == "3. Close the screw. Not too tightly."


texts = st.lists(
    st.sampled_from(["- a b. c", "1. d", "  - e", "| f |", "|-|", "```", "g: h; i: j", "k. L m", "", "Q: n?"])
)


@given(texts, st.integers(0, 30), st.sampled_from(list(BlockKind)))
def test_spans_are_in_order_and_inside(lines, origin, kind):
    text = "\n".join(lines)
    for found in find_blocks(text, []):
        block = Block(found.start, found.end, kind, None, len(text), found.lead_in)
        last = max(block.start, min(origin, len(text)))
        for start, end in split_items(text[origin:], block, origin):
            assert last <= start < end <= block.end
            last = end
