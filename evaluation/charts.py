"""Charts as inline SVG, with a legend and the same numbers as a table.

They have no scripts and no styles of their own, so the content security policy need not allow any: colours and sizes
come from the style sheet `evaluation/charts.css`. Each function returns markup in which every text is escaped. A value
of None is unknown: it is a gap, never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils.html import conditional_escape, escape
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 480, 230
LEFT, RIGHT, TOP, BOTTOM = 58, 470, 14, 198
LARGEST = 1e12  # beyond it, a float is too coarse to put ticks between whole numbers
_SMALLEST_SPAN = 1e-9  # of the values; less is a rounding error
UNKNOWN = "–"
Number = Callable[[float], str]
Links = Sequence[str | None] | None


@dataclass(frozen=True, slots=True)
class Caption:
    """The words around a chart, in the reader's language.

    ``name`` makes the chart's ids unique on the page. ``description`` says in a sentence what is drawn; ``axis`` heads
    the table's first column.
    """

    name: str
    title: str
    description: str = ""
    axis: str = ""
    as_table: str = "As a table"
    empty: str = "There is nothing to draw yet."


@dataclass(frozen=True, slots=True)
class Series:
    """A name and one value for each label; None where it is unknown."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A linear map of [low, high] to [start, end], with round numbers in between. low < high."""

    low: float
    high: float
    ticks: tuple[float, ...]
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The place of ``value``; what lies outside is put at the nearer end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def linear(
    values: Iterable[float], start: float, end: float, *, whole: bool = False, most: float | None = None
) -> AxisScale:
    """A scale that holds 0 and all ``values``, from a round number to a round number, with two to seven ticks.

    ``whole`` puts ticks on whole numbers only, for counts; the scale reaches at least to ``most``, such as 1 for a
    share. Without values it reaches from 0 to 1. Raises: ValueError for a value that is not finite or beyond 10^12.
    """
    numbers = [0.0, most or 0.0, *values]
    if any(not math.isfinite(value) or abs(value) > LARGEST for value in numbers):
        raise ValueError("A number beyond 10^12, or none, cannot be drawn.")
    low, high = min(numbers), max(numbers)
    if high - low < _SMALLEST_SPAN * max(1.0, abs(low), abs(high)):
        high = low + 1.0
    least = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-12))
    if whole:
        step = max(1.0, math.ceil(step))
    first, last = math.floor(low / step + _SMALLEST_SPAN), math.ceil(high / step - _SMALLEST_SPAN)
    ticks = tuple(number * step for number in range(first, last + 1))
    return AxisScale(ticks[0], ticks[-1], ticks, start, end)


def plain_number(value: float) -> str:
    """At most four decimals, without zeros at the end."""
    return f"{value:,.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"


def line_chart(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    most: float | None = None,
    number: Number = plain_number,
    links: Links = None,
) -> SafeString:
    """A line for each series, broken where a value is unknown.

    The axis reaches at least to ``most``, such as 1 for shares; ``links`` lead from each label's points to the list
    behind them. Without a known value a sentence says that there is nothing. Raises: ValueError for series of other
    lengths than ``labels``, and for values that cannot be drawn.
    """
    _check_lengths(labels, links, *(one.values for one in series))
    indexes = range(len(labels))
    texts = [[_value_text(value, number) for value in one.values] for one in series]
    known = [value for one in series for value in one.values if value is not None]
    scale = linear(known, BOTTOM, TOP, most=most)
    step = (RIGHT - LEFT - 20) / max(1, len(labels) - 1)
    places = [LEFT + 10 + (index * step if len(labels) > 1 else step / 2) for index in indexes]
    shapes = [*_value_axis(scale, number), *_label_axis(labels, places)]
    for order, one in enumerate(series):
        for is_known, run in groupby(indexes, key=lambda index: one.values[index] is not None):
            points = [(places[index], scale(one.values[index] or 0.0)) for index in run]
            if is_known and len(points) > 1:
                path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
                shapes.append(_element("polyline", points=path, class_=f"chart-line {_colour(order)}"))
        for index, value in enumerate(one.values):
            if value is not None:
                tip = _element("title", f"{labels[index]}: {texts[order][index]} ({one.name})")
                kind = f"chart-dot {_colour(order)}"
                dot = _element("circle", tip, cx=places[index], cy=scale(value), r=2.5, class_=kind)
                shapes.append(_link(dot, links, index))
    names = [one.name for one in series]
    rows = [[label, *(text[index] for text in texts)] for index, label in enumerate(labels)]
    return _figure(caption, shapes, [caption.axis, *names], rows if known else [], names)


