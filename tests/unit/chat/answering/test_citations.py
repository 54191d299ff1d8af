from __future__ import annotations

import pytest

from chat.answering.citations import (
    cited_sentences,
    cited_statements,
    find_markers,
    keep_known_markers,
    quote_for_answer,
    quoted,
    remove_markers,
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Ten bar [1].", "Ten bar [1]."),
        ("Ten bar [9].", "Ten bar."),
        ("Ten bar [1, 2].", "Ten bar [1][2]."),
        ("Ten bar [1,9; 2].", "Ten bar [1][2]."),
        ("Ten bar [source 1].", "Ten bar [1]."),
        ("Ten bar [^2].", "Ten bar [2]."),
        ("Ten bar [1][1].", "Ten bar [1][1]."),
        # No source has the number 0.
        ("values[0] and [a] and [2026]", "values[0] and [a] and [2026]"),
        ("values[1, 0] [1]", "values[1, 0] [1]"),
        ("`values[9]` and `a[1, 2]` [9] [2]", "`values[9]` and `a[1, 2]` [2]"),
        ("```\na[9]\n\nb[1, 2]\n```\n\n[1, 9]", "```\na[9]\n\nb[1, 2]\n```\n\n[1]"),
        # What was copied from a quotation in the prompt.
        ("`a⟦2⟧` and ⟦2⟧ [1]", "`a[2]` and ⟦2⟧ [1]"),
        ("~~~\na⟦2⟧ = ⟦1, 3⟧\n~~~\n⟦2⟧", "~~~\na[2] = [1, 3]\n~~~\n⟦2⟧"),
    ],
)
def test_only_known_markers_stay(text: str, kept: str) -> None:
    assert keep_known_markers(text, {1, 2}) == kept


def test_a_documents_own_numbers_are_written_otherwise() -> None:
    text = "See [2], [1; 3] and values[0]; run `a[2]`:\n\n```\nb[2]\n```\n"
    assert quoted(text) == text.replace("[", "⟦").replace("]", "⟧")
    assert quote_for_answer(text) == text.replace("[2], [1; 3]", "⟦2⟧, ⟦1; 3⟧")


def statements(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The statements with the numbers of their markers, whose positions hold."""
    found = cited_statements(text)
    for statement in found:
        assert all(text[marker.start : marker.end] == f"[{marker.number}]" for marker in statement.markers)
    return [(each.text, tuple(marker.number for marker in each.markers)) for each in found]


def test_brackets_in_code_cite_nothing() -> None:
    text = "Take `row[2]` [1].\n\n```\nrow[2]\n```\n\n[1]"
    assert statements(text) == [("Take `row[2]`", (1,)), ("```\nrow[2]\n```", (1,))]
    assert [(text[each.start : each.end], each.markers) for each in cited_sentences(text)] == [
        ("Take `row[2]` [1].", (1,))
    ]
    assert [text[marker.start : marker.end] for marker in find_markers(text)] == ["[1]", "[1]"]
    assert statements("values[0] hold it [1].") == [("values[0] hold it", (1,))]


def test_statements_and_their_markers() -> None:
    text = (
        "The pump is bronze [1]. It weighs 3450 g [1][2].\n\n- Ten bar [2]\n- No marker here\n\n```\ncode\n```\n\n[3]"
    )
    assert statements(text) == [
        ("The pump is bronze", (1,)),
        (". It weighs 3450 g", (1, 2)),
        ("- Ten bar", (2,)),
        ("- No marker here", ()),
        ("```\ncode\n```", (3,)),
    ]


def test_a_sentence_over_two_lines_is_one_statement() -> None:
    assert statements("The pump may be used\nup to ten bar. [4]") == [("The pump may be used\nup to ten bar.", (4,))]


def test_every_marker_has_its_position() -> None:
    (pump, valve) = cited_statements("Pump 3 bar [1][1]. Valve 5 bar [1].")
    assert [(marker.start, marker.end) for marker in pump.markers] == [(11, 14), (14, 17)]
    assert [(marker.start, marker.end) for marker in valve.markers] == [(31, 34)]


def test_markers_before_any_statement_speak_for_the_first_one() -> None:
    assert statements("[2]\n\n[1] It weighs 3450 g [1].") == [("It weighs 3450 g", (2, 1, 1))]
    assert statements("[1]") == []


def test_markers_go_and_code_stays() -> None:
    text = "Take the first [1], `values[1]`, of them [2][3]:\n\n```\nprint(values[2])\n```\n\n[1]"
    assert remove_markers(text) == "Take the first , `values[1]`, of them :\n\n```\nprint(values[2])\n```\n\n"
