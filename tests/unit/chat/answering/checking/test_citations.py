import pytest

from chat.answering.checking.citations import (
    escape_bracketed_numbers,
    escape_markers,
    find_markers,
    iterate_cited_words,
    remove_markers,
)


def test_a_documents_own_numbers_are_written_otherwise():
    text = "See [2], [1; 3] and values[0]; run `a[2]`:\n\n```\nb[2]\n```\n"
    assert escape_markers(text) == text.replace("[", "⟦").replace("]", "⟧")
    assert escape_bracketed_numbers(text) == text.replace("[2], [1; 3]", "⟦2⟧, ⟦1; 3⟧")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "The pump is bronze [1]. It weighs 3450 g [1][2].\n\n- Ten bar [2]\n- No marker\n\n```\ncode\n```\n\n[3]",
            [(1, "The pump is bronze"), (1, "It weighs 3450 g"), (2, "It weighs 3450 g"), (2, "- Ten bar")]
            + [(3, "```\ncode\n```")],
        ),
        ("It is hot. The pump may be used\nup to ten bar. [4]", [(4, "The pump may be used\nup to ten bar.")]),
        ("[2]\n\n[1] It weighs 3450 g [1].", [(2, ""), (1, ""), (1, "It weighs 3450 g")]),
        ("Take `row[2]` [1].\n\n```\nrow[2]\n```\n\n[1]", [(1, "Take `row[2]`"), (1, "```\nrow[2]\n```")]),
        ("values[0] hold it [1].", [(1, "values[0] hold it")]),
        ("[1]", [(1, "")]),
    ],
)
def test_a_marker_speaks_for_the_words_before_it(text, expected):
    found = list(iterate_cited_words(text, find_markers(text)))
    assert [(marker.number, words) for marker, words in found] == expected
    assert [marker for marker, _ in found] == find_markers(text)
    assert all(text[marker.start : marker.end] == f"[{marker.number}]" for marker, _ in found)


def test_markers_go_and_code_stays():
    text = "Take the first [1], `values[1]`, of them [2][3]:\n\n```\nprint(values[2])\n```\n\n[1]"
    assert remove_markers(text) == "Take the first , `values[1]`, of them :\n\n```\nprint(values[2])\n```\n\n"
