"""Bars that stand on one another, bars that lie beside their names, and histograms. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from evaluation.charts.figure import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    UNKNOWN,
    WIDTH,
    Caption,
    Markup,
    Number,
    add_link,
    colour,
    element,
    figure,
    label_axis,
    linear,
    plain_number,
    same_lengths,
    spread,
    svg,
    value_axis,
    value_text,
)
from evaluation.charts.lines import Series

ROW = 40
# A longer name would run into the value; the tip and the table have it whole.
MOST_NAME_CHARACTERS = 36
_GAP_SHARE = 0.18


@dataclass(frozen=True, slots=True)
class IntervalBar:
    """A name and its value, with the bounds of its interval where there are some. None: unknown."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def stacked_bars(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    number: Number = plain_number,
    links: Sequence[str | None] | None = None,
) -> Markup:
    """A column for each label: the values of all series on one another, the first at the bottom.

    ``links`` lead from each column to the list behind it. Without values, or with nothing but zeros, a sentence says
    that there is nothing. Raises: ValueError for a negative value, and as :func:`line_chart`.
    """
    for one in series:
        same_lengths(labels, one.values)
        if any(value is not None and value < 0 for value in one.values):
            raise ValueError("Bars that stand on one another cannot be negative.")
    same_lengths(labels, links if links is not None else labels)
    totals = [sum(one.values[index] or 0 for one in series) for index in range(len(labels))]
    scale = linear(totals, BOTTOM, TOP, whole=True)
    slot = (RIGHT - LEFT) / max(1, len(labels))
    shapes = value_axis(scale, number)
    for index, label in enumerate(labels):
        below = 0.0
        column = []
        for order, one in enumerate(series):
            value = one.values[index]
            if not value:
                continue
            top, bottom = scale(below + value), scale(below)
            below += value
            tip = element("title", f"{label}: {number(value)} ({one.name})")
            column.append(
                element(
                    "rect",
                    tip,
                    x=LEFT + (index + _GAP_SHARE / 2) * slot,
                    width=slot * (1 - _GAP_SHARE),
                    y=top,
                    height=bottom - top,
                    class_=f"chart-bar {colour(order)}",
                )
            )
        if column:
            shapes.append(add_link(element("g", *column), links[index] if links is not None else None))
    shapes += label_axis(labels, [LEFT + (index + 0.5) * slot for index in range(len(labels))])
    rows = [
        [label, *(UNKNOWN if (value := one.values[index]) is None else number(value) for one in series)]
        for index, label in enumerate(labels)
    ]
    names = [one.name for one in series]
    return figure(caption, svg(caption, shapes), [caption.axis, *names], rows if any(totals) else [], names)


def interval_bars(
    caption: Caption,
    bars: Sequence[IntervalBar],
    *,
    heading: str = "",
    most: float | None = None,
    reference: float | None = None,
    number: Number = plain_number,
) -> Markup:
    """A bar under each name, with a whisker from the lower to the upper bound of its interval.

    ``heading`` heads the table's column of values; ``reference`` draws a line to compare with. A bar without a value
    shows a dash. Without bars a sentence says that there is nothing. Raises: ValueError for values that cannot be
    drawn.
    """
    numbers = [value for bar in bars for value in (bar.value, bar.low, bar.high, reference) if value is not None]
    scale = linear(numbers, 8, WIDTH - 16, most=most)
    bottom = 4 + ROW * len(bars)
    zero = scale(0.0)
    shapes = []
    for value in scale.ticks:
        at = scale(value)
        shapes.append(element("line", x1=at, x2=at, y1=4, y2=bottom, class_="chart-grid" if value else "chart-zero"))
        anchor = "start" if at < 20 else "end" if at > WIDTH - 30 else "middle"
        shapes.append(element("text", number(value), x=at, y=bottom + 20, class_="chart-label", text_anchor=anchor))
    for order, bar in enumerate(bars):
        top = 4 + ROW * order
        shapes.append(element("text", _shorten(bar.name), x=10, y=top + 15, class_="chart-name"))
        text = value_text(bar.value, bar.bounds, number)
        shapes.append(element("text", text, x=WIDTH - 16, y=top + 15, class_="chart-value", text_anchor="end"))
        if bar.value is None:
            continue
        at = scale(bar.value)
        drawn = [
            element(
                "rect",
                element("title", f"{bar.name}: {text}"),
                x=min(zero, at),
                width=abs(at - zero),
                y=top + 21,
                height=13,
                class_=f"chart-bar {colour(order)}",
            )
        ]
        if bar.bounds is not None:
            (low, high), middle = map(scale, bar.bounds), top + 27.5
            drawn.append(element("line", x1=low, x2=high, y1=middle, y2=middle, class_="chart-whisker"))
            drawn += [
                element("line", x1=x, x2=x, y1=middle - 5, y2=middle + 5, class_="chart-whisker") for x in (low, high)
            ]
        shapes.append(element("g", *drawn))
    if reference is not None:
        at = scale(reference)
        shapes.append(element("line", x1=at, x2=at, y1=4, y2=bottom, class_="chart-reference"))
    rows = [[bar.name, value_text(bar.value, bar.bounds, number)] for bar in bars]
    return figure(caption, svg(caption, shapes, bottom + 30), [caption.axis, heading], rows)


