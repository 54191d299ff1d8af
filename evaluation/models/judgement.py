from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.figures import format_fixed
from evaluation.models.base import EvaluationJob, build_lease_constraint


class Judgement(EvaluationJob):
    class Judge(models.TextChoices):
        OFFLINE = "offline", _("rules")
        MODEL = "model", _("language model")

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("being judged")
        DONE = "done", _("judged")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("not judged")

    TASK = "evaluation.tasks.judge_answer"

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="judgements", verbose_name=_("answer"))
    judge = models.CharField(_("judge"), max_length=10, choices=Judge)
    judge_name = models.CharField(_("judged by"), max_length=200, blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), default=0)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("automatic rating")
        verbose_name_plural = _("automatic ratings")
        constraints = [
            models.UniqueConstraint(fields=["answer", "judge"], name="one_judgement_per_judge"),
            build_lease_constraint("running_judgement_is_leased"),
        ]
        indexes = [
            models.Index(fields=["status", "judge", "-created_at"], name="judgement_by_status"),
            models.Index(
                fields=["retry_at"], name="judgement_unfinished", condition=Q(status__in=["queued", "running"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_judge_display()}: {self.get_status_display()}"


class Score(models.Model):
    """A judge's result for one metric of an answer: an error, or a score from 0 to 1, better when higher.

    ``details`` has an object for each sentence, claim or passage.
    """

    class Metric(models.TextChoices):
        GROUNDEDNESS = "groundedness", _("backed by its sources")
        FAITHFULNESS = "faithfulness", _("faithfulness")
        CITATION_SUPPORT = "citation_support", _("citation support")
        ANSWER_RELEVANCY = "answer_relevancy", _("answer relevancy")
        CONTEXTUAL_RELEVANCY = "contextual_relevancy", _("context relevancy")
        CONTEXTUAL_PRECISION = "contextual_precision", _("context precision")
        CONTEXTUAL_RECALL = "contextual_recall", _("context recall")

    judgement = models.ForeignKey(Judgement, models.CASCADE, related_name="scores", verbose_name=_("automatic rating"))
    metric = models.CharField(_("metric"), max_length=24, choices=Metric)
    score = models.FloatField(_("score"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True)
    reason = models.TextField(_("reason"), blank=True)
    threshold = models.FloatField(
        _("threshold"), null=True, blank=True, help_text=_("Answers with a score below it should be looked at.")
    )
    details = models.JSONField(_("details"), default=list, blank=True)
    milliseconds = models.FloatField(_("milliseconds"), default=0.0)
    created_at = models.DateTimeField(_("time"), auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        verbose_name = _("score")
        verbose_name_plural = _("scores")
        constraints = [
            models.UniqueConstraint(fields=["judgement", "metric"], name="one_score_per_metric"),
            models.CheckConstraint(
                condition=Q(score__isnull=False, error="") | Q(score=None) & ~Q(error=""), name="score_or_error"
            ),
            # PostgreSQL orders NaN above all numbers, so this constraint refuses it too.
            models.CheckConstraint(condition=Q(score=None) | Q(score__gte=0, score__lte=1), name="score_in_unit_range"),
        ]
        indexes = [
            models.Index(
                fields=["metric", "-created_at"], include=["judgement", "score", "threshold"], name="score_distribution"
            ),
            models.Index(
                fields=["metric", "score", "-created_at", "id"],
                include=["judgement"],
                condition=Q(score__lt=F("threshold")),
                name="score_low",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_metric_display()}: {self.error if self.score is None else format_fixed(self.score, 2)}"

    @property
    def is_low(self) -> bool:
        return self.score is not None and self.threshold is not None and self.score < self.threshold


class JudgeUsage(models.Model):
    """The tokens that judges used on one day, in the site's time zone, even if judgements were deleted."""

    day = models.DateField(_("day"), unique=True)
    prompt_tokens = models.PositiveBigIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveBigIntegerField(_("completion tokens"), default=0)

    class Meta:
        ordering = ["-day"]
        verbose_name = _("judge's usage")
        verbose_name_plural = _("judge's usage")

    def __str__(self) -> str:
        return f"{self.day}: {self.total_tokens}"

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Dashboard(Answer):
    """A Django proxy of the model `Answer`, which gives the dashboard an address in the admin."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = _("dashboard")
        verbose_name_plural = _("dashboard")
