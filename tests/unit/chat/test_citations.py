from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.citations import MARKER, MarkerStream, cited_statements, keep_known_markers


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
        ("values[0] and [a] and [2026]", "values and [a] and [2026]"),
    ],
)
def test_only_known_markers_stay(text: str, kept: str) -> None:
    assert keep_known_markers(text, {1, 2}) == kept


@given(st.text(alphabet="ab [],;12 source^\n", max_size=60), st.data())
def test_a_stream_says_the_same_as_the_whole_however_it_is_cut(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    stream = MarkerStream({1, 2})
    shown = [stream.feed(piece) for piece in pieces] + [stream.close()]
    assert "".join(shown) == keep_known_markers(text, {1, 2})
    for piece in shown:
        assert all(int(number) in {1, 2} for number in MARKER.findall(piece))


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


def test_statements_and_their_markers() -> None:
    text = (
        "The pump is bronze [1]. It weighs 3450 g [1][2].\n\n- Ten bar [2]\n- No marker here\n\n```\ncode\n```\n\n[3]"
    )
    assert cited_statements(text) == [
        ("The pump is bronze", (1,)),
        (". It weighs 3450 g", (1, 2)),
        ("- Ten bar", (2,)),
        ("- No marker here", ()),
        ("```\ncode\n```", (3,)),
    ]


def test_a_sentence_over_two_lines_is_one_statement() -> None:
    assert cited_statements("The pump may be used\nup to ten bar. [4]") == [
        ("The pump may be used\nup to ten bar.", (4,))
    ]
