from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evaluation.models.base import EvaluationJob, build_lease_constraint
from evaluation.payload_types import EmbedderComparisonPayload
from retrieval.models import Embedder


class EmbedderTrial(EvaluationJob):
    """The trial of an embedder on this site, after which an administrator can switch to it.

    ``done`` of ``total`` items of ``step`` are finished. If ``with_switch`` is true, the worker switches the site to
    the embedder. ``figures`` has an object for each evaluation set and, with several sets, one for all sets.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("measured")
        SWITCHED = "switched", _("switched")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    class Step(models.TextChoices):
        DOWNLOAD = "download", _("downloading, megabytes")
        ENCODE = "encode", _("making vectors, passages")
        FIT = "fit", _("fitting thresholds, passages")
        MEASURE = "measure", _("measuring, questions")
        SWITCH = "switch", _("switching, passages")

    TASK = "evaluation.tasks.try_embedder"

    label = models.CharField(_("embedder"), max_length=300)
    options = models.JSONField()
    embedder = models.ForeignKey(Embedder, models.SET_NULL, null=True, related_name="+")
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    step = models.CharField(max_length=10, choices=Step, default=Step.DOWNLOAD)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    with_switch = models.BooleanField(default=False)
    vector_weight = models.FloatField(null=True)
    not_fitted = models.TextField(blank=True)
    figures: models.JSONField[list[EmbedderComparisonPayload], list[EmbedderComparisonPayload]] = models.JSONField(
        default=list
    )

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("trial of an embedder")
        verbose_name_plural = _("search quality")
        constraints = [
            build_lease_constraint("running_trial_is_leased"),
            models.UniqueConstraint(
                models.Value(1), condition=Q(status__in=["queued", "running"]), name="one_active_embedder_trial"
            ),
        ]

    def __str__(self) -> str:
        return self.label
