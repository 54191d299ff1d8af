import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from retrieval.viewer.markdown_marks import MarkedRange, enable_range_marks, render_with_marks

PLAIN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
MARKING = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).use(enable_range_marks)
SIGNS = [
    " ", "\n", "\n\n", "**", "*", "_", "`", "``", "[", "](http://x.y)", "](", ")", "# ", " ##", "> ", "- ", "  - ",
    "1. ", "| ", " |", "|", "\n|---|---|\n", "\n|:--|--:|\n", "```\n", "~~~ py\n", "    ", "\t", "\\", "\\|",
    "&amp;", "&#x41;", "<b>", "<!--", "~~", "![", "]: http://x.y\n", "\n===\n", "\n---\n", "  \n", "<http://x.y>",
    "\r\n", "\ue000", "é", "\0",
]  # fmt: skip


class Reader(HTMLParser):
    """The text that a reader sees, its marked parts, and whether every element is closed in its place."""

    def __init__(self, html):
        super().__init__()
        self.stack = []
        self.seen = self.marked = ""
        self.ids = []
        self.crossed = False
        self.feed(html)
        self.close()
        self.crossed |= bool(self.stack)

    def handle_starttag(self, tag, attrs):
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in ("br", "hr", "img"):
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        return

    def handle_endtag(self, tag):
        self.crossed |= not self.stack or self.stack.pop() != tag

    def handle_data(self, data):
        self.seen += data
        if "mark" in self.stack:
            self.marked += data


def words(text):
    return re.findall(r"w\d+w", text)


@st.composite
def documents(draw):
    pieces = draw(st.lists(st.one_of(st.just("w"), st.sampled_from(SIGNS)), min_size=1, max_size=40))
    return "".join(f"w{number}w" if piece == "w" else piece for number, piece in enumerate(pieces))


@settings(max_examples=100)
@given(documents(), st.data())
@example("# w1w *w2w* ##\n\n> - | w3w | w4w\n", None)
def test_the_marked_words_are_those_of_the_range_and_all_else_stays(text, data):
    found = list(re.finditer(r"w\d+w", text))
    if not found:
        return
    first = data.draw(st.integers(0, len(found) - 1)) if data else 0
    last = data.draw(st.integers(first, len(found) - 1)) if data else len(found) - 1
    mark = MarkedRange(found[first].start(), found[last].end(), {"class": 'a"b'}, id="passage")
    html = render_with_marks(MARKING, text, [mark])
    reader = Reader(html)
    assert re.sub(r"</?mark[^>]*>", "", html) == PLAIN.render(text)
    assert not reader.crossed
    inside = {one.group() for one in found[first : last + 1]}
    assert words(reader.marked) == [word for word in words(reader.seen) if word in inside]
    assert reader.ids == (["passage"] if words(reader.marked) else reader.ids[:1])


@settings(max_examples=50)
@given(documents(), st.lists(st.tuples(st.integers(-3, 90), st.integers(-3, 90)), max_size=5))
def test_any_ranges_leave_the_text_and_whole_elements(text, ranges):
    marks = [MarkedRange(start, end, id=f"m{number}") for number, (start, end) in enumerate(ranges)]
    html = render_with_marks(MARKING, text, marks)
    reader = Reader(html)
    assert re.sub(r"</?mark[^>]*>", "", html) == PLAIN.render(text)
    assert not reader.crossed
    assert len(set(reader.ids)) == len(reader.ids)


@pytest.mark.parametrize(
    ("text", "wanted", "html"),
    [
        ("a word here", "word", "<p>a <mark>word</mark> here</p>\n"),
        ("# Top\n", "# Top", "<h1><mark>Top</mark></h1>\n"),
        (
            "one **two three** four",
            "ne **two",
            "<p>o<mark>ne </mark><strong><mark>two</mark> three</strong> four</p>\n",
        ),
        ("say `a b` now", "say `a b` now", "<p><mark>say <code>a b</code> now</mark></p>\n"),
        ("say `ab` now", "b", "<p>say <code>a<mark>b</mark></code> now</p>\n"),
        ("one\ntwo", "one\ntwo", "<p><mark>one\ntwo</mark></p>\n"),
        ("x &lt; y \\* z", "lt; y \\*", "<p>x <mark>&lt; y *</mark> z</p>\n"),
        ("***a** b", "*a", "<p>*<strong><mark>a</mark></strong> b</p>\n"),
        ("**a***", "*", "<p><strong>a</strong><mark>*</mark></p>\n"),
        ("~~a~~~", "~", "<p><s>a</s><mark>~</mark></p>\n"),
        ("`x` \nword", "word", "<p><code>x</code>\n<mark>word</mark></p>\n"),
        ("# a # a #", "a", "<h1>a # <mark>a</mark></h1>\n"),
        ("1. 1\n", "1\n", "<ol>\n<li><mark>1</mark></li>\n</ol>\n"),
        ("[a](/b)", "/b", '<p><a href="/b">a</a></p>\n'),
        ("\ue000a\ue001", "a", "<p>\ue000<mark>a</mark>\ue001</p>\n"),
        ("    a < b\n    c\n", "< b\n    c", "<pre><code>a <mark>&lt; b\nc</mark>\n</code></pre>\n"),
        ("a\r\n\r\nb word", "word", "<p>a</p>\n<p>b <mark>word</mark></p>\n"),
    ],
)
def test_marks(text, wanted, html):
    start = text.rindex(wanted)
    assert render_with_marks(MARKING, text, [MarkedRange(start, start + len(wanted))]) == html


def test_equal_cells_of_a_row_are_told_apart():
    text = "| a | a \\| a |\n|---|---|\n| b | b |\n"
    assert "<th>a</th>\n<th>a | <mark>a</mark></th>" in render_with_marks(MARKING, text, [MarkedRange(11, 12)])
    at = text.rindex("b")
    assert "<td>b</td>\n<td><mark>b</mark></td>" in render_with_marks(MARKING, text, [MarkedRange(at, at + 1)])


def test_marks_may_overlap_and_have_attributes():
    marks = [MarkedRange(0, 7, {"class": "unsupported"}), MarkedRange(4, 11, {"data-n": '"2"'})]
    assert render_with_marks(MARKING, "one two six", marks) == (
        '<p><mark class="unsupported">one </mark>'
        '<mark class="unsupported"><mark data-n="&quot;2&quot;">two</mark></mark>'
        '<mark data-n="&quot;2&quot;"> six</mark></p>\n'
    )


def test_an_id_stands_once_and_first():
    html = render_with_marks(MARKING, "# one\n\n```\ntwo\n```\n", [MarkedRange(0, 99, id="passage")])
    assert html == '<h1><mark id="passage">one</mark></h1>\n<pre><code><mark>two</mark>\n</code></pre>\n'


def test_a_parser_that_does_not_mark_is_refused():
    with pytest.raises(ValueError, match="enable_range_marks"):
        render_with_marks(PLAIN, "text", [MarkedRange(0, 2)])
