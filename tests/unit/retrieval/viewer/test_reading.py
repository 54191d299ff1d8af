import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.text.extracted import find_sections_above
from retrieval.viewer.plain_text import (
    Heading,
    HtmlWriter,
    find_page_number,
    parse_passage,
    unwrap_lines,
    write_code,
    write_text_as_html,
)

places = st.integers(min_value=-5, max_value=400)
PAGE_BREAK = re.compile(r'<div class="page-break" id="page-(\d+)">\d+</div>')


def text_of(html):
    return unescape(re.sub(r"<[^>]+>", "", PAGE_BREAK.sub("", html)))


@given(
    text=st.text(alphabet="ab \n#é'<&\u2028\r\t{}", max_size=300),
    starts=st.lists(places, max_size=5),
    pages=st.lists(places, max_size=5),
    first=places,
    length=st.integers(1, 100),
)
def test_what_is_written_is_the_text_and_the_mark_is_the_passage(text, starts, pages, first, length):
    passage = parse_passage(text, str(first), str(first + length))
    sections = [Heading(start, 1, "x") for start in sorted(starts)]
    numbered = [(number, start, start + 1) for number, start in enumerate(pages, 1)]

    def lay_out(writer):
        write_text_as_html(writer, numbered, sections)

    for write in (write_code, lay_out):
        writer = HtmlWriter(text, passage)
        write(writer)
        html = "".join(writer.html_parts)
        assert text_of(html) == text
        marks = re.findall(r"<mark[^>]*>([^<]*)</mark>", html)
        assert unescape("".join(marks)) == (text[passage[0] : passage[1]] if passage else "")
        assert html.count('id="passage"') == bool(passage) == writer.has_marked


@pytest.mark.parametrize(
    ("start", "end", "passage"),
    [
        *((start, end, None) for start, end in [(None, None), ("", ""), ("3", None), ("-1", "4"), ("4", "4")]),
        *((start, end, None) for start, end in [("19", "22"), ("x", "4"), ("1" * 99, "2" * 99), ("1", "3")]),
        ("5", "99", (5, 9)),
        # It begins and ends with words.
        ("1", "7", (4, 6)),
    ],
)
def test_a_passage_is_named_by_two_places(start, end, passage):
    assert parse_passage("a\n\n bc de", start, end) == passage


@pytest.mark.parametrize(
    ("write", "line", "parts"),
    [
        (write_text_as_html, "a line of text\n", 7),
        (write_text_as_html, "a text without an end ", 1),
        (write_code, "x = 1\n", 26),
    ],
)
def test_long_text_comes_in_parts(write, line, parts):
    text = line * 5200
    writer = HtmlWriter(text, (100, 120))
    write(writer)
    assert len(writer.html_parts) == parts
    assert "".join(map(text_of, writer.html_parts)) == text


def test_headings_and_pages_have_their_places():
    text = "## Top\nwords\n\nMore\nlast"
    writer = HtmlWriter(text, (0, 3))
    write_text_as_html(
        writer, [(1, 0, 14), (2, 14, 23)], [Heading(0, 2, "Top"), Heading(14, 7, "More")], page_label="p {}"
    )
    assert writer.html_parts == [
        '<div class="page-break" id="page-1">p 1</div><h3 class="heading level-2" id="section-0"><span class="syntax">'
        '<mark id="passage">## </mark></span>Top</h3>\nwords\n\n',
        '<div class="page-break" id="page-2">p 2</div><h6 class="heading level-7" id="section-14"><span class="syntax">'
        "</span>More</h6>\nlast",
    ]


def test_lines_of_a_paragraph_are_joined_at_the_same_offsets():
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


def test_where_a_passage_stands():
    sections = [Heading(0, 1, "A"), Heading(10, 2, "A.1"), Heading(20, 1, "B"), Heading(30, 3, "B.1.1")]
    assert [section.title for section in find_sections_above(sections, 15)] == ["A", "A.1"]
    assert [section.title for section in find_sections_above(sections, 35)] == ["B", "B.1.1"]
    assert find_page_number([(1, 0, 10), (2, 10, 20)], 10) == 2
    assert find_page_number([(1, 0, 10)], 10) is None
