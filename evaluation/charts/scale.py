"""From values to places on the drawing. PURE."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Beyond it a float no longer tells neighbouring whole numbers apart well enough to put ticks between them.
LARGEST = 1e12
# Differences below this share of the values are noise of the arithmetic, not something to draw.
_SMALLEST_SPAN = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
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
) -> Scale:
    """A scale that holds 0 and all ``values``, from a round number to a round number, with two to seven ticks.

    ``whole`` keeps ticks off fractions, for things that are counted; it reaches at least to ``most``, such as 1
    for a share. Without values it reaches from 0 to 1. Raises: ValueError for a value that is not finite or larger
    than 10^12.
    """
    held = [checked(value) for value in values]
    low, high = min([0.0, *held]), max([0.0, *held, checked(most or 0.0)])
    if high - low < _SMALLEST_SPAN * max(1.0, abs(low), abs(high)):
        high = low + 1.0
    step = _step((high - low) / 4, whole=whole)
    first = math.floor(low / step + _SMALLEST_SPAN)
    last = math.ceil(high / step - _SMALLEST_SPAN)
    ticks = tuple(number * step for number in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], ticks, start, end)


def spread(labels: Sequence[str], most: int = 6) -> tuple[int, ...]:
    """The indexes of at most ``most`` evenly spaced labels, the first among them; all of them where they fit."""
    if not labels:
        return ()
    return tuple(range(0, len(labels), math.ceil(len(labels) / most)))


def checked(value: float) -> float:
    """``value``. Raises: ValueError when it cannot be drawn."""
    if not math.isfinite(value) or abs(value) > LARGEST:
        raise ValueError(f"{value} cannot be drawn.")
    return float(value)


def _step(least: float, *, whole: bool) -> float:
    """The smallest of 1, 2, 2.5 or 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= least * (1 - 1e-12))
    return max(1.0, math.ceil(step)) if whole else step
