from __future__ import annotations

from typing import Any

from django.conf import settings as django_settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.models.job import Job, running_is_claimed
from evaluation.models.sets import EvaluationQuestion, EvaluationSet
from retrieval.models import SearchProfileVersion


class EvaluationRun(Job):
    """A set searched with one profile, which is a job (see `Job`).

    ``settings`` are the profile's own, so that a run means the same after the site's settings have changed.
    ``fingerprint`` tells the questions that were asked, ``conditions`` what else a search depends on, and
    ``corpus_version`` the state of the collection when the run began; only runs that agree in all of these differ by
    their profile alone. ``distrust`` says why the figures are not to be relied on.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    class Trigger(models.TextChoices):
        MANUAL = "manual", _("asked for")
        GATE = "gate", _("before publishing")
        CORPUS = "corpus", _("documents changed")

    evaluation_set = models.ForeignKey(
        EvaluationSet, models.CASCADE, related_name="runs", verbose_name=_("evaluation set")
    )
    profile_version = models.ForeignKey(
        SearchProfileVersion, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("version")
    )
    profile_name = models.CharField(_("search profile"), max_length=200)
    settings = models.JSONField(_("settings"))
    trigger = models.CharField(_("why"), max_length=10, choices=Trigger, default=Trigger.MANUAL)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    distrust = models.TextField(_("not to be relied on"), blank=True)
    asked = models.PositiveIntegerField(_("questions asked"), default=0)
    total = models.PositiveIntegerField(_("questions"), default=0)
    unresolved = models.PositiveIntegerField(_("expected passages that are gone"), default=0)
    summary = models.JSONField(_("results"), default=dict, blank=True)
    fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    conditions = models.JSONField(_("conditions"), default=dict, blank=True)
    corpus_version = models.PositiveBigIntegerField(_("state of the documents"), null=True, blank=True)

    created_by = models.ForeignKey(
        django_settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("asked by"),
    )
    started_at = models.DateTimeField(_("started"), null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("evaluation run")
        verbose_name_plural = _("evaluation runs")
        constraints = [running_is_claimed("running_evaluation_is_claimed")]
        indexes = [models.Index(fields=["evaluation_set", "status", "-id"], name="evaluation_run_by_set")]

    def __str__(self) -> str:
        return f"{self.evaluation_set} · {self.profile_name} · #{self.pk}"

    @property
    def is_reliable(self) -> bool:
        return self.status == self.Status.DONE and not self.distrust

    @property
    def percent(self) -> int:
        return 100 * self.asked // self.total if self.total else 0


class QuestionResult(models.Model):
    """What one question of a run found. ``question`` is empty once it was deleted; its words are kept.

    ``expected`` holds an object for each expected passage: source, quote, grade, rank (None: not found) and whether it
    still exists.
    """

    run = models.ForeignKey(EvaluationRun, models.CASCADE, related_name="results", verbose_name=_("run"))
    question = models.ForeignKey(
        EvaluationQuestion, models.SET_NULL, null=True, related_name="results", verbose_name=_("question")
    )
    text = models.TextField(_("question"))
    ndcg = models.FloatField("nDCG@10")
    hit = models.FloatField("hit@10")
    recall = models.FloatField("recall@50")
    reciprocal_rank = models.FloatField("MRR@10")
    expected: models.JSONField[list[dict[str, Any]]] = models.JSONField(_("expected passages"), default=list)
    milliseconds = models.FloatField(_("milliseconds"))

    class Meta:
        ordering = ["pk"]
        verbose_name = _("result of a question")
        verbose_name_plural = _("results of questions")
        constraints = [models.UniqueConstraint(fields=["run", "question"], name="one_result_per_question")]

    def __str__(self) -> str:
        return self.text
