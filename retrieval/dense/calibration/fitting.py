"""The calibration of the configured embedder, fitted on the documents of this site and stored under its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings

from retrieval import conf
from retrieval.dense.calibration.current import forget_calibrations
from retrieval.dense.calibration.material import FEWEST_PASSAGES, load_material
from retrieval.dense.calibration.sampling import EncodedPassage, encode_material, sample, separation
from retrieval.dense.calibration.scales import (
    BUILT_IN,
    SCALE_VERSION,
    SHIPPED_CALIBRATIONS,
    Calibration,
    Compared,
    Sample,
    fit,
)
from retrieval.dense.calibration.shipped import SHIPPED
from retrieval.dense.embedders.built_in import OnnxMiniLM
from retrieval.exceptions import NotFitted
from retrieval.models import EmbedderCalibration

if TYPE_CHECKING:
    from retrieval.types import Vectors

LEAST_SEPARATION = 0.7
"""Below it the vectors do not tell what a question is about, whatever scale they are on."""
SHOWN_QUANTILES = (10, 50, 90)

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class FittedScale:
    """Quantiles (SHOWN_QUANTILES) of the cosines of a kind of pairs: the embedder's ``own``, the same ``fitted``, and
    the built-in model's ``reference``. ``off`` is how far fitted quantiles are from the reference's at most, on
    passages that were not fitted on."""

    compared: Compared
    pairs: int
    own: tuple[float, ...]
    fitted: tuple[float, ...]
    reference: tuple[float, ...]
    off: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What was fitted for the embedder ``name``, on how many ``passages`` of the site; ``separation`` is its and
    ``reference_separation`` the built-in model's."""

    name: str
    passages: int
    scales: tuple[FittedScale, ...]
    separation: float
    reference_separation: float


def fit_thresholds(report: Report) -> Fit:
    """Fit and store the calibration of the configured embedder, which holds from then on.

    Raises: NotFitted when there is too little to fit on, or its vectors tell nothing; EmbeddingFailed.
    """
    embedder = conf.embedder()
    if embedder.name in SHIPPED_CALIBRATIONS:
        raise NotFitted("The thresholds of a built-in model come with the site: there is nothing to fit.")
    material = load_material()
    passages = len(material) - len(SHIPPED)
    if passages < FEWEST_PASSAGES:
        raise NotFitted(
            f"There are {passages} passages with a question or a heading and a sentence, and fitting needs "
            f"{FEWEST_PASSAGES}: read more documents first."
        )
    own = encode_material(material, embedder, lambda done, total: report(embedder.name, done, total))
    built_in = OnnxMiniLM(settings.DATA_DIR / "models")
    reference = encode_material(material, built_in, lambda done, total: report(built_in.name, done, total))
    separations = separation(own), separation(reference)
    if separations[0] < LEAST_SEPARATION:
        raise NotFitted(
            f"The vectors of {embedder.name} do not tell the passage that answers a question from another one: the "
            f"right one is nearer for {separations[0]:.0%} of the questions, with the built-in model for "
            f"{separations[1]:.0%}."
        )
    own_sample, reference_sample = sample(own), sample(reference)
    calibration = fit(own_sample, reference_sample)
    EmbedderCalibration.objects.update_or_create(
        name=embedder.name,
        defaults={"scale_version": SCALE_VERSION, "scales": calibration.as_json(), "passages": passages},
    )
    forget_calibrations()
    off = _off(own, reference)
    scales = tuple(
        _fitted_scale(each, calibration, own_sample, reference_sample, off)
        for each in Compared
        if len(own_sample[each])
    )
    return Fit(embedder.name, passages, scales, *separations)


def _off(own: Sequence[EncodedPassage], reference: Sequence[EncodedPassage]) -> dict[Compared, float]:
    """Fitted on every second passage, held against the others."""
    calibration = fit(sample(own[::2]), sample(reference[::2]))
    rest, expected = sample(own[1::2]), sample(reference[1::2])
    return {
        each: float(np.abs(_quantiles(calibration.scale(each)(rest[each])) - _on_scale(expected, each)).max())
        for each in Compared
        if len(rest[each])
    }


def _fitted_scale(
    each: Compared, calibration: Calibration, own: Sample, reference: Sample, off: Mapping[Compared, float]
) -> FittedScale:
    return FittedScale(
        compared=each,
        pairs=len(own[each]),
        own=tuple(_quantiles(own[each]).tolist()),
        fitted=tuple(_quantiles(calibration.scale(each)(own[each])).tolist()),
        reference=tuple(_on_scale(reference, each).tolist()),
        off=off.get(each, 0.0),
    )


def _on_scale(reference: Sample, each: Compared) -> Vectors:
    return _quantiles(BUILT_IN.scale(each)(reference[each]))


def _quantiles(cosines: Vectors) -> Vectors:
    return np.percentile(cosines, SHOWN_QUANTILES).astype(np.float32)
