"""How values are distributed. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from evaluation.charts.figure import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Caption,
    Markup,
    Number,
    colour,
    element,
    figure,
    linked,
    plain_number,
    same_lengths,
    svg,
    value_axis,
)
from evaluation.charts.scale import linear, spread


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
            shapes.append(linked(bar, links[index] if links is not None else None))
        told = [number(edge) for edge in edges]
        for index in spread(told):
            anchor = "end" if index == len(edges) - 1 else "middle"
            shapes.append(
                element("text", told[index], x=places[index], y=BOTTOM + 20, class_="chart-label", text_anchor=anchor)
            )
        if threshold is not None and first <= threshold <= last:
            at = LEFT + (threshold - first) / (last - first) * (RIGHT - LEFT)
            shapes.append(element("line", x1=at, x2=at, y1=TOP, y2=BOTTOM, class_="chart-reference"))
    return figure(caption, svg(caption, shapes), [caption.axis, heading], rows if any(counts) else [])
