from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.answering.citations import (
    MarkerStream,
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


@given(st.text(alphabet="ab [],;120 source^\n`~-⟦⟧", max_size=60), st.data())
def test_a_stream_says_the_same_as_the_whole_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    stream = MarkerStream({1, 2})
    shown = [stream.feed(piece) for piece in pieces] + [stream.close()]
    assert "".join(shown) == keep_known_markers(text, {1, 2})
    assert all(marker.number in {1, 2} for marker in find_markers("".join(shown)))


def test_a_marker_is_never_split() -> None:
    stream = MarkerStream({12})
    assert [stream.feed(piece) for piece in ("Ten bar ", "[", "1", "2", "]. Then")] == [
        "Ten bar",
        "",
        "",
        "",
        " [12]. Then",
    ]


def test_an_open_bracket_is_not_held_for_ever() -> None:
    stream = MarkerStream({1})
    text = "see [" + "x" * 200
    assert stream.feed(text) + stream.close() == text


def test_code_is_held_back_until_it_is_known_to_be_code() -> None:
    stream = MarkerStream({1})
    pieces = ["Use `val", "ues[9]", "` [", "1]\n", "``", "`sh\nru", "n[9]\n", "```\nThen", " go [9]."]
    assert [stream.feed(piece) for piece in pieces] == [
        "Use ",
        "",
        "`values[9]`",
        " [1]\n",
        "",
        "```sh\n",
        "run[9]\n",
        "```\nThen",
        " go.",
    ]
    assert stream.close() == ""


def test_a_stray_backtick_holds_back_no_more_than_its_paragraph() -> None:
    stream = MarkerStream({1})
    assert stream.feed("A stray ` here [9].\n\nNext [1] ") == "A stray ` here.\n\nNext [1]"


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
