from __future__ import annotations

from functools import reduce
from operator import or_

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from evaluation.expectations import AnswerExpectations
from retrieval.models import Collection


class RunKind(models.TextChoices):
    SEARCH = "search", _("search")
    ANSWERS = "answers", _("answers")


class EvaluationSet(models.Model):
    """Questions about one collection, each with the passages to find or the text that a right answer contains."""

    slug = models.SlugField(_("short name"), unique=True, help_text=_("Used in commands."))
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True, help_text=_("Where the questions come from."))
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="evaluation_sets", verbose_name=_("collection")
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("evaluation set")
        verbose_name_plural = _("evaluation sets")

    def __str__(self) -> str:
        return self.name


def build_question_condition(kind: str, path: str = "") -> Q | Exists:
    """Return a condition for the questions that a run of this kind can measure.

    ``path`` is the lookup from the queried model to the question.
    """
    if kind == RunKind.SEARCH:
        return Exists(ExpectedPassage.objects.filter(question=OuterRef(path or "pk"), grade__gt=0))
    prefix = f"{path}__" if path else ""
    conditions = ("expected_answer__gt", ""), ("must__len__gt", 0), ("expects_refusal", True)
    return reduce(or_, (Q(**{f"{prefix}{lookup}": value}) for lookup, value in conditions))


def build_runnable_condition(path: str = "") -> Q:
    """Return a condition for the questions that a run of either kind can use. ``path`` leads to the question."""
    return Q(build_question_condition(RunKind.SEARCH, path)) | Q(build_question_condition(RunKind.ANSWERS, path))


class EvaluationQuestionQuerySet(models.QuerySet["EvaluationQuestion"]):
    def measurable(self, kind: str = RunKind.SEARCH) -> EvaluationQuestionQuerySet:
        return self.filter(build_question_condition(kind))


class EvaluationQuestion(models.Model):
    """A question of an evaluation set. Without an expectation, it is a draft, which no run uses."""

    class Origin(models.TextChoices):
        MANUAL = "manual", _("written by hand")
        FEEDBACK = "feedback", _("answer that did not help")
        IMPORTED = "imported", _("imported")

    evaluation_set = models.ForeignKey(
        EvaluationSet, models.CASCADE, related_name="questions", verbose_name=_("evaluation set")
    )
    text = models.TextField(_("question"))
    expected_answer = models.TextField(
        _("expected answer"), blank=True, help_text=_("A right answer, with which answers are compared.")
    )
    expects_refusal = models.BooleanField(
        _("no answer expected"),
        default=False,
        help_text=_("The documents do not answer it: a refusal is right."),
    )
    must = ArrayField(
        models.TextField(),
        verbose_name=_("must contain"),
        default=list,
        blank=True,
        help_text=_("One per line. Put | between alternatives, of which one is enough: 14 days|two weeks."),
    )
    must_not = ArrayField(
        models.TextField(),
        verbose_name=_("must not contain"),
        default=list,
        blank=True,
        help_text=_("What a right answer must not say, one per line."),
    )
    longest = models.PositiveIntegerField(
        _("longest answer"), null=True, blank=True, help_text=_("In characters; left empty, any length will do.")
    )
    origin = models.CharField(_("origin"), max_length=10, choices=Origin, default=Origin.MANUAL)
    external_id = models.CharField(_("identifier in the imported set"), max_length=1000, blank=True, editable=False)
    answer = models.ForeignKey(
        Answer,
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="evaluation_questions",
        verbose_name=_("answer that did not help"),
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)

    objects = EvaluationQuestionQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        verbose_name = _("question")
        verbose_name_plural = _("questions")
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation_set", "answer"], condition=~Q(answer=None), name="one_question_per_answer"
            ),
            models.UniqueConstraint(
                fields=["evaluation_set", "external_id"],
                condition=~Q(external_id=""),
                name="one_question_per_external_id",
            ),
            models.CheckConstraint(
                condition=Q(expects_refusal=False) | Q(expected_answer=""), name="refusal_has_no_expected_answer"
            ),
        ]

    def __str__(self) -> str:
        return self.text

    @property
    def expectations(self) -> AnswerExpectations:
        return AnswerExpectations(tuple(self.must), tuple(self.must_not), self.longest, self.expects_refusal)

    def clean(self) -> None:
        self.expected_answer = self.expected_answer.strip()
        if self.expects_refusal and (self.expected_answer or self.must or self.must_not):
            message = _("A question that the documents do not answer has no expected answer: empty one of the two.")
            raise ValidationError({"expects_refusal": message})


class ExpectedPassage(models.Model):
    """A passage that a search should find. If the quote is empty, any passage of the document will do.

    The document's source and the quote identify the passage, also in a new version of the document.
    """

    question = models.ForeignKey(
        EvaluationQuestion, models.CASCADE, related_name="expected_passages", verbose_name=_("question")
    )
    source = models.CharField(
        _("document"), max_length=1000, help_text=_("The source that is named on the document's page in admin.")
    )
    quote = models.TextField(
        _("words of the passage"), blank=True, help_text=_("Left empty, any passage of the document will do.")
    )
    content_hash = models.CharField(max_length=64, blank=True, editable=False)
    grade = models.PositiveSmallIntegerField(
        _("grade"), default=1, help_text=_("How well it answers: 1 or more; 0 for a passage known not to answer.")
    )

    class Meta:
        ordering = ["pk"]
        verbose_name = _("expected passage")
        verbose_name_plural = _("expected passages")

    def __str__(self) -> str:
        return self.source
