from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models import CollectionInstructions
from core.users import build_user_key
from evaluation.models.base import EvaluationJob, build_lease_constraint
from evaluation.models.evaluation_set import EvaluationQuestion, EvaluationSet, RunKind
from evaluation.payload_types import (
    ExpectedPassagePayload,
    MeasuredCitationPayload,
    MetricJudgementPayload,
    RunSummaryPayload,
    UnmetExpectationsPayload,
)
from retrieval.models import Draft, SearchProfileVersion


class EvaluationRun(EvaluationJob):
    """A measurement of an evaluation set with one search profile: its questions are searched or answered.

    - ``settings``: a copy of the profile, because it may change.
    - ``fingerprint``: a hash of the questions.
    - ``corpus_version``: the version of the documents at the start.
    - ``conditions``: all other things that change figures.
    - ``unreliable_reason``: empty if the figures are reliable.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    Kind = RunKind
    TASK = "evaluation.tasks.measure_evaluation_run"
    MOST_ATTEMPTS = 3

    evaluation_set = models.ForeignKey(
        EvaluationSet, models.CASCADE, related_name="runs", verbose_name=_("evaluation set")
    )
    draft = models.ForeignKey(
        Draft, models.CASCADE, null=True, blank=True, related_name="evaluation_runs", verbose_name=_("draft")
    )
    kind = models.CharField(_("kind"), max_length=10, choices=RunKind, default=RunKind.SEARCH)
    profile_version = models.ForeignKey(
        SearchProfileVersion, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("version")
    )
    profile_name = models.CharField(_("search profile"), max_length=200)
    instructions = models.ForeignKey(
        CollectionInstructions, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("instructions")
    )
    settings = models.JSONField(_("settings"))
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.QUEUED)
    unreliable_reason = models.TextField(_("not to be relied on"), blank=True)
    asked = models.PositiveIntegerField(_("questions asked"), default=0)
    total = models.PositiveIntegerField(_("questions"), default=0)
    unresolved = models.PositiveIntegerField(_("expected passages that are gone"), default=0)
    summary: models.JSONField[RunSummaryPayload, RunSummaryPayload] = models.JSONField(
        _("results"), default=dict, blank=True
    )
    fingerprint = models.CharField(max_length=64, blank=True, editable=False)
    conditions = models.JSONField(_("conditions"), default=dict, blank=True)
    corpus_version = models.PositiveBigIntegerField(_("state of the documents"), null=True, blank=True)

    created_by = build_user_key(_("asked by"), blank=True)
    started_at = models.DateTimeField(_("started"), null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("evaluation run")
        verbose_name_plural = _("evaluation runs")
        constraints = [build_lease_constraint("running_evaluation_is_leased")]
        indexes = [models.Index(fields=["evaluation_set", "status", "-id"], name="evaluation_run_by_set")]

    def __str__(self) -> str:
        return f"{self.evaluation_set} · {self.profile_name} · #{self.pk}"

    @property
    def collection_id(self) -> int | None:
        """The searched collection: the set's, or the working copy of the run's draft (None after its deletion)."""
        return self.evaluation_set.collection_id if self.draft is None else self.draft.working_copy_id

    @property
    def is_reliable(self) -> bool:
        return self.status == self.Status.DONE and not self.unreliable_reason

    @property
    def progress_percent(self) -> int:
        return 100 * self.asked // self.total if self.total else 0


class QuestionResult(models.Model):
    """The result of one question in a run that searches. ``text`` is a copy of the question's text."""

    run = models.ForeignKey(EvaluationRun, models.CASCADE, related_name="results", verbose_name=_("run"))
    question = models.ForeignKey(
        EvaluationQuestion, models.SET_NULL, null=True, related_name="results", verbose_name=_("question")
    )
    text = models.TextField(_("question"))
    ndcg = models.FloatField("nDCG@10")
    hit = models.FloatField("hit@10")
    recall = models.FloatField("recall@50")
    reciprocal_rank = models.FloatField("MRR@10")
    expected: models.JSONField[list[ExpectedPassagePayload], list[ExpectedPassagePayload]] = models.JSONField(
        _("expected passages"), default=list
    )
    milliseconds = models.FloatField(_("milliseconds"))

    class Meta:
        ordering = ["pk"]
        verbose_name = _("result of a question")
        verbose_name_plural = _("results of questions")
        constraints = [models.UniqueConstraint(fields=["run", "question"], name="one_result_per_question")]

    def __str__(self) -> str:
        return self.text


