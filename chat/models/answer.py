from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.approved import ApprovedAnswer
from chat.models.conversation import Conversation
from chat.payload_types import (
    AlternativePassagePayload,
    ComputedPayload,
    DocumentPlacePayload,
    EventPayload,
    QuestionChoicePayload,
    SourcePayload,
    StatementPayload,
    TablePayload,
    UsagePayload,
)
from core.database import IS_NOT_WAITING
from core.jobs import LeasedModel, acquire_lease
from core.key_limits import KeyLimits, set_limits
from core.user_types import AnyUser
from retrieval.models import Chunk, Collection, Document, SearchProfileVersion
from retrieval.models.webhook import Webhook, announce_event
from retrieval.rights.chosen_filters import build_search_restrictions
from retrieval.rights.search_filters import build_filters
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

CLOSED_AFTER = timedelta(minutes=1)
NEVER_BEGUN_AFTER = timedelta(minutes=10)


class AnswerQuerySet(models.QuerySet["Answer"]):
    def unfinished(self) -> AnswerQuerySet:
        return self.filter(status__in=Answer.UNFINISHED)

    def interrupted(self) -> AnswerQuerySet:
        """Return the unfinished answers that no process writes any more."""
        is_silent = Q(lease__isnull=False, heartbeat_at__lt=Now() - CLOSED_AFTER)
        is_never_begun = Q(status=Answer.Status.PENDING, lease=None, created_at__lt=timezone.now() - NEVER_BEGUN_AFTER)
        return self.filter(is_silent | is_never_begun)

    def acquire_for_writing(self, pk: uuid.UUID) -> Answer | None:
        """Reserve the answer for this process to write, empty its text, and return it.

        Return None if it is finished or reserved already.
        """
        rows = self.unfinished().filter(IS_NOT_WAITING).order_by()
        joined = rows.select_related("conversation__owner", "collection")
        return acquire_lease(joined, pk, status=Answer.Status.PENDING, text="", error="")

    def stop_answer(self, pk: uuid.UUID) -> None:
        answers = self.filter(pk=pk)
        answers.filter(status=Answer.Status.PENDING).update(status=Answer.Status.STOPPED, completed_at=timezone.now())
        answers.filter(status=Answer.Status.GENERATING).update(status=Answer.Status.STOPPED)

    def fail(self, message: str) -> int:
        return self.update(status=Answer.Status.FAILED, lease=None, error=message, completed_at=timezone.now())


