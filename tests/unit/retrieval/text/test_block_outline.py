from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.blocks import Block, BlockKind, find_blocks
from retrieval.text.blocks.outline import find_header, read_cells, shorten, split_items

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


def only_block(text: str) -> Block:
    (block,) = find_blocks(text, [])
    return block


def items(text: str) -> list[str]:
    return [text[start:end] for start, end in split_items(text, only_block(text))]


def shown(text: str, characters: int) -> list[str]:
    return [text[start:end] for start, end in shorten(text, only_block(text), characters).spans]


def test_items_hold_what_belongs_to_them() -> None:
    first, second, third = items(STEPS)
    assert first.endswith("- Use clean water.")
    assert second.endswith("```")
    assert third == "3. Close the screw. Not too tightly."


def test_rows_are_the_items_of_a_table() -> None:
    assert items(TABLE) == ["| S | 10 |", "| M | 12 |", "| L | 15 |"]
    header = find_header(TABLE, only_block(TABLE))
    assert header is not None
    assert TABLE[slice(*header)] == "| Size | Price |\n| --- | --- |"


def test_rows_of_html_are_items_too() -> None:
    table = (
        "<table>\n<tr><th>Years</th>\n<th>Pay</th></tr>\n<tr>\n<td>1 &amp; 2</td><td><b>$70k</b></td></tr>\n</table>"
    )
    (row,) = items(table)
    assert read_cells(row) == ["1 & 2", "$70k"]
    header = find_header(table, only_block(table))
    assert header is not None
    assert read_cells(table[slice(*header)]) == ["Years", "Pay"]


def test_cells_of_a_row() -> None:
    assert read_cells(r"| S \| M | 10 |") == ["S | M", "10"]


def test_records_are_items() -> None:
    assert items("sku: A; price: 1\nsku: B; price: 2\n") == ["sku: A; price: 1", "sku: B; price: 2"]


def test_prose_has_no_items() -> None:
    assert items("A sentence. Another one.") == []


def test_what_fits_is_shown_whole() -> None:
    assert shown(STEPS, 1000) == [STEPS.strip()]
    assert not shorten(STEPS, only_block(STEPS), 1000).goes_on


def test_a_long_procedure_shows_its_beginning_and_an_outline() -> None:
    short = shorten(STEPS, only_block(STEPS), 60)
    assert short.goes_on
    assert shown(STEPS, 60) == ["Do this:\n\n1. Fill the pump.", "2. Run:", "3. Close the screw."]
    assert shown(STEPS, 150)[0].endswith("- Use clean water.\n2. Run:")


def test_a_long_table_keeps_its_header() -> None:
    assert shown(TABLE, 50) == ["| Size | Price |\n| --- | --- |\n| S | 10 |\n| M | 12 |"]


def test_prose_and_code_show_their_beginning() -> None:
    assert shown("One sentence here. Another one here. And a third.", 40) == ["One sentence here. Another one here."]
    assert shown("```\nfirst\nsecond\n```", 12) == ["```\nfirst"]
    assert shown("word " * 100, 23) == ["word word word word"]


def test_of_a_part_of_the_document_what_is_there_is_taken() -> None:
    block = only_block(STEPS)
    cut = STEPS.index("2. Run")
    last = split_items(STEPS[cut:], block, origin=cut)[-1]
    assert STEPS[slice(*last)] == "3. Close the screw. Not too tightly."
    assert shorten(STEPS[cut:], block, 1000, origin=cut).goes_on
    assert shorten(STEPS[:cut], block, 1000).spans == ((0, cut),)


texts = st.lists(
    st.sampled_from(["- a b. c", "1. d", "  - e", "| f |", "|-|", "```", "g: h; i: j", "k. L m", "", "Q: n?"])
)


@given(texts, st.integers(1, 60), st.integers(0, 30), st.sampled_from(list(BlockKind)))
def test_spans_are_in_order_and_inside(lines: list[str], characters: int, origin: int, kind: BlockKind) -> None:
    text = "\n".join(lines)
    for found in find_blocks(text, []):
        block = Block(found.start, found.end, kind, None, len(text), found.lead_in)
        for spans in (
            split_items(text[origin:], block, origin),
            shorten(text[origin:], block, characters, origin).spans,
        ):
            last = max(block.start, min(origin, len(text)))
            for start, end in spans:
                assert last <= start < end <= block.end
                last = end


@pytest.mark.parametrize("kind", list(BlockKind))
def test_something_is_always_shown(kind: BlockKind) -> None:
    text = "- a word " * 50
    block = Block(0, len(text.rstrip()), kind, None, len(text))
    assert shorten(text, block, 1).spans
