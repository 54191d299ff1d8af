from __future__ import annotations

import logging
import uuid
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.fields import ArrayField
from django.db import DatabaseError, models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.db.models.signals import pre_delete
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.approved import ApprovedAnswer
from chat.models.conversation import Conversation
from core.database import IS_NOT_WAITING
from core.jobs import Leased, acquire_lease
from core.key_limits import KeyLimits, set_limits
from core.user_types import AnyUser
from retrieval.models import Chunk, Collection, Document, SearchProfileVersion
from retrieval.models.webhook import Webhook, announce
from retrieval.rights.search_filters import filters_for
from retrieval.types import SearchFilters

logger = logging.getLogger(__name__)

# The sweep closes an answer whose writer has been silent for this long; an earlier reader begins it again.
CLOSED_AFTER = timedelta(minutes=1)
NEVER_BEGUN_AFTER = timedelta(minutes=10)


class AnswerQuerySet(models.QuerySet["Answer"]):
    def unfinished(self) -> AnswerQuerySet:
        return self.filter(status__in=Answer.UNFINISHED)

    def interrupted(self) -> AnswerQuerySet:
        """Return the answers whose writer is silent for a minute, and those that no process began in ten minutes.

        Some are STOPPED: their writer died before it saved their text.
        """
        is_silent = Q(lease__isnull=False, heartbeat_at__lt=Now() - CLOSED_AFTER)
        is_never_begun = Q(status=Answer.Status.PENDING, lease=None, created_at__lt=timezone.now() - NEVER_BEGUN_AFTER)
        return self.filter(is_silent | is_never_begun)

    def acquire(self, pk: uuid.UUID) -> Answer | None:
        """Return the answer, leased to the caller; None if it is finished or a living process writes it.

        The answer is PENDING until its turn, without the text of an interrupted attempt.
        """
        rows = self.unfinished().filter(IS_NOT_WAITING).order_by()
        joined = rows.select_related("conversation__owner", "collection", "document__collection")
        return acquire_lease(joined, pk, status=Answer.Status.PENDING, text="", error="")

    def stop(self, pk: uuid.UUID) -> None:
        """Mark an unfinished answer as STOPPED.

        The writer notices it at its next heartbeat. It keeps its lease to save the text so far.
        """
        answers = self.filter(pk=pk)
        answers.filter(status=Answer.Status.PENDING).update(status=Answer.Status.STOPPED, completed_at=timezone.now())
        answers.filter(status=Answer.Status.GENERATING).update(status=Answer.Status.STOPPED)

    def fail(self, message: str) -> int:
        return self.update(status=Answer.Status.FAILED, lease=None, error=message, completed_at=timezone.now())


