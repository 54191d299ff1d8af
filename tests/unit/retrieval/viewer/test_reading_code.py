import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from retrieval.viewer.plain_text import render_code_lines

PYTHON = '''def f(x):
    """Doc <b>
    of two lines."""
    return x + 1  # done
'''


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


@given(
    st.text(alphabet="ab \n\"'#<&\u2028\r\t{}", max_size=120),
    st.integers(0, 120),
    st.integers(1, 60),
)
def test_the_lines_are_the_text_and_the_mark_is_the_passage(text: str, start: int, length: int) -> None:
    passage = (start, min(start + length, len(text)))
    html = "".join(render_code_lines(text, passage if passage[0] < passage[1] else None))
    assert text_of(html) == text
    marks = re.findall(r"<mark[^>]*>([^<]*)</mark>", html)
    assert unescape("".join(marks)) == text[passage[0] : passage[1]]
    assert html.count('id="passage"') == (passage[0] < passage[1])
    assert re.findall(r'id="L(\d+)"', html) == [str(n) for n in range(1, text.rstrip("\n").count("\n") + 2)] or (
        text.endswith("\n")
    )


def test_lines_have_numbers_and_the_passage_its_lines() -> None:
    start = PYTHON.index("of two")
    html = "".join(render_code_lines(PYTHON, (start, PYTHON.index("x + 1")), "Line {}"))
    lines = re.findall(r'<span class="line( is-marked)?"><a class="line-number" id="L(\d)" href="#L\d" data-line="(\d)"'
                       r' aria-label="Line \d"( tabindex=-1)?></a>', html)  # fmt: skip
    assert [(bool(marked), number, bool(skipped)) for marked, number, _shown, skipped in lines] == [
        (False, "1", True), (False, "2", True), (True, "3", False), (True, "4", False),
    ]  # fmt: skip


def test_long_code_comes_in_parts() -> None:
    text = "x = 1\n" * 60_000
    parts = render_code_lines(text, None)
    assert len(parts) == 300
    assert "".join(map(text_of, parts)) == text
