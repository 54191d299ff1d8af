from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from evaluation.figures import fixed
from evaluation.models.people import user_key
from evaluation.models.runs import EvaluationRun
from evaluation.models.sets import EvaluationSet


class GatePolicy(models.Model):
    """How much worse a set's questions may fare before somebody has to decide."""

    class Metric(models.TextChoices):
        NDCG = "ndcg@10", "nDCG@10"
        HIT = "hit@10", "hit@10"
        RECALL = "recall@50", "recall@50"
        MRR = "mrr@10", "MRR@10"
        AGREEMENT = "agreement", _("agreement of the answers")
        EXPECTATIONS = "expectations", _("expectations met by the answers")

    evaluation_set = models.OneToOneField(
        EvaluationSet, models.CASCADE, related_name="gate_policy", verbose_name=_("evaluation set")
    )
    metric = models.CharField(_("metric"), max_length=12, choices=Metric, default=Metric.NDCG)
    largest_loss = models.FloatField(
        _("largest allowed loss"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "Refused is what is significantly worse by more than this: the whole 95-percent interval of the difference "
            "lies below it. 0 refuses any significant loss."
        ),
    )
    required_for_publishing = models.BooleanField(
        _("required for publishing"),
        default=True,
        help_text=_("A version is published only after a run that is not significantly worse than what is in force."),
    )
    required_for_documents = models.BooleanField(
        _("required for changed documents"),
        default=False,
        db_default=False,
        help_text=_(
            "The collection is changed by drafts alone, and a draft is published only after a run that is not "
            "significantly worse than one on the documents in service."
        ),
    )
    watches_corpus = models.BooleanField(
        _("watches the documents"),
        default=False,
        help_text=_("Runs again after documents changed, and tells when the result is significantly worse."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        ordering = ["evaluation_set__name", "pk"]
        verbose_name = _("gate")
        verbose_name_plural = _("gates")
        constraints = [
            models.CheckConstraint(
                condition=models.Q(largest_loss__gte=0, largest_loss__lte=1), name="largest_loss_in_unit_range"
            )
        ]

    def __str__(self) -> str:
        return str(self.evaluation_set)


class CorpusAlert(models.Model):
    """That the questions of a watched set fare significantly worse since documents changed."""

    policy = models.ForeignKey(GatePolicy, models.CASCADE, related_name="alerts", verbose_name=_("gate"))
    run = models.OneToOneField(EvaluationRun, models.CASCADE, related_name="alert", verbose_name=_("run"))
    baseline = models.ForeignKey(EvaluationRun, models.CASCADE, related_name="+", verbose_name=_("compared with"))
    difference = models.FloatField(_("difference"))
    low = models.FloatField(_("lower bound"))
    high = models.FloatField(_("upper bound"))
    created_at = models.DateTimeField(_("time"), auto_now_add=True)
    acknowledged_at = models.DateTimeField(_("seen"), null=True, blank=True)
    acknowledged_by = user_key(_("seen by"), blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")

    def __str__(self) -> str:
        return f"{self.policy}: {fixed(self.difference, 3, signed=True)}"
