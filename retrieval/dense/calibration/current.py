"""The calibration of the embedder that is asked: built in, or fitted for it on this site's documents.

Without one, what is judged by similarity is judged by words, or not at all; whoever looks is told so: by `manage.py
check`, the log, `/readyz`, the dashboard and the debug panel.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from django.db import DatabaseError

from retrieval import conf
from retrieval.dense.calibration.scales import BUILT_IN, BUILT_IN_NAMES, SCALE_VERSION, Calibration, from_json
from retrieval.models import EmbedderCalibration

logger = logging.getLogger(__name__)

# A process that runs learns of a new calibration after this time.
KEPT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Kept:
    calibration: Calibration | None
    until: float


_kept: dict[str, _Kept] = {}
forget_calibrations = _kept.clear


def current_calibration() -> Calibration | None:
    """The calibration of the configured embedder; None, with a warning in the log, when nothing was fitted for it."""
    return calibration_of(conf.embedder().name)


def calibration_of(embedder: str) -> Calibration | None:
    """As :func:`current_calibration`, of the embedder with this name."""
    if embedder in BUILT_IN_NAMES:
        return BUILT_IN
    kept = _kept.get(embedder)
    if kept is None or time.monotonic() >= kept.until:
        found = _stored(embedder)
        if found is None:
            logger.warning("%s", missing_calibration(embedder))
        kept = _kept[embedder] = _Kept(found, time.monotonic() + KEPT_SECONDS)
    return kept.calibration


def uncalibrated_embedder() -> str:
    """The name of the configured embedder when nothing was fitted for it; empty otherwise."""
    return "" if current_calibration() is not None else conf.embedder().name


def missing_calibration(embedder: str) -> str:
    """What to tell an administrator."""
    return (
        f"No thresholds were fitted for the embedder {embedder}: whether documents answer a question is judged by "
        "words alone, and relevancy is not judged. Run `manage.py fit_thresholds`."
    )


def _stored(embedder: str) -> Calibration | None:
    try:
        row = EmbedderCalibration.objects.filter(name=embedder, scale_version=SCALE_VERSION).first()
        return from_json(row.scales) if row is not None else None
    except (DatabaseError, KeyError, ValueError, TypeError) as error:
        logger.warning("The calibration of the embedder %s cannot be read: %s", embedder, error)
        return None