def _shorten(name: str) -> str:
    return name if len(name) <= MOST_NAME_CHARACTERS else f"{name[: MOST_NAME_CHARACTERS - 1]}…"


def histogram(
    caption: Caption,
    edges: Sequence[float],
    counts: Sequence[int],
    *,
    heading: str = "",
    number: Number = plain_number,
    count_number: Number = plain_number,
    threshold: float | None = None,
    links: Sequence[str | None] | None = None,
) -> Markup:
    """A column for each bin: bin i reaches from ``edges[i]`` to ``edges[i + 1]``, and is as wide.

    ``number`` writes the edges, ``count_number`` the counts. ``heading`` heads the table's column of counts; bins below
    ``threshold`` have the colour of what asks for a look. ``links`` lead from each bin to the list behind it. Without a
    single count a sentence says that there is nothing. Raises: ValueError unless the edges ascend and are one more than
    the counts, and for a negative count.
    """
    same_lengths(counts, edges[1:], *([links] if links is not None else []))
    if any(low >= high for low, high in pairwise(edges)):
        raise ValueError("The edges of a histogram ascend.")
    if any(count < 0 for count in counts):
        raise ValueError("A count cannot be negative.")
    scale = linear(counts, BOTTOM, TOP, whole=True)
    shapes = value_axis(scale, count_number)
    rows = []
    if counts:
        first, last = edges[0], edges[-1]
        places = [LEFT + (edge - first) / (last - first) * (RIGHT - LEFT) for edge in edges]
        for index, count in enumerate(counts):
            bin_name = f"{number(edges[index])} – {number(edges[index + 1])}"
            rows.append([bin_name, count_number(count)])
            if not count:
                continue
            low = threshold is not None and edges[index + 1] <= threshold
            bar = element(
                "rect",
                element("title", f"{bin_name}: {count_number(count)}"),
                x=places[index] + 1,
                width=max(0.5, places[index + 1] - places[index] - 2),
                y=scale(count),
                height=scale(0) - scale(count),
                class_="chart-bar chart-low" if low else f"chart-bar {colour(0)}",
            )
            shapes.append(add_link(bar, links[index] if links is not None else None))
        edge_texts = [number(edge) for edge in edges]
        for index in spread(edge_texts):
            anchor = "end" if index == len(edges) - 1 else "middle"
            shapes.append(
                element(
                    "text", edge_texts[index], x=places[index], y=BOTTOM + 20, class_="chart-label", text_anchor=anchor
                )
            )
        if threshold is not None and first <= threshold <= last:
            at = LEFT + (threshold - first) / (last - first) * (RIGHT - LEFT)
            shapes.append(element("line", x1=at, x2=at, y1=TOP, y2=BOTTOM, class_="chart-reference"))
    return figure(caption, svg(caption, shapes), [caption.axis, heading], rows if any(counts) else [])
