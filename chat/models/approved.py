from __future__ import annotations

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from core.users import build_user_key
from retrieval.models import Collection, Document
from retrieval.models.webhook import Webhook, announce_event


class ApprovedAnswer(models.Model):
    """An answer written by a curator. Its questions get this answer, without a search.

    ``text`` is Markdown with markers such as ``[1]``. An `out_of_scope` answer has no sources.
    """

    class Kind(models.TextChoices):
        ANSWER = "answer", _("answer")
        OUT_OF_SCOPE = "out_of_scope", _("out of scope")

    class State(models.TextChoices):
        DRAFT = "draft", _("draft")
        APPROVED = "approved", _("approved")
        WITHDRAWN = "withdrawn", _("withdrawn")

    class Flag(models.TextChoices):
        GONE = "gone", _("a cited document is gone")
        CHANGED = "changed", _("a cited passage has changed")
        EXPIRED = "expired", _("it has expired")
        UNHELPFUL = "unhelpful", _("a reader found it unhelpful")

    WITHHELD_FLAGS = (Flag.GONE, Flag.CHANGED, Flag.EXPIRED)

    question = models.CharField(_("question"), max_length=settings.QUESTION_MAX_CHARACTERS)
    kind = models.CharField(_("kind"), max_length=12, choices=Kind, default=Kind.ANSWER)
    text = models.TextField(_("answer"), help_text=_("Markdown. [1] cites the first of the passages below."))
    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="approved_answers", verbose_name=_("collection")
    )
    owner = build_user_key(_("owner"), blank=True, help_text=_("Gets a mail when this answer has to be reviewed."))
    expires_on = models.DateField(
        _("valid until"), null=True, blank=True, help_text=_("The last day on which it is shown. Empty: no end.")
    )
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.DRAFT, db_index=True)
    approved_by = build_user_key(_("approved by"), blank=True, editable=False)
    approved_at = models.DateTimeField(_("approved"), null=True, blank=True, editable=False)
    flag = models.CharField(_("to look at"), max_length=10, choices=Flag, blank=True, editable=False)
    flagged_at = models.DateTimeField(null=True, editable=False)
    told_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(_("added"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        ordering = ["question", "id"]
        verbose_name = _("approved answer")
        verbose_name_plural = _("approved answers")

    def __str__(self) -> str:
        return self.question

    @classmethod
    def build_in_force_condition(cls) -> Q:
        unexpired = Q(expires_on=None) | Q(expires_on__gte=timezone.localdate())
        return unexpired & Q(state=cls.State.APPROVED) & ~Q(flag__in=cls.WITHHELD_FLAGS)

    def flag_for_review(self, flag: ApprovedAnswer.Flag) -> None:
        """Set the flag that tells the owner to check the answer. UNHELPFUL replaces no other flag."""
        if self.flag != flag and not (flag == self.Flag.UNHELPFUL and self.flag):
            values: dict[str, object] = {"flag": flag, "flagged_at": timezone.now(), "told_at": None}
            with transaction.atomic():
                type(self).objects.filter(pk=self.pk).update(**values)
                about = {"approved_answer": self.pk, "question": self.question, "collection": self.collection.slug}
                announce_event(Webhook.Event.APPROVED_FLAGGED, {**about, "flag": str(flag)})
            self.flag = flag


class ApprovedQuestion(models.Model):
    """One wording of a question that has an approved answer.

    A new question is compared with ``normalized`` and with ``embedding``, a unit vector.
    """

    approved = models.ForeignKey(ApprovedAnswer, models.CASCADE, related_name="questions")
    text = models.CharField(max_length=settings.QUESTION_MAX_CHARACTERS)
    normalized = models.CharField(max_length=settings.QUESTION_MAX_CHARACTERS, db_index=True)
    embedder = models.CharField(max_length=200, blank=True)
    embedding = VectorField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.text


class ApprovedSource(models.Model):
    """A passage that an approved answer cites, identified by its words.

    ``text_version`` is the last document version that contained them.
    """

    approved = models.ForeignKey(ApprovedAnswer, models.CASCADE, related_name="sources")
    marker = models.PositiveSmallIntegerField()
    document = models.ForeignKey(Document, models.SET_NULL, null=True, related_name="+")
    document_title = models.CharField(max_length=500)
    quote = models.TextField()
    text_version = models.CharField(max_length=130, blank=True)

    class Meta:
        ordering = ["marker"]
        constraints = [models.UniqueConstraint(fields=["approved", "marker"], name="one_source_per_marker")]

    def __str__(self) -> str:
        return f"[{self.marker}] {self.document_title}"
