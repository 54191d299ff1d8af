"""Marks, hyphens and directions of writing in PDF files."""

import pytest

from retrieval.documents.extraction import extract
from tests.support import bombs


def line(top, *parts, left=60.0, size=11.0):
    """Return the runs of a line: each part as text, or as (text, share of the size, rise in shares of the size)."""
    runs = []
    for part in parts:
        text, share, rise = (part, 1.0, 0.0) if isinstance(part, str) else part
        runs.append((left, top + rise * size, share * size, text))
        left += WIDTH * size * share * len(text)
    return runs


# Helvetica's digits; letters are about as wide.
WIDTH = 0.556


def up(text):
    return (text, 0.65, 0.35)


def down(text):
    return (text, 0.65, -0.15)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["555", up("1"), "555"], "555^1555"),
        (["5 55 10", up("6"), " 55"], "5 55 10^6 55"),
        (["5 55 10", up("-6")], "5 55 10^-6"),
        (["555,555", up("12")], "555,555^12"),
        (["555", up("a")], "555^a"),
        (["55 0", up("2")], "55 0^2"),
        (["55 n", up("2"), "."], "55 n^2."),
        (["need", up("3")], "need^3"),
        (["55", up("nd"), " need"], "55nd need"),
        (["H", down("2"), "0"], "H20"),
        (["5", down("2")], "5_2"),
        ([up("1"), " 5 need"], "1 5 need"),
        ([up("12"), "Need 5"], "12 Need 5"),
        (["need", up("need")], "needneed"),
        (["55", ("55", 0.65, 0.0)], "5555"),
    ],
)
def test_a_raised_or_lowered_mark_never_joins_a_number(make_pdf, parts, expected):
    text = extract(make_pdf([[*line(700, *parts), (60.0, 600.0, 11.0, "The next paragraph.")]]), "m.pdf").text
    assert text.split("\n")[0] == expected


def test_a_raised_mark_in_a_table_is_no_part_of_the_number(make_pdf):
    rows = [
        ("Land", "Population", ""),
        ("Austria", "8,935,112", "3"),
        ("France", "67,413,000", ""),
        ("Germany", "83,190,556", "2"),
    ]
    runs = []
    for at, (name, value, mark) in enumerate(rows):
        top = 700 - 16 * at
        runs += [(60.0, top, 11.0, name), *line(top, value, up(mark) if mark else "", left=200.0)]
        runs.append((340.0, top, 11.0, "Area" if at == 0 else f"{90 - 7 * at} %"))
    text = extract(make_pdf([runs]), "t.pdf").text
    assert "| Austria | 8,935,112^3 | 83 % |" in text


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("a state-of-the-\nart pump", "state-of-the-art"),
        ("send an e-\nmail now", "e-mail"),
        ("de zee-\neend zwemt", "zee-eend"),
        ("talk face-\nto-face here", "face-to-face"),
        ("a USB-\nstick with", "USB-stick"),
        ("the well-\nknown rule", "well-known"),
        ("the installa-\ntion of", "installation"),
        ("een school-\nboek van", "schoolboek"),
        ("the short-\nage of", "shortage"),
        ("all well-\nness of", "wellness"),
    ],
)
def test_a_hyphen_at_a_line_end_stays_where_the_word_has_one(make_pdf, cut, expected):
    assert expected in extract(make_pdf([f"{cut}\nand more."]), "h.pdf").text.split()


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        # From the left, as it is printed.
        ([(60, "42 \u05d1\u05d0")], "\u05d0\u05d1 42"),
        ([(60, "\u05d2 2026 \u05d1\u05d0")], "\u05d0\u05d1 2026 \u05d2"),
        ([(60, "\u05d2 14-\u05d1")], "\u05d1-14 \u05d2"),
    ],
)
def test_words_from_right_to_left_with_numbers_are_one_line(runs, expected):
    signs = sorted({sign for _, text in runs for sign in text})
    codes = {sign: 65 + at for at, sign in enumerate(signs)}
    pairs = b"".join(b"<%02x> <%04x>\n" % (code, ord(sign)) for sign, code in codes.items())
    to_unicode = b"1 begincodespacerange <00> <ff> endcodespacerange %d beginbfchar\n%sendbfchar" % (len(codes), pairs)
    content = b"".join(
        b"BT /F1 11 Tf %d 700 Td <%s> Tj ET " % (left, bytes(map(codes.__getitem__, text)).hex().encode())
        for left, text in runs
    )
    objects = bombs.page(content) | {
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /ToUnicode 6 0 R >>",
        6: bombs.stream(to_unicode),
    }
    assert extract(bombs.pdf(objects), "m.pdf").text.split("\n")[0] == expected