class Answer(LeasedModel):
    """A question and its answer.

    The status changes from PENDING to GENERATING, and then to COMPLETED, STOPPED or FAILED. The process that writes the
    answer has the answer's lease; ``attempts`` counts the leases. ``followed_at`` is when a reader in another process
    last read the stream.
    """

    SILENT_AFTER = timedelta(seconds=15)

    class Status(models.TextChoices):
        PENDING = "pending", _("waiting")
        GENERATING = "generating", _("being written")
        COMPLETED = "completed", _("complete")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")

    UNFINISHED = (Status.PENDING, Status.GENERATING)
    REFERABLE = (Status.COMPLETED, Status.STOPPED)

    class State(models.TextChoices):
        ANSWER = "answer", _("answered")
        CLOSEST = "closest", _("closest passages")
        NOTHING = "nothing", _("nothing found")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="answers")
    question = models.CharField(_("question"), max_length=settings.QUESTION_MAX_CHARACTERS)
    # The collection or document to search. If both are None, all readable collections are searched.
    collection = models.ForeignKey(
        Collection, models.SET_NULL, null=True, related_name="+", verbose_name=_("collection")
    )
    document = models.ForeignKey(Document, models.SET_NULL, null=True, related_name="+")
    asked_filters = models.JSONField(default=dict, db_default={})
    method = models.CharField(max_length=12)
    model = models.CharField(max_length=200)
    history = models.JSONField(null=True)
    anew = models.BooleanField(default=False)
    # The collections of the asker's API key; None if it is not limited.
    asked_within = ArrayField(models.BigIntegerField(), null=True)
    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.PENDING, db_index=True)
    text = models.TextField()
    # The model's text before the site edits it. Readers see ``text``.
    written = models.TextField(default="", db_default="")
    refused = models.BooleanField(_("no answer in the documents"), default=False)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.ANSWER, db_default=State.ANSWER)
    alternatives: models.JSONField[list[AlternativePassagePayload], list[AlternativePassagePayload]] = models.JSONField(
        default=list, db_column="near"
    )
    choices: models.JSONField[list[QuestionChoicePayload], list[QuestionChoicePayload]] = models.JSONField(default=list)
    error = models.TextField(_("error"))
    notice = models.TextField(_("notice"), help_text=_("A fallback that was shown to the reader."))
    search_method = models.CharField(_("search method"), max_length=12)
    degraded: models.JSONField[list[str], list[str]] = models.JSONField(default=list)
    generator = models.CharField(_("written by"), max_length=200)
    prompt_version = models.PositiveSmallIntegerField(null=True)
    # The messages to and from the model. The prompt of a follow-up question begins with them.
    dialogue: models.JSONField[list[Mapping[str, str]], list[Mapping[str, str]]] = models.JSONField(
        default=list, db_default=[]
    )
    usage: models.JSONField[UsagePayload, UsagePayload] = models.JSONField(default=dict)
    # The forms of the question that were searched, such as the completed or corrected question.
    completed_question = models.TextField()
    joined_question = models.TextField()
    confidence = models.FloatField(_("confidence"), null=True)
    computed: models.JSONField[ComputedPayload | None, ComputedPayload | None] = models.JSONField(null=True)
    table: models.JSONField[TablePayload | None, TablePayload | None] = models.JSONField(null=True)
    statements: models.JSONField[list[StatementPayload], list[StatementPayload]] = models.JSONField(default=list)
    profile_version = models.ForeignKey(SearchProfileVersion, models.SET_NULL, null=True, related_name="+")
    # Two questions with the same key can share a cached answer.
    cache_key = models.CharField(max_length=64)
    repeats = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")
    approved = models.ForeignKey(ApprovedAnswer, models.SET_NULL, null=True, related_name="given")
    sources: models.JSONField[list[SourcePayload], list[SourcePayload]] = models.JSONField(default=list)
    # Ids of all collections and documents that the text may use, also deleted ones. A reader needs the right to all.
    source_collections = ArrayField(models.BigIntegerField(), default=list)
    source_documents = ArrayField(models.BigIntegerField(), default=list)
    narrowing_key = models.CharField(max_length=64)
    trace = models.JSONField(default=dict)
    timings_ms: models.JSONField[dict[str, float], dict[str, float]] = models.JSONField(default=dict)
    # These values are copied from ``timings_ms`` and the trace, so that lists can sort by them.
    total_ms = models.FloatField(_("milliseconds in all"), null=True)
    search_ms = models.FloatField(_("milliseconds of the search"), null=True)

    followed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(_("asked"), auto_now_add=True)
    completed_at = models.DateTimeField(_("answered"), null=True)

    objects = AnswerQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        verbose_name = _("answer")
        verbose_name_plural = _("answers")
        indexes = [
            models.Index(fields=["cache_key", "-created_at"], name="answer_by_cache_key"),
            models.Index(fields=["-created_at", "-id"], name="answer_by_time"),
            models.Index(fields=["generator"], name="answer_by_generator"),
            models.Index(fields=["search_method"], name="answer_by_search_method"),
            # The admin's list sorts by these columns in descending order, for which PostgreSQL reads the indexes
            # backwards.
            models.Index(F("total_ms").asc(nulls_first=True), F("id").asc(), name="answer_by_total_ms"),
            models.Index(F("search_ms").asc(nulls_first=True), F("id").asc(), name="answer_by_search_ms"),
            models.Index(F("confidence").asc(nulls_first=True), F("id").asc(), name="answer_by_confidence"),
            models.Index(fields=["-created_at", "-id"], condition=Q(refused=True), name="answer_refused_by_time"),
            # This index contains all columns that the dashboard reads, because reading whole answers is slow.
            models.Index(
                fields=["completed_at"],
                include=[
                    *("id", "conversation", "status", "refused", "search_method", "repeats", "degraded", "timings_ms")
                ],
                name="answer_figures",
            ),
        ]

    def __str__(self) -> str:
        return self.question

    @classmethod
    def build_knowledge_gap_condition(cls) -> Q:
        """Return a condition for gaps: answers after a search, if refused or rated not helpful."""
        is_bad = Q(refused=True) | Q(feedback__helpful=False)
        condition = ~Q(search_method="") & ~Q(approved__kind=ApprovedAnswer.Kind.OUT_OF_SCOPE) & is_bad
        # Most sites have no drafts. Without the condition on drafts, an index can return the answers in order.
        drafts = list(Collection.objects.filter(draft__isnull=False).values_list("pk", flat=True))
        return condition & ~Q(collection__in=drafts) if drafts else condition

    @property
    def shown_passages(self) -> list[DocumentPlacePayload]:
        """The passages that the answer shows. A reader needs the right to read all of them."""
        return [*self.sources, *self.alternatives]

    @property
    def standalone_question(self) -> str:
        return self.joined_question or self.completed_question or self.question

    @property
    def is_finished(self) -> bool:
        return self.status not in self.UNFINISHED

    # ``begin`` updates the row. ``complete`` and ``fail`` only change the object, which is saved later.

    def begin(self) -> None:
        self.filter_by_lease().filter(IS_NOT_WAITING, status=self.Status.PENDING).update(status=self.Status.GENERATING)

    def release_if_unfinished(self) -> None:
        unfinished = self.filter_by_lease().filter(status__in=self.UNFINISHED)
        unfinished.update(status=self.Status.PENDING, lease=None, heartbeat_at=None)

    def complete(self, *, is_partial: bool = False) -> None:
        self._close(self.Status.STOPPED if is_partial else self.Status.COMPLETED)

    def fail(self, message: str) -> None:
        self._close(self.Status.FAILED)
        self.error = message

    def _close(self, status: Status) -> None:
        self.status, self.lease, self.completed_at = status, None, timezone.now()

    def give_up(self, message: str) -> None:
        """Store that the answer failed, without content. If the database fails, a periodic task closes the answer."""
        try:
            Answer.objects.filter(pk=self.pk, lease=self.lease).fail(message)
        except DatabaseError:
            logger.exception("Answer %s stays open until the schedule closes it.", self.pk)

    @property
    def asker(self) -> AnyUser:
        owner = self.conversation.owner
        if owner is None:
            return AnonymousUser()
        limits = None if self.asked_within is None else KeyLimits("", frozenset(), frozenset(self.asked_within))
        set_limits(owner, limits)
        return owner

    def build_search_filters(self, reader: AnyUser | None = None) -> SearchFilters:
        """Return the filters of the answer's search, with the rights that ``reader`` (None: the asker) has now.

        Raises: InvalidQuery.
        """
        document = self.document
        collection = self.collection if document is None else document.collection
        restrictions = build_search_restrictions(self.asked_filters)
        if document is not None:
            restrictions["documents"] = tuple(document.list_own_and_member_ids())
        return build_filters(reader or self.asker, collection.slug if collection else "", **restrictions)

    def list_earlier(self, most: int, fields: Sequence[str]) -> list[Answer]:
        """Return at most ``most`` earlier answers of the conversation, newest first, with these fields.

        If the conversation began with an edited question, the answers before that question come next.
        """
        found: list[Answer] = []
        at: Answer | None = self
        while at is not None and len(found) < most:
            earlier = Answer.objects.filter(
                conversation=at.conversation_id, created_at__lt=at.created_at, status__in=self.REFERABLE
            )
            found += earlier.only(*fields).order_by("-created_at")[: most - len(found)]
            at = at.conversation.branched_from
        return found


