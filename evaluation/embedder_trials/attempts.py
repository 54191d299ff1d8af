"""Try an embedder in a worker: download it, encode the passages, calibrate it, measure it, and switch to it on request.

The site keeps its embedder during the trial. A dead worker loses at most one batch.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from core.exceptions import LeaseLost, RagsiteError
from core.job_queue import enqueue
from core.jobs import acquire_lease, build_retry_due_condition, heartbeat
from evaluation.embedder_trials.comparison import measure_embedders
from evaluation.embedder_trials.known_embedders import find_known_embedder
from evaluation.embedder_trials.progress import TrialProgress, TrialTimeExceeded
from evaluation.exceptions import EvaluationError
from evaluation.models import EmbedderTrial
from retrieval.exceptions import CalibrationFailed, EmbedderMisconfigured
from retrieval.index import closeness, embedder_choice, reembedding
from retrieval.index.embedders.onnx import LocalEmbedder, OnnxEmbedder

if TYPE_CHECKING:
    from retrieval.protocols import TextEmbedder

logger = logging.getLogger(__name__)

Step = EmbedderTrial.Step


def continue_embedder_trial(trial_id: int) -> EmbedderTrial | None:
    """Continue the trial for a limited time and return it; None if another worker is running it."""
    waiting = EmbedderTrial.unfinished().filter(build_retry_due_condition())
    trial = acquire_lease(waiting, trial_id, status=EmbedderTrial.RUNNING)
    if trial is None:
        return None
    try:
        with heartbeat(trial):
            _run_trial_steps(trial, TrialProgress(trial))
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except TrialTimeExceeded:
        trial.hand_back("", timedelta())
        enqueue(EmbedderTrial, [trial.pk])
    except (EmbedderMisconfigured, ImproperlyConfigured) as error:
        trial.end(EmbedderTrial.FAILED, str(error))
    except (RagsiteError, EvaluationError) as error:
        trial.retry(str(error))
    except Exception as error:
        logger.exception("The embedder %s could not be tried.", trial)
        trial.retry(f"{type(error).__name__}: {error}")
    finally:
        embedder_choice.forget_candidates()
    trial.refresh_from_db()
    return trial


def _run_trial_steps(trial: EmbedderTrial, progress: TrialProgress) -> None:
    was_at = Step(trial.step)
    candidate = _open_embedder(trial, progress)
    if trial.with_switch:
        progress.begin(Step.SWITCH)
        row = reembedding.encode_passages_and_build_index(candidate, progress, trial.options)
        reembedding.switch_embedder(row, candidate, progress)
        trial.end(EmbedderTrial.Status.SWITCHED)
        return
    progress.begin(Step.ENCODE)
    row = reembedding.encode_passages_and_build_index(candidate, progress, trial.options)
    trial.write_under_lease(embedder=row)
    with embedder_choice.use_embedder(candidate):
        if was_at is not Step.MEASURE:
            progress.begin(Step.FIT)
            trial.not_fitted = _fit_thresholds(trial, progress)
        progress.begin(Step.MEASURE)
    figures, weight = measure_embedders(candidate, progress)
    if weight is not None and (fitted := closeness.read_calibration(candidate.name)) is not None:
        closeness.store_calibration(candidate.name, replace(fitted, vector_weight=weight))
    trial.end(EmbedderTrial.Status.DONE, figures=figures, vector_weight=weight, not_fitted=trial.not_fitted)


def _open_embedder(trial: EmbedderTrial, progress: TrialProgress) -> TextEmbedder:
    options = trial.options
    if "built_in" not in options:
        # This object only downloads the model into the shared cache.
        LocalEmbedder(cache_dir=settings.DATA_DIR / "models", report=progress.report_download, **options)
    candidate = embedder_choice.build_chosen_embedder(options)
    candidate.prepare()
    if isinstance(candidate, OnnxEmbedder):
        candidate.threads = 1
    return candidate


def _fit_thresholds(trial: EmbedderTrial, progress: TrialProgress) -> str:
    if embedder_choice.get_embedder().name in closeness.BUILT_IN:
        return ""
    known = find_known_embedder(trial.options["model"])
    try:
        closeness.fit_thresholds(progress, across_languages=known is not None and known.is_multilingual)
    except CalibrationFailed as error:
        return str(error)
    return ""
