from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from evaluation.figures import fixed
from evaluation.models.judgement import Judgement


class Score(models.Model):
    """What one metric says of an answer: a score in [0, 1], better when higher, or the reason why there is none.

    Only REFUSAL is neither good nor bad: it is 1 for an answer that says that the documents do not answer. An error is
    never a number: the table itself refuses a row with both, with neither, or with a score that is NaN. ``details``
    holds one object for each sentence, claim or passage looked at.
    """

    class Metric(models.TextChoices):
        GROUNDEDNESS = "groundedness", _("groundedness")
        FAITHFULNESS = "faithfulness", _("faithfulness")
        CITATION_SUPPORT = "citation_support", _("citation support")
        ANSWER_RELEVANCY = "answer_relevancy", _("answer relevancy")
        CONTEXTUAL_RELEVANCY = "contextual_relevancy", _("context relevancy")
        CONTEXTUAL_PRECISION = "contextual_precision", _("context precision")
        CONTEXTUAL_RECALL = "contextual_recall", _("context recall")
        REFUSAL = "refusal", _("refusal")

    judgement = models.ForeignKey(Judgement, models.CASCADE, related_name="scores", verbose_name=_("judgement"))
    metric = models.CharField(_("metric"), max_length=24, choices=Metric)
    score = models.FloatField(_("score"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True)
    reason = models.TextField(_("reason"), blank=True)
    threshold = models.FloatField(
        _("threshold"), null=True, blank=True, help_text=_("A score below it asks for a look.")
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
            # PostgreSQL holds NaN to be larger than any number, so this refuses it as well.
            models.CheckConstraint(condition=Q(score=None) | Q(score__gte=0, score__lte=1), name="score_in_unit_range"),
        ]
        indexes = [
            # With all that a distribution is counted from, without the wide rows.
            models.Index(
                fields=["metric", "-created_at"], include=["judgement", "score", "threshold"], name="score_distribution"
            ),
            # The lowest scores, in the order in which they are listed.
            models.Index(
                fields=["metric", "score", "-created_at", "id"],
                include=["judgement"],
                condition=Q(score__lt=F("threshold")),
                name="score_low",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_metric_display()}: {self.error if self.score is None else fixed(self.score, 2)}"

    @property
    def is_low(self) -> bool:
        return self.score is not None and self.threshold is not None and self.score < self.threshold
