import re
from xml.etree import ElementTree

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from evaluation.charts import BOTTOM, TOP, choose_ticks, draw_line_chart, draw_stacked_bars

WORDS = {
    "name": "questions",
    "title": "Questions a day",
    "description": "How many questions were asked each day.",
    "axis": "Day",
    "empty": "Nobody asked.",
}
counts = st.integers(0, 10**9)
# XML has no control characters; the site's texts come from PostgreSQL, which refuses NUL, and are shown by browsers.
names = st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=20)


def drawn(chart, **words):
    return render_to_string("admin/evaluation/_chart.html", {"chart": chart, **WORDS, **words})


def parsed(chart, **words):
    return ElementTree.fromstring(drawn(chart, **words))  # noqa: S314  (what this site has written itself)


def numbers_of(chart):
    """Return every number in an attribute that places a shape."""
    found = []
    for shape in parsed(chart).iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "points", "r"):
            if name in shape.attrib:
                found += [float(number) for number in re.split("[ ,]", shape.attrib[name])]
    return found


def inside_the_drawing(chart):
    return all(-0.01 <= number <= 480.01 for number in numbers_of(chart))


@given(st.lists(st.tuples(counts, counts, st.none() | counts), min_size=1, max_size=90))
def test_columns_are_as_high_as_their_parts(rows):
    labels = [f"day {number}" for number in range(len(rows))]
    series = {name: [row[index] for row in rows] for index, name in enumerate(("a", "b", "c"))}
    chart = draw_stacked_bars(labels, series, str)
    assert inside_the_drawing(chart)
    totals = [sum(value or 0 for value in row) for row in rows]
    highest = choose_ticks(max(totals), whole=True)[-1]
    columns = parsed(chart).findall(".//svg/g")
    assert len(columns) == sum(total > 0 for total in totals)
    for column, total in zip(columns, [total for total in totals if total], strict=True):
        drawn = sum(float(part.attrib["height"]) for part in column.findall("rect"))
        assert drawn == pytest.approx(total / highest * (BOTTOM - TOP), abs=0.02)
        # Each part begins on top of the one before it, the first on the axis.
        floor = float(BOTTOM)
        for part in column.findall("rect"):
            top, height = float(part.attrib["y"]), float(part.attrib["height"])
            assert top + height == pytest.approx(floor, abs=0.02)
            floor = top


@given(names, names, names)
def test_every_text_is_escaped(title, label, series):
    hostile = f'<script>{label}"&'
    words = {"title": f"<b>{title}", "description": f"'{title}'", "axis": hostile, "empty": hostile}
    charts = [
        draw_line_chart([hostile], {f"<i>{series}": [1.0], series: [2.0]}, str),
        draw_stacked_bars([hostile], {f"<i>{series}": [1.0], series: [2.0]}, str),
        draw_line_chart([], {}, str),
    ]
    for chart in charts:
        root = parsed(chart, **words)
        assert not root.findall(".//script")
        assert not root.findall(".//b")
        assert not root.findall(".//i")
        assert any(hostile in (text or "") for text in root.itertext())


def test_an_unknown_value_is_a_gap_and_not_a_zero():
    chart = draw_line_chart(list("abcde"), {"rate": [0.5, 0.6, None, 0.7, 0.8]}, str, most=1)
    assert len(parsed(chart).findall(".//polyline")) == 2
    assert [cell.text for cell in parsed(chart).findall(".//td")] == ["0.5", "0.6", "–", "0.7", "0.8"]


def test_the_drawing_has_a_name_a_definition_and_a_table():
    root = parsed(draw_stacked_bars(["1 May", "2 May"], {"answered": [3, 4], "refused": [1, 0]}, str))
    svg = root.find(".//svg")
    assert svg.attrib["role"] == "img"
    for attribute, text in (("aria-labelledby", WORDS["title"]), ("aria-describedby", WORDS["description"])):
        (named,) = [shape for shape in svg.iter() if shape.attrib.get("id") == svg.attrib[attribute]]
        assert named.text == text
    rows = [[cell.text for cell in row] for row in root.findall(".//details//tr")]
    assert rows == [["Day", "answered", "refused"], ["1 May", "3", "1"], ["2 May", "4", "0"]]


def test_columns_lead_to_the_list_behind_them_and_low_ones_have_a_colour_of_their_own():
    root = parsed(draw_stacked_bars(["a", "b"], {"answered": [3, 4]}, str, links=["/list/?day=a&x=1", None], low=1))
    assert [link.attrib["href"] for link in root.findall(".//a")] == ["/list/?day=a&x=1"]
    # A picture's insides are hidden from those who do not see it; links have to be reached.
    assert root.find(".//svg").attrib["role"] == "group"
    assert ["chart-low" in bar.attrib["class"] for bar in root.findall(".//rect")] == [True, False]


@given(st.floats(0, 1e12), st.booleans())
def test_ticks_are_round_and_hold_every_value(highest, whole):
    axis = choose_ticks(highest, whole=whole)
    assert 2 <= len(axis) <= 7
    assert axis[0] == 0
    assert axis[-1] >= highest - 1e-6 * max(1.0, highest)
    assert not whole or all(tick == int(tick) for tick in axis)
