from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _t

from core.audit_signal import record_event
from core.job_queue import enqueue_on_commit
from evaluation.exceptions import EvaluationError
from evaluation.models import EmbedderTrial
from retrieval.index import reembedding


def request_embedder_trial(label: str, options: Mapping[str, Any]) -> EmbedderTrial:
    """Start the trial of an embedder, which a worker runs.

    Raises: EvaluationError if another trial is unfinished, or if the settings prescribe the site's embedder.
    """
    if settings.EMBEDDER:
        raise EvaluationError(
            _t("The settings name this site's embedder: remove EMBEDDING_MODEL and EMBEDDING_BASE_URL first.")
        )
    try:
        with transaction.atomic():
            trial = EmbedderTrial.objects.create(label=label, options=dict(options))
            enqueue_on_commit(EmbedderTrial, [trial.pk])
            record_event("embedder.tried", trial)
    except IntegrityError:
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it.")) from None
    return trial


def request_embedder_switch(trial: EmbedderTrial) -> None:
    """Enqueue the switch of the site to the embedder of a trial.

    Raises: EvaluationError if the trial has not been measured, or if another trial is unfinished.
    """
    try:
        with transaction.atomic():
            values = {**EmbedderTrial.get_restart_values(), "with_switch": True, "finished_at": None}
            if not EmbedderTrial.objects.filter(pk=trial.pk, status=EmbedderTrial.Status.DONE).update(**values):
                raise EvaluationError(_t("%s has not been measured.") % trial)
            enqueue_on_commit(EmbedderTrial, [trial.pk])
            record_event("embedder.switched", trial)
    except IntegrityError:
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it.")) from None


def cancel_trial(trial: EmbedderTrial) -> None:
    """Cancel the trial. Its vectors stay stored until `delete_unused_vectors`."""
    EmbedderTrial.unfinished().filter(pk=trial.pk).update(
        status=EmbedderTrial.Status.CANCELLED, lease=None, retry_at=None, finished_at=timezone.now()
    )


def delete_unused_vectors() -> int:
    """Delete the vectors of all embedders except the site's, and return the number of deleted embedders.

    Raises: EvaluationError if a trial is unfinished.
    """
    if EmbedderTrial.unfinished().exists():
        raise EvaluationError(_t("Another embedder is being tried: wait until that is done, or cancel it."))
    EmbedderTrial.objects.filter(status=EmbedderTrial.Status.DONE).update(status=EmbedderTrial.Status.CANCELLED)
    return reembedding.drop_unused_embedders()
