"""Charts as inline SVG, with a legend and the same numbers as a table.

They have no scripts and no styles of their own, so the content security policy need not allow any: colours and sizes
come from the style sheet `evaluation/charts.css`. A value of None is unknown: it is a gap, never a zero. Values are 0
or more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 480, 230
LEFT, RIGHT, TOP, BOTTOM = 58, 470, 14, 198
LARGEST = 1e12  # beyond it, a float is too coarse to put ticks between whole numbers
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


def ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Two to seven round numbers from 0 to one that is not below ``highest``, whole ones where they are to be.

    Raises: ValueError for a number that is negative, not finite or beyond 10^12.
    """
    if not 0 <= highest <= LARGEST:
        raise ValueError("A number below 0 or beyond 10^12, or none, cannot be drawn.")
    least = (highest if highest > 1e-9 else 1.0) / 4
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-12))
    if whole:
        step = max(1.0, math.ceil(step))
    return [number * step for number in range(max(1, math.ceil(highest / step - 1e-9)) + 1)]


def plain_number(value: float) -> str:
    """At most four decimals, without zeros at the end."""
    return f"{value:,.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"


def line_chart(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    *,
    most: float = 0.0,
    number: Number = plain_number,
    links: Links = None,
) -> SafeString:
    """A line for each series, broken where a value is unknown.

    The axis reaches at least to ``most``, such as 1 for shares; ``links`` lead from each label's points to the list
    behind them. Without a known value a sentence says that there is nothing. Raises: ValueError, as :func:`ticks`.
    """
    axis = ticks(max([most, *_known(series)]))
    step = (RIGHT - LEFT - 20) / max(1, len(labels) - 1)
    places = [LEFT + 10 + (index * step if len(labels) > 1 else step / 2) for index in range(len(labels))]
    lines = []
    groups: list[list[dict[str, Any]]] = [[] for _ in labels]
    for order, one in enumerate(series):
        for is_known, run in groupby(range(len(labels)), key=lambda index: one.values[index] is not None):
            points = [(index, places[index], _height(one.values[index] or 0.0, axis)) for index in run]
            if is_known and len(points) > 1:
                lines.append((" ".join(f"{x:.2f},{y:.2f}" for _, x, y in points), order % 6 + 1))
            for index, x, y in points if is_known else ():
                tip = f"{labels[index]}: {number(one.values[index] or 0.0)} ({one.name})"
                groups[index].append({"cx": f"{x:.2f}", "cy": f"{y:.2f}", "tip": tip, "colour": _colour(order)})
    return _figure(caption, labels, series, axis, places, groups, number, links, lines, bool(_known(series)))


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
    Without values, or with nothing but zeros, a sentence says that there is nothing. Raises: ValueError, as
    :func:`ticks`.
    """
    ticks(min([0.0, *_known(series)]))  # none is negative
    totals = [sum(one.values[index] or 0 for one in series) for index in range(len(labels))]
    axis = ticks(max(totals, default=0.0), whole=True)
    slot = (RIGHT - LEFT) / max(1, len(labels))
    groups = []
    for index, label in enumerate(labels):
        below, column = 0.0, []
        for order, one in enumerate(series):
            if value := one.values[index]:
                top = _height(below + value, axis)
                column.append(
                    {
                        "x": f"{LEFT + (index + 0.09) * slot:.2f}",
                        "width": f"{slot * 0.82:.2f}",
                        "y": f"{top:.2f}",
                        "height": f"{_height(below, axis) - top:.2f}",
                        "tip": f"{label}: {number(value)} ({one.name})",
                        "colour": "chart-low" if index < low else _colour(order),
                    }
                )
                below += value
        groups.append(column)
    places = [LEFT + (index + 0.5) * slot for index in range(len(labels))]
    return _figure(caption, labels, series, axis, places, groups, number, links, [], any(totals))


def _known(series: Sequence[Series]) -> list[float]:
    return [value for one in series for value in one.values if value is not None]


def _height(value: float, axis: Sequence[float]) -> float:
    return BOTTOM - (BOTTOM - TOP) * value / axis[-1]


def _colour(order: int) -> str:
    return f"chart-series-{order % 6 + 1}"  # the style sheet has six


def _figure(
    caption: Caption,
    labels: Sequence[str],
    series: Sequence[Series],
    axis: Sequence[float],
    places: Sequence[float],
    groups: Sequence[Sequence[dict[str, Any]]],
    number: Number,
    links: Links,
    lines: Sequence[tuple[str, int]],
    is_drawn: bool,
) -> SafeString:
    """The chart with caption, table, and a legend of several series; without values, a sentence that says so."""
    shown = range(0, len(labels), max(1, math.ceil(len(labels) / 6)))
    context = {
        "caption": caption,
        "is_drawn": is_drawn,
        "role": "group" if links and any(links) else "img",
        "ticks": [(f"{_height(tick, axis):.2f}", f"{_height(tick, axis) + 4:.2f}", number(tick)) for tick in axis],
        # At most six, evenly spaced; those at the right edge end inside the drawing.
        "marks": [(f"{places[i]:.2f}", "end" if places[i] > RIGHT - 22 else "middle", labels[i]) for i in shown],
        "lines": lines,
        "groups": [(links[index] if links else None, shapes) for index, shapes in enumerate(groups) if shapes],
        "names": [(one.name, _colour(order)) for order, one in enumerate(series)],
        "rows": [
            (label, [UNKNOWN if (value := one.values[index]) is None else number(value) for one in series])
            for index, label in enumerate(labels)
        ],
    }
    return render_to_string("admin/evaluation/_chart.html", context)