def stacked_bars(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    number: Number = plain_number,
    links: Links = None,
    low: int = 0,
) -> SafeString:
    """A column for each label: the values of all series on one another, the first at the bottom.

    The first ``low`` columns have the colour of a warning. ``links`` lead from each column to the list behind it.
    Without values, or with nothing but zeros, a sentence says that there is nothing. Raises: ValueError for a negative
    value, and as :func:`line_chart`.
    """
    _check_lengths(labels, links, *(one.values for one in series))
    if any(value is not None and value < 0 for one in series for value in one.values):
        raise ValueError("Bars that stand on one another cannot be negative.")
    totals = [sum(one.values[index] or 0 for one in series) for index in range(len(labels))]
    scale = linear(totals, BOTTOM, TOP, whole=True)
    slot = (RIGHT - LEFT) / max(1, len(labels))
    shapes = _value_axis(scale, number)
    for index, label in enumerate(labels):
        below, column = 0.0, []
        for order, one in enumerate(series):
            if value := one.values[index]:
                tip = f"{label}: {number(value)} ({one.name})"
                left, top = LEFT + (index + 0.09) * slot, scale(below + value)
                kind = "chart-low" if index < low else _colour(order)
                column.append(_bar(tip, left, slot * 0.82, top, scale(below) - top, kind))
                below += value
        if column:
            shapes.append(_link(_element("g", *column), links, index))
    shapes += _label_axis(labels, [LEFT + (index + 0.5) * slot for index in range(len(labels))])
    rows = [[label, *(_value_text(one.values[i], number) for one in series)] for i, label in enumerate(labels)]
    names = [one.name for one in series]
    return _figure(caption, shapes, [caption.axis, *names], rows if any(totals) else [], names)


def _check_lengths(labels: Sequence[object], *others: Sequence[object] | None) -> None:
    if any(other is not None and len(other) != len(labels) for other in others):
        raise ValueError(f"{len(labels)} labels need {len(labels)} values each.")


def _value_text(value: float | None, number: Number) -> str:
    return UNKNOWN if value is None else number(value)


def _colour(order: int) -> str:
    return f"chart-series-{order % 6 + 1}"  # the style sheet has six


def _element(tag: str, *children: str, **attributes: object) -> SafeString:
    """An element. Attribute values and children are escaped, unless a child is markup.

    Floats are rounded to a hundredth; `class_` is written `class`, and `text_anchor` is `text-anchor`.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="'
        f'{escape(f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value)}"'
        for name, value in attributes.items()
    )
    inside = "".join(map(conditional_escape, children))
    return SafeString(f"<{tag}{written}>{inside}</{tag}>")


def _line(x1: float, x2: float, y1: float, y2: float, kind: str) -> SafeString:
    return _element("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def _text(text: str, x: float, y: float, anchor: str) -> SafeString:
    return _element("text", text, x=x, y=y, class_="chart-label", text_anchor=anchor)


def _bar(tip: str, x: float, width: float, y: float, height: float, kind: str) -> SafeString:
    kind = f"chart-bar {kind}"
    return _element("rect", _element("title", tip), x=x, width=width, y=y, height=height, class_=kind)


def _link(shape: SafeString, links: Links, index: int) -> SafeString:
    """``shape``, leading to its link where there is one. Raises: ValueError for a link that leaves the site."""
    if links is None or (link := links[index]) is None:
        return shape
    if not link.startswith(("/", "?", "#")) or link.startswith("//"):
        raise ValueError(f"A chart leads to pages of this site, not to {link!r}.")
    return _element("a", shape, href=link)


def _value_axis(scale: AxisScale, number: Number) -> list[SafeString]:
    """Lines across at the ticks, with their numbers at the left."""
    places = [(value, scale(value)) for value in scale.ticks]
    lines = [_line(LEFT, RIGHT, at, at, "chart-grid" if value else "chart-zero") for value, at in places]
    return lines + [_text(number(value), LEFT - 6, at + 4, "end") for value, at in places]


def _label_axis(labels: Sequence[str], places: Sequence[float]) -> list[SafeString]:
    """At most six of the labels under their places, evenly spaced; those at the right edge end inside the drawing."""
    shown = range(0, len(labels), max(1, math.ceil(len(labels) / 6)))
    return [_text(labels[i], places[i], BOTTOM + 20, "end" if places[i] > RIGHT - 22 else "middle") for i in shown]


def _figure(
    caption: Caption,
    shapes: Sequence[SafeString],
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    legend: Sequence[str],
) -> SafeString:
    """The chart with caption, table, and a legend of several series; without rows, a sentence that there is nothing."""
    parts = [_element("figcaption", _element("strong", caption.title), " ", _element("span", caption.description))]
    if not rows:
        return _element("figure", *parts, _element("p", caption.empty, class_="chart-empty"), class_="chart")
    title, description = f"{caption.name}-title", f"{caption.name}-description"
    attributes = {"aria_labelledby": title, "aria_describedby": description, "class_": "chart-drawing"}
    # A picture hides what is in it from assistive technology, and links must be reached.
    role = "group" if any("<a " in shape for shape in shapes) else "img"
    words = [_element("title", caption.title, id=title), _element("desc", caption.description, id=description)]
    parts.append(_element("svg", *words, *shapes, viewBox=f"0 0 {WIDTH} {HEIGHT}", role=role, **attributes))
    if len(legend) > 1:
        keys = [_element("span", class_=f"chart-key {_colour(i)}", aria_hidden="true") for i in range(len(legend))]
        named = [_element("li", key, name) for key, name in zip(keys, legend, strict=True)]
        parts.append(_element("ul", *named, class_="chart-legend"))
    heads = _element("tr", *(_element("th", name, scope="col") for name in head))
    body = [
        _element("tr", _element("th", name, scope="row"), *(_element("td", value) for value in values))
        for name, *values in rows
    ]
    table = _element("table", _element("thead", heads), _element("tbody", *body))
    parts.append(_element("details", _element("summary", caption.as_table), table, class_="chart-table"))
    return _element("figure", *parts, class_="chart", id=caption.name)
