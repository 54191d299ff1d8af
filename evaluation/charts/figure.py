"""What all charts share: scales, the frame, the axes, the legend, and the table of the same numbers. PURE."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

# Beyond it a float no longer tells neighbouring whole numbers apart well enough to put ticks between them.
LARGEST = 1e12
# Differences below this share of the values are noise of the arithmetic, not something to draw.
_SMALLEST_SPAN = 1e-9

WIDTH, HEIGHT = 480, 230
LEFT, RIGHT, TOP, BOTTOM = 58, 470, 14, 198
# The style sheet has so many colours.
COLOURS = 6
Number = Callable[[float], str]
UNKNOWN = "–"


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

    ``whole`` keeps ticks off fractions, for things that are counted; it reaches at least to ``most``, such as 1
    for a share. Without values it reaches from 0 to 1. Raises: ValueError for a value that is not finite or larger
    than 10^12.
    """
    finite_values = [check_number(value) for value in values]
    low, high = min([0.0, *finite_values]), max([0.0, *finite_values, check_number(most or 0.0)])
    if high - low < _SMALLEST_SPAN * max(1.0, abs(low), abs(high)):
        high = low + 1.0
    step = _step((high - low) / 4, whole=whole)
    first = math.floor(low / step + _SMALLEST_SPAN)
    last = math.ceil(high / step - _SMALLEST_SPAN)
    ticks = tuple(number * step for number in range(first, last + 1))
    return AxisScale(ticks[0], ticks[-1], ticks, start, end)


def spread(labels: Sequence[str], most: int = 6) -> tuple[int, ...]:
    """The indexes of at most ``most`` evenly spaced labels, the first among them; all of them where they fit."""
    if not labels:
        return ()
    return tuple(range(0, len(labels), math.ceil(len(labels) / most)))


def check_number(value: float) -> float:
    """``value``. Raises: ValueError when it cannot be drawn."""
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{value} cannot be drawn.")
    return float(value)


def _step(least: float, *, whole: bool) -> float:
    """The smallest of 1, 2, 2.5 or 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-12))
    return max(1.0, math.ceil(step)) if whole else step


class Markup(str):
    """Text that is markup already. Templates that ask for `__html__` do not escape it again."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Caption:
    """The words around a chart, in the reader's language.

    ``name`` makes the chart's ids unique on the page: letters, digits and hyphens. ``description`` defines in a
    sentence what is drawn; ``axis`` heads the table's first column.
    """

    name: str
    title: str
    description: str = ""
    axis: str = ""
    as_table: str = "As a table"
    empty: str = "There is nothing to draw yet."

    def __post_init__(self) -> None:
        if not self.name or not self.name.replace("-", "").isalnum() or not self.name.isascii():
            raise ValueError(f"A chart's name consists of letters, digits and hyphens, unlike {self.name!r}.")


def plain_number(value: float) -> str:
    """Up to four digits after the point, none that say nothing."""
    return f"{value:,.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"


def element(tag: str, *children: str, **attributes: object) -> Markup:
    """An element. Attribute values and children are escaped, unless a child is markup.

    Floats are rounded to a hundredth; `class_` is written `class`, and `text_anchor` is `text-anchor`; None is left
    out.
    """
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(_write(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else html.escape(child) for child in children)
    return Markup(f"<{tag}{written}>{inside}</{tag}>")


def svg(caption: Caption, shapes: Sequence[Markup], height: float = HEIGHT) -> Markup:
    title, description = f"{caption.name}-title", f"{caption.name}-description"
    return Markup(
        element(
            "svg",
            element("title", caption.title, id=title),
            element("desc", caption.description, id=description),
            *shapes,
            class_="chart-drawing",
            viewBox=f"0 0 {WIDTH} {_write(height)}",
            # Not "img": what is linked inside has to stay within reach.
            role="group" if any("<a " in shape for shape in shapes) else "img",
            aria_labelledby=title,
            aria_describedby=description,
        )
    )


def figure(
    caption: Caption, drawing: Markup, head: Sequence[str], rows: Sequence[Sequence[str]], legend: Sequence[str] = ()
) -> Markup:
    """The chart in its frame: caption, drawing, legend when there is more than one series, table. Without rows, a
    sentence says that there is nothing."""
    words = [element("figcaption", element("strong", caption.title), " ", element("span", caption.description))]
    if not rows:
        return element("figure", *words, element("p", caption.empty, class_="chart-empty"), class_="chart")
    named = [
        element("li", element("span", class_=f"chart-key {colour(number)}", aria_hidden="true"), name)
        for number, name in enumerate(legend)
    ]
    return element(
        "figure",
        *words,
        drawing,
        *([element("ul", *named, class_="chart-legend")] if len(named) > 1 else []),
        element("details", element("summary", caption.as_table), _table(head, rows), class_="chart-table"),
        class_="chart",
        id=caption.name,
    )


def colour(number: int) -> str:
    return f"chart-series-{number % COLOURS + 1}"


def add_link(shape: Markup, link: str | None) -> Markup:
    """``shape``, leading to ``link`` where there is one. Raises: ValueError for a link that leaves the site."""
    if link is None:
        return shape
    if not link.startswith(("/", "?", "#")) or link.startswith("//"):
        raise ValueError(f"A chart leads to pages of this site, not to {link!r}.")
    return element("a", shape, href=link)


def value_axis(scale: AxisScale, number: Number) -> list[Markup]:
    """Lines across at the ticks, with their numbers at the left."""
    marks = []
    for value in scale.ticks:
        at = scale(value)
        kind = "chart-grid" if value else "chart-zero"
        marks.append(element("line", x1=LEFT, x2=RIGHT, y1=at, y2=at, class_=kind))
        marks.append(element("text", number(value), x=LEFT - 6, y=at + 4, class_="chart-label", text_anchor="end"))
    return marks


def label_axis(labels: Sequence[str], places: Sequence[float]) -> list[Markup]:
    """Some of the labels, under their places; those at the edges stay inside the drawing."""
    marks = []
    for index in spread(labels):
        near_edge = places[index] > RIGHT - 22
        marks.append(
            element(
                "text",
                labels[index],
                x=places[index],
                y=BOTTOM + 20,
                class_="chart-label",
                text_anchor="end" if near_edge else "middle",
            )
        )
    return marks


def same_lengths(labels: Sequence[object], *others: Sequence[object]) -> None:
    if any(len(other) != len(labels) for other in others):
        raise ValueError(f"{len(labels)} labels need {len(labels)} values each.")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    heads = element("tr", *(element("th", name, scope="col") for name in head))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", value) for value in row[1:])) for row in rows
    ]
    return element("table", element("thead", heads), element("tbody", *body))


def _write(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def value_text(value: float | None, bounds: tuple[float, float] | None, number: Number) -> str:
    """The value with the bounds of its interval, where there are some; a dash for None."""
    if value is None or bounds is None:
        return UNKNOWN if value is None else number(value)
    return f"{number(value)} ({number(bounds[0])} – {number(bounds[1])})"
