"""Compute charts, which `admin/evaluation/_chart.html` draws as inline SVG, with a legend and a table of the numbers.

The template also needs ``name`` (makes ids unique), ``title``, ``description``, ``axis`` and ``empty``. Values are 0 or
more; None is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle, groupby
from typing import TypedDict

LEFT, RIGHT, TOP, BOTTOM = 58, 470, 14, 198
UNKNOWN = "–"
COLOURS = [f"chart-series-{number}" for number in range(1, 7)]
Number = Callable[[float], str]
Series = Mapping[str, Sequence[float | None]]
Links = Sequence[str | None] | None


class LinePoint(TypedDict):
    cx: str
    cy: str
    tip: str
    colour: str


class ChartColumnSegment(TypedDict):
    x: str
    width: str
    y: str
    height: str
    tip: str
    colour: str


class ChartFrame(TypedDict):
    """The parts that all charts have. Positions are SVG units.

    - ``ticks``: for each horizontal line its height, the label's height, and the label.
    - ``marks``: for each label below the axis its position, text anchor and text.
    - ``groups``: for each such label a link or None, and the shapes above it.
    - ``names``: the series with their colours.
    - ``rows``: the rows of the table below the chart.
    """

    role: str
    ticks: list[tuple[str, str, str]]
    marks: list[tuple[str, str, str]]
    groups: list[tuple[str | None, Sequence[LinePoint | ChartColumnSegment]]]
    names: list[tuple[str, str]]
    rows: list[tuple[str, list[str]]]


class Drawing(ChartFrame):
    """A line chart, ready to be drawn. Each of ``lines`` has the points of a line, and its colour."""

    lines: list[tuple[str, str]]
    is_drawn: bool


def choose_ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Return two to seven round numbers from 0 to at least ``highest``; integers if ``whole``."""
    least = (highest if highest > 1e-9 else 1.0) / 4
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-12))
    if whole:
        step = max(1.0, math.ceil(step))
    return [number * step for number in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def draw_line_chart(
    labels: Sequence[str], series: Series, number: Number, *, most: float = 0.0, links: Links = None
) -> Drawing:
    """Draw a line for each series, with a gap where a value is unknown.

    The axis reaches ``most`` and all values. ``number`` formats a value, ``links`` has an address for each label.
    """
    known = [value for values in series.values() for value in values if value is not None]
    axis = choose_ticks(max([most, *known]))
    step = (RIGHT - LEFT - 20) / max(1, len(labels) - 1)
    places = [LEFT + 10 + (index * step if len(labels) > 1 else step / 2) for index in range(len(labels))]
    lines = []
    groups: list[list[LinePoint]] = [[] for _ in labels]
    for (name, values), colour in zip(series.items(), cycle(COLOURS), strict=False):
        for is_known, run in groupby(range(len(labels)), key=lambda index: values[index] is not None):
            points = [(index, places[index], _compute_height(values[index] or 0.0, axis)) for index in run]
            if is_known and len(points) > 1:
                lines.append((" ".join(f"{x:.2f},{y:.2f}" for _, x, y in points), colour))
            for index, x, y in points if is_known else ():
                tip = f"{labels[index]}: {number(values[index] or 0.0)} ({name})"
                groups[index].append({"cx": f"{x:.2f}", "cy": f"{y:.2f}", "tip": tip, "colour": colour})
    return {**_draw_frame(labels, series, number, axis, places, groups, links), "lines": lines, "is_drawn": bool(known)}


def draw_stacked_bars(
    labels: Sequence[str], series: Series, number: Number, *, links: Links = None, low: int = 0
) -> Drawing:
    """Draw a column for each label: the values of all series on top of each other, the first at the bottom.

    The first ``low`` columns have the colour of a warning.
    """
    totals = [sum(values[index] or 0 for values in series.values()) for index in range(len(labels))]
    axis = choose_ticks(max(totals, default=0.0), whole=True)
    slot = (RIGHT - LEFT) / max(1, len(labels))
    groups = []
    for index, label in enumerate(labels):
        below = 0.0
        column: list[ChartColumnSegment] = []
        for (name, values), colour in zip(series.items(), cycle(COLOURS), strict=False):
            if value := values[index]:
                top = _compute_height(below + value, axis)
                column.append(
                    {
                        "x": f"{LEFT + (index + 0.09) * slot:.2f}",
                        "width": f"{slot * 0.82:.2f}",
                        "y": f"{top:.2f}",
                        "height": f"{_compute_height(below, axis) - top:.2f}",
                        "tip": f"{label}: {number(value)} ({name})",
                        "colour": "chart-low" if index < low else colour,
                    }
                )
                below += value
        groups.append(column)
    places = [LEFT + (index + 0.5) * slot for index in range(len(labels))]
    return {**_draw_frame(labels, series, number, axis, places, groups, links), "lines": [], "is_drawn": any(totals)}


def _compute_height(value: float, axis: Sequence[float]) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / axis[-1]


def _draw_frame(
    labels: Sequence[str],
    series: Series,
    number: Number,
    axis: Sequence[float],
    places: Sequence[float],
    groups: Sequence[Sequence[LinePoint | ChartColumnSegment]],
    links: Links,
) -> ChartFrame:
    shown = range(0, len(labels), max(1, math.ceil(len(labels) / 6)))
    return {
        "role": "group" if links and any(links) else "img",
        "ticks": [
            (f"{_compute_height(tick, axis):.2f}", f"{_compute_height(tick, axis) + 4:.2f}", number(tick))
            for tick in axis
        ],
        "marks": [(f"{places[i]:.2f}", "end" if places[i] > RIGHT - 22 else "middle", labels[i]) for i in shown],
        "groups": [(links[index] if links else None, shapes) for index, shapes in enumerate(groups) if shapes],
        "names": list(zip(series, cycle(COLOURS), strict=False)),
        "rows": [
            (label, [UNKNOWN if (value := values[index]) is None else number(value) for values in series.values()])
            for index, label in enumerate(labels)
        ],
    }
