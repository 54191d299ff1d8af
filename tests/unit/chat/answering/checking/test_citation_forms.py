"""A bracket is a citation only if its number is a source's and it is placed where a citation can be."""

import pytest

from chat.answering.checking.citation_forms import find_references

SOURCES = "The range is[2,6]bar. Removethecover(2).".replace(" ", "")


def found(text, known=(1, 2, 3, 6)):
    references = find_references(text, known, lambda piece: "".join(piece.split()) in SOURCES, is_end=True)
    return [text[each.start : each.end] for each in references.found]


@pytest.mark.parametrize(
    ("text", "citations"),
    [
        ("Ten bar [1].", ["[1]"]),
        ("Ten bar. [1] It hums.", ["[1]"]),
        ("Ten bar.[1] It hums.", ["[1]"]),
        ("Ten bar [1, 2].", ["[1, 2]"]),
        ("Ten bar [1][2], or nine [3].", ["[1][2]", "[3]"]),
        ("Ten bar [1] [2].", ["[1] [2]"]),
        ("Ten bar [source 1].", ["[source 1]"]),
        ("Ten bar [3-1].", []),
        ("Ten bar ([1]).", ["([1])"]),
        ("Ten bar (SOURCE [2]).", ["(SOURCE [2])"]),
        ("Ten bar [^2].", ["[^2]"]),
        ("Ten bar【1】.", ["【1】"]),
        ("Ten bar【1†source】.", ["【1†source】"]),
        ("Ten bar【2:1†manual.pdf】.", []),
        ("Ten bar ［1］.", ["［1］"]),
        ("Ten bar [１].", ["[１]"]),
        ("It weighs three kilos<sup>1</sup>.", ["<sup>1</sup>"]),
        ("It weighs 3 kg<sup>1</sup>.", ["<sup>1</sup>"]),
        ("It hums (1).", ["(1)"]),
        ("It hums. (1)", ["(1)"]),
        # Ranges and lists.
        ("Ten bar [1-3].", ["[1-3]"]),
        ("Ten bar [1]–[3].", ["[1]–[3]"]),
        ("Ten bar [1 and 2].", ["[1 and 2]"]),
        ("Ten bar [1、2]。", ["[1、2]"]),
        ("Ten bar [1], [2] and [3].", ["[1], [2] and [3]"]),
        # Words before the number, and footnotes.
        ("Ten bar [cite: 1, 2].", ["[cite: 1, 2]"]),
        ("Ten bar [citation:1][citation:2].", ["[citation:1][citation:2]"]),
        ("Ten bar [doc1].", ["[doc1]"]),
        ("Ten bar [Sources: 1, 2].", ["[Sources: 1, 2]"]),
        ("Tien bar [bronnen 1 en 2].", ["[bronnen 1 en 2]"]),
        ("Ten bar (Source: 1).", ["(Source: 1)"]),
        ("Ten bar [^1^].", ["[^1^]"]),
        ("Ten bar〔1〕.", ["〔1〕"]),
        ("The pump hums¹².", ["¹²"]),
        # Links to the source.
        ("Ten bar [1](#source-1).", ["[1](#source-1)"]),
        ("Ten bar [[1]](https://good.example/a).", ["[[1]](https://good.example/a)"]),
        # Within a sentence.
        ("It weighs 3 kg [1] in summer.", ["[1]"]),
        ("It weighs 3 kg [1] (always).", ["[1]"]),
        # Before its sentence, in a line of its own, in a table, in a list, in bold.
        ("[2] The pump hums.", ["[2]"]),
        ("- [2] The pump hums.", ["[2]"]),
        ("The pump hums.\n\n[1][2]\n", ["[1][2]"]),
        ("| pump [1] | 3 [2] |", ["[1]", "[2]"]),
        ("**It hums [1]**, always.", ["[1]"]),
        ("According to [2], it hums.", ["[2]"]),
        ("It weighs 3 kg [1] and hums [2].", ["[1]", "[2]"]),
        # Numbers of a document are none.
        ("The range of the valve is [2, 6] bar.", []),
        ("The range in bar is [2, 6].", []),
        ("Choose [1] or [3] only.", []),
        ("Press [1] or [3].", []),
        ("Set it to [1] or [3].", []),
        ("A value within [1, 3] m.", []),
        ("The range: [2, 6]", []),
        ("A range of 2 to 4 [2-9] bar.", []),
        ("The range of the valve is [2-3] bar.", []),
        ("An area of 12 m².", []),
        ("A load of 3 N/mm².", []),
        ("A rate of 3 s⁻¹.", []),
        ("x = [1, 2]", []),
        ("[1, 3] m is the range.", []),
        ("values[1] = 5 and a[2]b", []),
        ("See step (2).", []),
        ("Remove the cover (2).", []),
        ("(1) Open it. (2) Close it.", []),
        ("An area of 12 m<sup>2</sup>.", []),
        ("10<sup>6</sup>.", []),
        ("See [1](https://a.example) and ![2](b.png).", []),
        ("[1]: a definition", []),
        (r"An escaped \[1\].", []),
        ("`a[1]` and\n\n```\nb[2]\n```\n", []),
        # No source has these numbers.
        ("Ten bar [9].", []),
        ("Ten bar [1, 9].", []),
        ("Ten bar [0].", []),
        ("Built in [2026].", []),
    ],
)
def test_citations_are_told_from_numbers(text, citations):
    assert found(text) == citations
