"""The blocks of a text, of every format that is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.documents.extraction import extract
from retrieval.text.block import BlockKind, find_overlapping_rows, read_stored_blocks
from retrieval.text.blocks import find_blocks


def blocks_of(source, filename="a.md"):
    extracted = extract(source.encode(), filename)
    headings = [(section.start, section.title) for section in extracted.sections]
    return extracted.text, find_blocks(extracted.text, headings)


def kinds(source, filename="a.md"):
    """Kind and text of each block."""
    text, blocks = blocks_of(source, filename)
    return [(block.kind.value, text[block.start : block.end]) for block in blocks]


def test_paragraphs_and_headings():
    text, (first, second) = blocks_of("# Pumps\n\nThey move\nwater.\n\n## Care\n\nOil them.\n")
    assert (text[first.start : first.end], text[second.start : second.end]) == ("They move\nwater.", "Oil them.")
    assert (first.heading_start, first.section_end) == (0, text.index("## Care"))
    assert (second.heading_start, second.section_end) == (text.index("## Care"), len(text))


def test_a_document_without_headings_is_one_section():
    (block,) = find_blocks("All of it.", [])
    assert (block.heading_start, block.section_end) == (None, 10)


@pytest.mark.parametrize(
    "hidden",
    [
        "---",
        "***",
        "{% include 'menu.html' %}",
        "{{< toc >}}",
        "<!-- to do -->",
        "<!-- to\n\ndo -->",
        "<div class='note'>",
        "[cite]: https://example.org",
        "![A picture](a.png)",
        ":::",
    ],
)
def test_what_is_no_content_is_in_no_block(hidden):
    assert kinds(f"# A\n\nOne.\n\n{hidden}\n\nTwo.\n") == [("paragraph", "One."), ("paragraph", "Two.")]


def test_a_list_keeps_its_lead_in_and_all_that_belongs_to_its_items():
    items = "- one\n  goes on\n\n- two\n  - inner\n\n    A paragraph of it.\n\n  ```\n  code\n\n  more\n  ```\n- three"
    text, (before, block, after) = blocks_of(f"It is so. You need:\n\n{items}\n\nThen go.\n")
    assert text[before.start : before.end] == "It is so."
    assert (block.kind, text[block.start : block.end]) == (BlockKind.LIST, f"You need:\n\n{items}")
    assert text[slice(*block.lead_in)] == "You need:"
    assert text[after.start : after.end] == "Then go."


@pytest.mark.parametrize(
    "sentence", ["Do the following.", "De volgende stappen zijn nodig.", "U gaat als volgt te werk.", "**Needed**"]
)
def test_sentences_that_introduce(sentence):
    ((kind, whole),) = kinds(f"{sentence}\n\n1. a\n2. b\n")
    assert (kind, whole) == ("steps", f"{sentence}\n\n1. a\n2. b")


@pytest.mark.parametrize(
    "steps",
    [
        "1. a\n2. b",
        "1) a\n\n2) b",
        "a. a\nb. b",
        "Step 1: a\n\nStep 2: b",
        "**Stap 1: a**\n\nDoe dit.\n\n**Stap 2: b**",
        "1. a\n\n```\ncode\n```\n\n2. b",
        "1. a\n\nA paragraph.\n\n2. b\n\n3. c",
        "1. Run:\n\n```\ncode\n```",
        "1. a\n- inner\n2. b",
    ],
)
def test_steps(steps):
    assert kinds(f"# How\n\n{steps}\n\n## Next\n\nNo more.\n")[0] == ("steps", steps)


def test_long_numbered_paragraphs_are_no_steps():
    clause = "The parties agree on what is agreed upon. " * 20
    assert {kind for kind, _ in kinds("".join(f"{n}. {clause}\n\n" for n in range(1, 8)))} == {"paragraph"}


TABLE = "| a | b |\n| --- | --- |\n| 1 | 2 |"
HTML_TABLE = "<table>\n <tr><td>1</td></tr>\n\n</table>"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Front matter is no content; template tags in code are.
        ("---\ntitle: x\nweight: 30\n---\n\nThe text.", ["paragraph:The text."]),
        ("+++\ntitle: x\nweight: 30\n+++\n\nThe text.", ["paragraph:The text."]),
        ("```\n{% if x %}\n---\n```", ["code:```\n{% if x %}\n---\n```"]),
        # Not every sentence introduces, and not every number counts.
        ("Pumps are heavy.\n\n- a\n- b", ["paragraph:Pumps are heavy.", "list:- a\n- b"]),
        ("The number of the house is\n12. It is far.", ["paragraph:The number of the house is\n12. It is far."]),
        ("2. Keep it short\n\nLong texts are slow.", ["paragraph:2. Keep it short", "paragraph:Long texts are slow."]),
        ("a | b\n--|--\n1 | 2", ["table:a | b\n--|--\n1 | 2"]),
        (HTML_TABLE, [f"table:{HTML_TABLE}"]),
        ("Note this: it is one; and not two.", ["paragraph:Note this: it is one; and not two."]),
        *(
            (f"One.\n\n{code}\n\nTwo.", ["paragraph:One.", f"code:{code}", "paragraph:Two."])
            for code in ("```py\nx = 1\n\ny\n```", "~~~\nx\n~~~", "    x = 1\n\n    y = 2", ">>> x\n1")
        ),
        # Prose can be indented.
        ("One.\n\n    This is a sentence like any.", ["paragraph:One.", "paragraph:This is a sentence like any."]),
        (
            "!!! note\n    Mind the step.\n\n    And the gap.\n\nOn.",
            ["paragraph:Mind the step.", "paragraph:And the gap.", "paragraph:On."],
        ),
        (
            '=== "Menu"\n\n     1. Open it.\n     2. Save.\n\n        ![Menu](menu.png){ class="shadow" }\n\nOn.',
            ["steps:     1. Open it.\n     2. Save.", "paragraph:On."],
        ),
        (
            '!!!tip ""\n    Mind the step.\n\n![Step](step.png){ .wide }\n\nOn.',
            ["paragraph:Mind the step.", "paragraph:On."],
        ),
        # A question has the answer right below it.
        ("# What now?\n\n## Care\n\nOil it.", ["paragraph:Oil it."]),
        ("## What do I bring?\n\n- a\n- b", ["list:- a\n- b"]),
        ("**What do I bring?**\n\n- a\n- b", ["list:**What do I bring?**\n\n- a\n- b"]),
        (
            "**Eén?**\n\nJa.\n\n**Twee?**\n\nNee.\n\nOok niet.",
            ["question:**Eén?**\n\nJa.", "question:**Twee?**\n\nNee.", "paragraph:Ook niet."],
        ),
        ("**Leave**\n\nYou have 25 days.", ["paragraph:**Leave**\n\nYou have 25 days."]),
    ],
)
def test_what_is_a_block_and_of_which_kind(source, expected):
    assert [f"{kind}:{text}" for kind, text in kinds(f"{source}\n")] == expected


def test_tables_have_their_lead_in_and_rows_of_files_are_records():
    assert kinds(f"We credit as follows:\n\n{TABLE}\n\nEnd.\n") == [
        ("table", f"We credit as follows:\n\n{TABLE}"),
        ("paragraph", "End."),
    ]
    assert kinds("sku,price\nA,1\nB,2\n", "a.csv") == [("records", "sku: A; price: 1\nsku: B; price: 2")]


def test_code_files_are_cut_at_definitions():
    source = "import os\n\n\ndef first():\n    return 1\n\n\ndef second():\n    return 2\n"
    extracted = extract(source.encode(), "a.py")
    found = find_blocks(source, [(section.start, section.title) for section in extracted.sections], is_code=True)
    assert [source[block.start : block.end] for block in found] == [
        "import os",
        "def first():\n    return 1",
        "def second():\n    return 2",
    ]
    assert {block.kind for block in found} == {BlockKind.CODE}


@pytest.mark.parametrize(
    "question", ["### May I bring a dog?", "**May I bring a dog?**", "Q: May I bring a dog?", "May I bring a dog?"]
)
def test_questions_and_answers(question):
    text, (block, other) = blocks_of(f"{question}\n\nNo, dogs stay outside.\n\n### Other\n\nText.\n")
    assert (block.kind, text[block.start : block.end]) == (BlockKind.QUESTION, f"{question}\n\nNo, dogs stay outside.")
    assert text[slice(*block.lead_in)] == question
    assert other.kind == BlockKind.PARAGRAPH


def test_rows_are_relative_to_their_chunk():
    text, blocks = blocks_of("# A\n\nOne.\n\nYou need:\n\n- a\n- b\n\nEnd.\n")
    ranges = [(0, text.index("- a") + 3), (text.index("- b"), len(text))]
    rows = find_overlapping_rows(blocks, ranges)
    assert [read_stored_blocks(each, start) for each, (start, _) in zip(rows, ranges, strict=True)] == [
        tuple(blocks[:2]),
        tuple(blocks[1:]),
    ]
    moved = read_stored_blocks(rows[1], ranges[1][0] + 100)
    assert [block.start for block in moved] == [block.start + 100 for block in blocks[1:]]


LINES = st.sampled_from(
    [
        "- a",
        "1. b",
        "2. c",
        "  - d",
        "| e |",
        "|-|-|",
        "```",
        "~~~",
        "> f",
        "    g",
        "h: i; j: k",
        "Q: l?",
        "**m?**",
        "n.",
    ]
    + ["", "", "<!--", "-->", "{{ o }}", "---", "===", "# p", "!!! q", ".. r::", "s::", ">>> t", "<table>", "12"]
)


@given(st.lists(LINES, max_size=40), st.sets(st.integers(0, 200), max_size=5))
def test_blocks_keep_their_promises(lines, headings):
    text = "\n".join(lines)
    found = find_blocks(text, [(at, "p") for at in sorted(headings)])
    last = 0
    for block in found:
        assert last <= block.start < block.end <= block.section_end <= len(text)
        assert block.heading_start is None or block.heading_start <= block.start
        assert block.lead_in is None or block.start <= block.lead_in[0] < block.lead_in[1] <= block.end
        assert text[block.start : block.end].strip()
        last = block.end
    assert found == sorted(found, key=lambda block: block.start)