class AnswerResult(models.Model):
    """The answer to one question in a run that writes answers.

    - ``text`` is a copy of the question's text.
    - Metrics are numbers from 0 to 1, or None if they do not apply (see `evaluation.runs.agreement`).
    - ``generator`` wrote the answer. If ``is_fallback``, it replaced the chosen one; ``notice`` says why.
    - ``judged`` has an object for each metric; ``judge_error`` says why the judge did not finish.
    """

    run = models.ForeignKey(EvaluationRun, models.CASCADE, related_name="answer_results", verbose_name=_("run"))
    question = models.ForeignKey(
        EvaluationQuestion, models.SET_NULL, null=True, related_name="answer_results", verbose_name=_("question")
    )
    text = models.TextField(_("question"))
    expected_answer = models.TextField(_("expected answer"), blank=True)
    expects_refusal = models.BooleanField(_("no answer expected"), default=False)
    answer = models.TextField(_("answer"), blank=True)
    refused = models.BooleanField(_("refused"))
    citations: models.JSONField[list[MeasuredCitationPayload], list[MeasuredCitationPayload]] = models.JSONField(
        _("citations"), default=list
    )
    generator = models.CharField(_("answered by"), max_length=200, blank=True)
    is_fallback = models.BooleanField(default=False)
    notice = models.TextField(_("notice"), blank=True)
    agreement = models.FloatField(_("agreement"), null=True)
    expectations = models.FloatField(_("expectations met"), null=True)
    unmet: models.JSONField[UnmetExpectationsPayload, UnmetExpectationsPayload] = models.JSONField(
        _("expectations not met"), default=dict
    )
    groundedness = models.FloatField(_("backed by its sources"), null=True)
    refusal = models.FloatField(_("refusal"))
    first_token_milliseconds = models.FloatField(_("milliseconds to the first word"), null=True)
    milliseconds = models.FloatField(_("milliseconds"))
    prompt_tokens = models.PositiveIntegerField(_("prompt tokens"), default=0)
    completion_tokens = models.PositiveIntegerField(_("completion tokens"), default=0)
    cost = models.FloatField(_("cost"), null=True)
    judge = models.CharField(_("judged by"), max_length=200, blank=True)
    judged: models.JSONField[dict[str, MetricJudgementPayload], dict[str, MetricJudgementPayload]] = models.JSONField(
        _("judged"), default=dict
    )
    judge_error = models.TextField(_("error of the judge"), blank=True)

    class Meta:
        ordering = ["pk"]
        verbose_name = _("answer to a question")
        verbose_name_plural = _("answers to questions")
        constraints = [models.UniqueConstraint(fields=["run", "question"], name="one_answer_per_question")]

    def __str__(self) -> str:
        return self.text


class GatePolicy(models.Model):
    """A gate, which is a check before publication.

    A candidate (a search profile, a draft or instructions) and the published version are measured with the set's
    questions. The gate refuses the candidate if its ``metric`` is worse by significantly more than ``largest_loss``.
    """

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
            "The largest loss that is allowed. A version is refused if the whole 95-percent interval "
            "of the difference is below it. 0 refuses any significant loss."
        ),
    )
    required_for_publishing = models.BooleanField(
        _("required for publishing"),
        default=True,
        help_text=_(
            "A version can be published only after a run that is not significantly worse than a run "
            "of the published version."
        ),
    )
    required_for_documents = models.BooleanField(
        _("required for changed documents"),
        default=False,
        db_default=False,
        help_text=_(
            "The collection can be changed in drafts only, and a draft can be published only after a "
            "run that is not significantly worse than a run on the current documents."
        ),
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