@receiver(pre_delete, sender=Answer)
def _lock_deleted_answer(instance: Answer, **_options: Any) -> None:
    """Lock the answer before its deletion, so that the process that writes it stores no more events."""
    Answer.objects.select_for_update().filter(pk=instance.pk).values_list("pk").first()


class Citation(models.Model):
    """A marker (``[1]``) at ``text[marker_start:marker_end]`` of an answer, with a copy of the words that it cites."""

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="citations")
    marker = models.PositiveSmallIntegerField()
    marker_start = models.PositiveIntegerField()
    marker_end = models.PositiveIntegerField()
    chunk = models.ForeignKey(Chunk, models.SET_NULL, null=True, related_name="+")
    document = models.ForeignKey(Document, models.SET_NULL, null=True, related_name="+")
    document_title = models.CharField(max_length=500)
    section = models.TextField(blank=True)
    page = models.PositiveIntegerField(null=True)
    quote = models.TextField()
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    # The `DocumentText.version` that contained the quote; empty in rows of earlier releases.
    text_version = models.CharField(max_length=130, default="", db_default="")
    support = models.FloatField(_("support"), null=True)
    verbatim = models.BooleanField(_("word for word"), default=False)
    # The span of the words closest to the question, if they are only a part of the quotation.
    marked_start = models.PositiveIntegerField(null=True)
    marked_end = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"[{self.marker}] {self.document_title}"