class Answer(Leased):
    """A question and its answer.

    PENDING -> GENERATING -> COMPLETED, STOPPED or FAILED; an interrupted answer is PENDING again. The stored status
    stays true if a process dies. The web process that writes the answer has its lease; ``attempts`` grows when another
    process begins it again. ``followed_at`` is the last time that a reader in another process followed it.
    """

    SILENT_AFTER = timedelta(seconds=15)

    class Status(models.TextChoices):
        PENDING = "pending", _("waiting")
        GENERATING = "generating", _("being written")
        COMPLETED = "completed", _("complete")
        STOPPED = "stopped", _("stopped")
        FAILED = "failed", _("failed")

    UNFINISHED = (Status.PENDING, Status.GENERATING)
    # A later question can refer to the text of these answers.
    REFERABLE = (Status.COMPLETED, Status.STOPPED)

    class State(models.TextChoices):
        ANSWER = "answer", _("answered")
        CLOSEST = "closest", _("closest passages")
        NOTHING = "nothing", _("nothing found")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="answers")
    question = models.CharField(_("question"), max_length=settings.QUESTION_MAX_CHARACTERS)
    # The searched collection, or the searched document; without both, all that the asker might read.
    collection = models.ForeignKey(
        Collection, models.SET_NULL, null=True, related_name="+", verbose_name=_("collection")
    )
    document = models.ForeignKey(Document, models.SET_NULL, null=True, related_name="+")
    # The requested search method and language model; empty for the site's defaults.
    method = models.CharField(max_length=12)
    model = models.CharField(max_length=200)
    # Earlier turns that the client sent, if the site does not store the conversation.
    history = models.JSONField(null=True)
    # The asker wants a new answer, even if the same question was answered before.
    anew = models.BooleanField(default=False)
    # Ids of the collections of the question's API key; None without such a limit.
    asked_within = ArrayField(models.BigIntegerField(), null=True)
    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.PENDING, db_index=True)
    text = models.TextField()
    # The model's original text without thoughts and calls; empty without a model. ``text`` is shown.
    written = models.TextField(default="", db_default="")
    refused = models.BooleanField(_("no answer in the documents"), default=False)
    state = models.CharField(_("state"), max_length=8, choices=State, default=State.ANSWER, db_default=State.ANSWER)
    # ``alternatives`` are passages beside or instead of the answer, ``choices`` suggested questions.
    alternatives: models.JSONField[list[dict[str, Any]]] = models.JSONField(default=list, db_column="near")
    choices: models.JSONField[list[dict[str, str]]] = models.JSONField(default=list)
    error = models.TextField(_("error"))
    notice = models.TextField(_("notice"), help_text=_("A fallback that was shown to the reader."))
    search_method = models.CharField(_("search method"), max_length=12)
    degraded = models.JSONField(default=list)
    generator = models.CharField(_("written by"), max_length=200)
    # None if no model was called.
    prompt_version = models.PositiveSmallIntegerField(null=True)
    # The model's chat messages, ending with its reply. A question about the same passages continues them.
    dialogue = models.JSONField(default=list, db_default=[])
    usage = models.JSONField(default=dict)
    # The rewritten question, and the question joined with the one before it; both were searched.
    completed_question = models.TextField()
    joined_question = models.TextField()
    # Probability that the documents answer the question, 0 to 1.
    confidence = models.FloatField(null=True)
    # The result of a computation over a table; None without a stated value.
    computed: models.JSONField[dict[str, Any] | None] = models.JSONField(null=True)
    # The table below the answer, in the form of the API; None without a table.
    table: models.JSONField[dict[str, Any] | None] = models.JSONField(null=True)
    # The checked sentences of the answer.
    statements = models.JSONField(default=list)
    profile_version = models.ForeignKey(SearchProfileVersion, models.SET_NULL, null=True, related_name="+")
    # Hash of the question and the documents: equal keys have equal answers.
    cache_key = models.CharField(max_length=64)
    repeats = models.ForeignKey("self", models.SET_NULL, null=True, related_name="+")
    approved = models.ForeignKey(ApprovedAnswer, models.SET_NULL, null=True, related_name="given")
    sources = models.JSONField(default=list)
    # Ids of everything that the text may use, also if deleted since. A reader must have the right to all of it.
    source_collections = ArrayField(models.BigIntegerField(), default=list)
    source_documents = ArrayField(models.BigIntegerField(), default=list)
    # Hash of the restricted documents that the asker saw, whose words suggested questions may contain.
    narrowing_key = models.CharField(max_length=64)
    trace = models.JSONField(default=dict)
    timings_ms = models.JSONField(default=dict)

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
            # For the admin's list of answers and its filters.
            models.Index(fields=["-created_at", "-id"], name="answer_by_time"),
            models.Index(fields=["generator"], name="answer_by_generator"),
            models.Index(fields=["search_method"], name="answer_by_search_method"),
            # Contains all columns that statistics need, because reading the wide rows is slow.
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

    @property
    def quoted_places(self) -> list[dict[str, Any]]:
        """The sources and the alternatives. A reader of the answer must have the right to all their documents."""
        return [*self.sources, *self.alternatives]

    @property
    def standing_alone(self) -> str:
        """The question in a form that is understood without its conversation."""
        return self.joined_question or self.completed_question or self.question

    @property
    def is_finished(self) -> bool:
        return self.status not in self.UNFINISHED

    # ``begin``, ``hand_over`` and ``give_up`` write the row while this process has its lease; ``complete`` and ``fail``
    # only change the instance, which is saved together with its content.

    def begin(self) -> None:
        """Set the answer to GENERATING, unless it was stopped while it waited."""
        self.held().filter(IS_NOT_WAITING, status=self.Status.PENDING).update(status=self.Status.GENERATING)

    def hand_over(self) -> None:
        """Release the lease, so that the next reader's process begins the answer again at once."""
        unfinished = self.held().filter(status__in=self.UNFINISHED)
        unfinished.update(status=self.Status.PENDING, lease=None, heartbeat_at=None)

    def complete(self, *, is_partial: bool = False) -> None:
        self._close(self.Status.STOPPED if is_partial else self.Status.COMPLETED)

    def fail(self, message: str) -> None:
        self._close(self.Status.FAILED)
        self.error = message

    def _close(self, status: Status) -> None:
        self.status, self.lease, self.completed_at = status, None, timezone.now()

    def give_up(self, message: str) -> None:
        """Store that the answer failed, without its content. The sweep retries if the database fails."""
        try:
            Answer.objects.filter(pk=self.pk, lease=self.lease).fail(message)
        except DatabaseError:
            logger.exception("Answer %s stays open until the schedule closes it.", self.pk)

    @property
    def asker(self) -> AnyUser:
        """The user who asked, limited by the question's API key; an anonymous user for a visitor."""
        owner = self.conversation.owner
        if owner is None:
            return AnonymousUser()
        limits = None if self.asked_within is None else KeyLimits("", frozenset(), frozenset(self.asked_within))
        set_limits(owner, limits)
        return owner

    def filters(self) -> SearchFilters:
        """Return the filters of the answer's search: the asker's rights now, in its collection or document.

        Raises: InvalidQuery if the asker may no longer read that collection.
        """
        document = self.document
        collection = self.collection if document is None else document.collection
        documents = () if document is None else tuple(document.list_with_members())
        return filters_for(self.asker, collection.slug if collection else "", documents=documents)

    def list_earlier(self, most: int) -> list[Answer]:
        """Return at most ``most`` answers before this answer, newest first, with their citations.

        In a branch these include the answers before the edited question.
        """
        found: list[Answer] = []
        at: Answer | None = self
        while at is not None and len(found) < most:
            earlier = Answer.objects.filter(
                conversation=at.conversation_id, created_at__lt=at.created_at, status__in=self.REFERABLE
            )
            # Traces are long and are not needed here.
            earlier = earlier.defer("trace", "statements", "timings_ms").prefetch_related("citations")
            found += earlier.order_by("-created_at")[: most - len(found)]
            at = at.conversation.branched_from
        return found


