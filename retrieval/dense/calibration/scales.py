"""On which scale an embedder's cosines lie. PURE.

What is judged by similarity has thresholds and weights: whether the documents answer a question, whether they support a
sentence, whether two sentences say the same, which unanswered questions belong together, which column a word names.
All of them are on one scale, that of the built-in model, and stand beside what they decide. A calibration belongs to an
embedder: for each kind of comparison a monotone map from its cosines to that scale.

The map takes each quantile of the embedder's cosines to the same quantile of the built-in model's, over the same pairs
of texts (equipercentile equating: Kolen and Brennan, "Test Equating, Scaling, and Linking", 3rd edition, 2014). A
regression would draw what is extreme towards the mean, and thresholds lie where few pairs do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from retrieval.types import Vectors

SCALE_VERSION = 1
"""Raise it when the built-in model's cosines get another scale; what was fitted before is then fitted again."""

QUANTILES = (0, 0.5, 1, 2.5, *range(5, 100, 5), 97.5, 99, 99.5, 100)
"""In per cent; where the maps have their knots."""


class Compared(StrEnum):
    """What a cosine is of. A question is encoded as a question, a text as a document."""

    QUESTION_TEXT = "question, text"
    TEXTS = "two texts"


@dataclass(frozen=True, slots=True)
class Scale:
    """A monotone map, linear between its knots and level outside them. ``cosines`` ascend strictly, ``values`` do not
    descend. Without knots a cosine is its own value."""

    cosines: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def __call__(self, cosines: Vectors) -> Vectors:
        if not self.cosines:
            return cosines
        return np.interp(cosines, self.cosines, self.values).astype(np.float32)

    def cosine_of(self, value: float) -> float:
        """The embedder's own cosine that has this value: what a threshold on the common scale is on its own."""
        return float(np.interp(value, self.values, self.cosines)) if self.cosines else value


@dataclass(frozen=True, slots=True)
class Calibration:
    """The scales of one embedder, in the order of :class:`Compared`."""

    scales: tuple[Scale, ...]

    def scale(self, compared: Compared) -> Scale:
        return self.scales[_PLACES[compared]]

    def as_json(self) -> dict[str, Any]:
        pairs = zip(Compared, self.scales, strict=True)
        return {name.name: [list(scale.cosines), list(scale.values)] for name, scale in pairs}


_PLACES = {compared: place for place, compared in enumerate(Compared)}


def from_json(stored: Mapping[str, Any]) -> Calibration:
    """Raises: KeyError, ValueError or TypeError when it was written by nobody who knew the form."""
    return Calibration(tuple(Scale(*(tuple(map(float, side)) for side in stored[name.name])) for name in Compared))


BUILT_IN = Calibration(tuple(Scale() for _ in Compared))
"""Of the model that all thresholds and weights were fitted with."""
BUILT_IN_NAMES = frozenset({"all-MiniLM-L6-v2/int8", "all-MiniLM-L6-v2/fp32"})


Sample = Mapping[Compared, "Vectors"]
"""An embedder's cosines over pairs of texts, by what was compared; empty for what it cannot compare."""


def fit(own: Sample, reference: Sample) -> Calibration:
    """The calibration of an embedder whose cosines are ``own``, where the built-in model's are ``reference``.

    The order of the pairs does not matter. What either lacks keeps its own scale.
    """
    return Calibration(tuple(_fit_scale(own[each], BUILT_IN.scale(each)(reference[each])) for each in Compared))


def _fit_scale(own: Vectors, reference: Vectors) -> Scale:
    if not len(own) or not len(reference):
        return Scale()
    knots: dict[float, float] = {}
    for cosine, value in zip(np.percentile(own, QUANTILES), np.percentile(reference, QUANTILES), strict=True):
        knots[round(float(cosine), 5)] = round(float(value), 5)
    ordered = sorted(knots.items())
    return Scale(tuple(cosine for cosine, _ in ordered), tuple(value for _, value in ordered))