class StreamedEvent(models.Model):
    """An event of an answer's stream, stored for readers who reconnect.

    Events that are not stored, such as pings, have no ``sequence``.
    """

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="events")
    attempt = models.PositiveSmallIntegerField()
    sequence = models.PositiveIntegerField()
    name = models.CharField(max_length=12)
    payload: models.JSONField[EventPayload, Any] = models.JSONField()

    class Meta:
        ordering = ["attempt", "sequence"]
        constraints = [models.UniqueConstraint(fields=["answer", "attempt", "sequence"], name="one_event_per_number")]

    def __str__(self) -> str:
        return f"{self.event_id} {self.name}"

    @property
    def event_id(self) -> str:
        """The numbers of the attempt and the event, each from 1, such as "1-12"; empty if the event is not stored."""
        return f"{self.attempt}-{self.sequence}" if self.sequence else ""

    @property
    def is_last(self) -> bool:
        return self.name in ("completed", "failed")


class Feedback(models.Model):
    class Reason(models.TextChoices):
        WRONG = "wrong", _("It is wrong")
        INCOMPLETE = "incomplete", _("Something is missing")
        SOURCES = "sources", _("The sources do not say that")
        OUTDATED = "outdated", _("The documents are out of date")
        UNANSWERED = "unanswered", _("It does not answer the question")
        OTHER = "other", _("Something else")

    answer = models.OneToOneField(Answer, models.CASCADE, related_name="feedback", verbose_name=_("answer"))
    helpful = models.BooleanField(_("helpful"))
    reason = models.CharField(_("reason"), max_length=12, choices=Reason, blank=True)
    comment = models.TextField(_("comment"), blank=True)
    created_at = models.DateTimeField(_("given on"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("feedback")
        verbose_name_plural = _("feedback")

    def __str__(self) -> str:
        return "+" if self.helpful else "-"

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            super().save(*args, **kwargs)
            if not self.helpful:
                said = {"reason": self.reason, "comment": self.comment}
                asked = {"answer": str(self.answer_id), "question": self.answer.question}
                announce_event(Webhook.Event.ANSWER_DISLIKED, {**asked, **said})
