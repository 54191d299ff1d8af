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
    """What a cosine is of. A question is encoded as a question, a text as a document; ``SIGNS`` are of the tokens of a
    passage, as the index keeps them, ``MEAN`` is the mean of those of a sentence."""

    QUESTION_TEXT = "question, text"
    QUESTION_MEAN = "question, mean of a text's signs"
    QUESTION_TOKENS = "question's token, nearest token"
    QUESTION_SIGNS = "question's token, nearest signs"
    TEXTS = "two texts"
    TEXT_TOKENS = "text's token, nearest token"
    TEXT_SIGNS = "text's token, nearest signs"


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
    """The scales of one embedder, in the order of :class:`Compared`; those of tokens are without effect for one that
    has no token vectors."""

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


def _linear(slope: float, offset: float = 0.0) -> Scale:
    return Scale((-1.0, 1.0), (offset - slope, offset + slope))


# A cosine with the signs of a vector is smaller than with the vector itself, by sqrt(2 / pi) for coordinates that are
# normally distributed (Charikar, "Similarity Estimation Techniques from Rounding Algorithms", STOC 2002). The factors
# were measured where they count: of the unit that comes closest (docs/adr/0035).
_SIGNS = _linear(1.34)
_BUILT_IN = {
    Compared.QUESTION_MEAN: _linear(1.19, 0.03),
    Compared.QUESTION_SIGNS: _SIGNS,
    Compared.TEXT_SIGNS: _SIGNS,
}
BUILT_IN = Calibration(tuple(_BUILT_IN.get(each, Scale()) for each in Compared))
"""Of the model that all thresholds and weights were fitted with."""
BUILT_IN_NAMES = frozenset({"all-MiniLM-L6-v2/int8", "all-MiniLM-L6-v2/fp32"})
_MULTILINGUAL_E5 = {
    Compared.QUESTION_TEXT: Scale(
        (0.699, 0.752, 0.811, 0.828, 0.85, 0.902, 0.95, 0.976), (-0.13, -0.06, 0.11, 0.2, 0.4, 0.71, 0.95, 0.97)
    ),
    Compared.TEXTS: Scale(
        (0.733, 0.768, 0.831, 0.844, 0.865, 0.88, 0.916, 1.0), (-0.14, -0.06, 0.13, 0.2, 0.41, 0.5, 0.67, 1.0)
    ),
}
SHIPPED_CALIBRATIONS = dict.fromkeys(BUILT_IN_NAMES, BUILT_IN) | dict.fromkeys(
    ("multilingual-e5-small/int8", "multilingual-e5-small/fp32"),
    Calibration(tuple(_MULTILINGUAL_E5.get(each, Scale()) for each in Compared)),
)
"""By the names of the embedders that come with the site; multilingual-e5-small's was fitted on 240 passages of the demo
by `manage.py fit_thresholds`."""


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