@receiver(pre_delete, sender=Answer)
def _block_writer(instance: Answer, **_options: Any) -> None:
    """Lock the answer, so that its writer cannot store an event after its events were deleted.

    The writer locks the answer first. A signal also runs if the answer is deleted with its conversation or its owner.
    """
    Answer.objects.select_for_update().filter(pk=instance.pk).values_list("pk").first()


class Citation(models.Model):
    """A marker of an answer, ``text[marker_start:marker_end]``, and the words it cites.

    The words are stored, so that they can be read after the document was changed or deleted.
    """

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
    support = models.FloatField(_("support"), null=True)
    verbatim = models.BooleanField(_("word for word"), default=False)
    # The place of the cited words in the answer, if it quotes more than these words.
    marked_start = models.PositiveIntegerField(null=True)
    marked_end = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"[{self.marker}] {self.document_title}"


class StreamedEvent(models.Model):
    """An event of an answer's stream, stored until the answer is old, so that a reader can reconnect.

    Pings and events for one reader are not stored: they have no ``sequence``.
    """

    answer = models.ForeignKey(Answer, models.CASCADE, related_name="events")
    attempt = models.PositiveSmallIntegerField()
    sequence = models.PositiveIntegerField()
    name = models.CharField(max_length=12)
    payload = models.JSONField()

    class Meta:
        ordering = ["attempt", "sequence"]
        constraints = [models.UniqueConstraint(fields=["answer", "attempt", "sequence"], name="one_event_per_number")]

    def __str__(self) -> str:
        return f"{self.event_id} {self.name}"

    @property
    def event_id(self) -> str:
        """The id ``attempt-sequence``, both from 1; empty for an event that is not stored."""
        return f"{self.attempt}-{self.sequence}" if self.sequence else ""

    @property
    def is_last(self) -> bool:
        return self.name in ("completed", "failed")


class Feedback(models.Model):
    """The asker's rating of an answer."""

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
    created_at = models.DateTimeField(_("given"), auto_now_add=True)
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
                announce(Webhook.Event.ANSWER_DISLIKED, {**asked, **said})
