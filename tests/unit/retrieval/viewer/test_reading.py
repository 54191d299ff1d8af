import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.viewer.plain_text import (
    Heading,
    cut_runs,
    find_headings_above,
    group_runs,
    page_number,
    parse_passage,
    unwrap_lines,
)

places = st.integers(min_value=-5, max_value=400)


@given(
    text=st.text(alphabet="ab \n#é", max_size=300),
    starts=st.lists(places, max_size=5),
    pages=st.lists(places, max_size=5),
    first=places,
    length=st.integers(1, 100),
)
def test_the_pieces_are_the_text_and_the_mark_is_the_passage(
    text: str, starts: list[int], pages: list[int], first: int, length: int
) -> None:
    marked = parse_passage(text, str(first), str(first + length))
    found = cut_runs(
        text,
        pages=[(number, start, start + 1) for number, start in enumerate(pages, 1)],
        sections=[Heading(start, 1, "x") for start in sorted(starts)],
        marked=marked,
    )
    assert "".join(piece.text for piece in found) == text
    assert "".join(piece.text for group in group_runs(found) for piece in group) == text
    expected = text[marked[0] : marked[1]] if marked else ""
    assert "".join(piece.text for piece in found if piece.marked) == expected
    assert sum(piece.is_first_marked for piece in found) == (1 if marked else 0)


@pytest.mark.parametrize(
    ("start", "end"),
    [(None, None), ("", ""), ("3", None), ("-1", "4"), ("4", "4"), ("9", "12"), ("x", "4"), ("1" * 99, "2" * 99)],
)
def test_no_passage_for_places_that_name_none(start: str | None, end: str | None) -> None:
    assert parse_passage("abcdefgh", start, end) is None


def test_a_passage_ends_with_the_text() -> None:
    assert parse_passage("abcdefgh", "2", "99") == (2, 8)


def test_a_passage_begins_and_ends_with_words() -> None:
    assert parse_passage("a\n\n b \nc", "1", "7") == (4, 5)
    assert parse_passage("a\n\n b", "1", "4") is None


def test_long_text_comes_in_parts() -> None:
    text = "a line of text\n" * 5000
    groups = group_runs(cut_runs(text, marked=(100, 120)))
    assert len(groups) > 3
    assert "".join(piece.text for group in groups for piece in group) == text


def test_lines_of_a_paragraph_are_joined_at_the_same_offsets() -> None:
    text = (
        "1 Safety\nSwitch the pump off before any work and lock the\nswitch, so that nobody can turn it on again by\n"
        "mistake.\n- Close both of the valves beside the housing now\n- Wait.\n\nNext"
    )
    joined = unwrap_lines(text, [Heading(0, 1, "1 Safety")])
    assert len(joined) == len(text)
    assert joined == (
        "1 Safety\nSwitch the pump off before any work and lock the switch, so that nobody can turn it on again by "
        "mistake.\n- Close both of the valves beside the housing now\n- Wait.\n\nNext"
    )


def test_where_a_passage_stands() -> None:
    sections = [Heading(0, 1, "A"), Heading(10, 2, "A.1"), Heading(20, 1, "B"), Heading(30, 3, "B.1.1")]
    assert [section.title for section in find_headings_above(sections, 15)] == ["A", "A.1"]
    assert [section.title for section in find_headings_above(sections, 35)] == ["B", "B.1.1"]
    assert page_number([(1, 0, 10), (2, 10, 20)], 10) == 2
    assert page_number([(1, 0, 10)], 10) is None
