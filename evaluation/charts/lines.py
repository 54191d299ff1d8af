"""Values over days, or over runs. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.charts.figure import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    AxisScale,
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
    svg,
    value_axis,
    value_text,
)

# Dots on more points than this would hide the line.
MOST_DOTS = 45


@dataclass(frozen=True, slots=True)
class Series:
    """A name and one value for each label; None where it is unknown.

    ``low`` and ``high``, where given, are the bounds of an interval around each value.
    """

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    area: bool = False

    def bounds(self, index: int) -> tuple[float, float] | None:
        if self.low is None or self.high is None:
            return None
        low, high = self.low[index], self.high[index]
        return None if low is None or high is None else (low, high)


def line_chart(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    most: float | None = None,
    number: Number = plain_number,
    links: Sequence[str | None] | None = None,
) -> Markup:
    """A line, or an area, for each series, broken where a value is unknown.

    The axis reaches at least to ``most``, such as 1 for shares; ``links`` lead from each label's points to the list
    behind them. Without a known value a sentence says that there is nothing. Raises: ValueError for series of other
    lengths than ``labels``, and for values that cannot be drawn.
    """
    for one in series:
        same_lengths(labels, one.values, *(bound for bound in (one.low, one.high) if bound is not None))
    same_lengths(labels, links if links is not None else labels)
    numbers = [value for one in series for value in one.values if value is not None]
    bounds = [bound for one in series for index in range(len(labels)) for bound in one.bounds(index) or ()]
    scale = linear([*numbers, *bounds], BOTTOM, TOP, most=most)
    places = [_place(index, len(labels)) for index in range(len(labels))]
    shapes = [*value_axis(scale, number), *label_axis(labels, places)]
    for order, one in enumerate(series):
        shapes += _line(one, places, scale, colour(order))
        for index, value in enumerate(one.values):
            if value is None or (len(labels) > MOST_DOTS and links is None):
                continue
            title = element("title", f"{labels[index]}: {value_text(value, one.bounds(index), number)} ({one.name})")
            kind = f"chart-dot {colour(order)}"
            dot = element("circle", title, cx=places[index], cy=scale(value), r=2.5, class_=kind)
            shapes.append(add_link(dot, links[index] if links is not None else None))
    rows = [
        [label, *(value_text(one.values[index], one.bounds(index), number) for one in series)]
        for index, label in enumerate(labels)
    ]
    names = [one.name for one in series]
    return figure(caption, svg(caption, shapes), [caption.axis, *names], rows if numbers else [], names)


def _place(index: int, number: int) -> float:
    width = RIGHT - LEFT - 20
    return LEFT + 10 + (width / 2 if number == 1 else index * width / (number - 1))


def _runs(series: Series) -> list[list[int]]:
    """The stretches of indexes between unknown values."""
    runs: list[list[int]] = [[]]
    for index, value in enumerate(series.values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(index)
    return [run for run in runs if run]


def _line(series: Series, places: Sequence[float], scale: AxisScale, kind: str) -> list[Markup]:
    """The intervals and the line, with its area where it has one."""
    shapes = []
    for index, at in enumerate(places):
        if (bounds := series.bounds(index)) is not None:
            low, high = map(scale, bounds)
            shapes.append(element("line", x1=at, x2=at, y1=low, y2=high, class_=f"chart-whisker {kind}"))
    for run in _runs(series):
        points = [(places[index], scale(series.values[index] or 0.0)) for index in run]
        if series.area:
            base = scale(0.0)
            corners = [(points[0][0], base), *points, (points[-1][0], base)]
            shapes.append(element("polygon", points=_points(corners), class_=f"chart-area {kind}"))
        if len(points) == 1:
            # A known value between two unknown ones is no line.
            (x, y), *_ = points
            shapes.append(element("circle", cx=x, cy=y, r=2.5, class_=f"chart-dot {kind}"))
        else:
            shapes.append(element("polyline", points=_points(points), class_=f"chart-line {kind}"))
    return shapes


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
