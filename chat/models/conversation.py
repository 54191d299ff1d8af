from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.key_limits import get_limits
from core.user_types import AnyUser
from retrieval.models import Collection, Document


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, user: AnyUser, visitor: str) -> ConversationQuerySet:
        """Return the conversations of a signed-in user, or else of a visitor's browser.

        For an API key limited to collections, only the conversations that this key began are returned.
        """
        if user.is_authenticated:
            own = self.filter(owner=user)
            limits = get_limits(user)
            return own if limits is None or limits.collections is None else own.filter(key=limits.key)
        return self.filter(owner=None, visitor=visitor) if visitor else self.none()


class DeletedDocument(models.Model):
    """A deleted document. A task deletes the row after it has removed the text from stored answers."""

    document_id = models.BigIntegerField()
    title = models.CharField(max_length=500)
    added_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.document_id)


class Conversation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="conversations")
    visitor = models.CharField(max_length=64, db_index=True)
    # The public part of the API key that began the conversation; empty if none did.
    key = models.CharField(max_length=16)
    # The next question uses this collection, model and document by default.
    collection = models.ForeignKey(
        Collection, models.SET_NULL, null=True, verbose_name=_("collection"), help_text=_("Empty: all.")
    )
    model = models.CharField(max_length=200)
    document = models.ForeignKey(Document, models.SET_NULL, null=True, related_name="+")
    # The filters in the API's form, which ``retrieval.rights.chosen_filters`` parses.
    filters = models.JSONField(default=dict, db_default={})
    # The answer whose question was edited to begin this branch. Earlier answers belong to the branch too.
    branched_from = models.ForeignKey("chat.Answer", models.SET_NULL, null=True, related_name="branches")

    class ShareScope(models.TextChoices):
        ANSWER = "answer", _("one answer")
        NOW = "now", _("the conversation so far")
        FOLLOWING = "following", _("the conversation with what follows")

    class ShareAudience(models.TextChoices):
        LINK = "link", _("anyone with the link")
        SIGNED_IN = "signed_in", _("people who have signed in")

    share_token = models.UUIDField(null=True, unique=True)
    shared_at = models.DateTimeField(null=True)
    share_scope = models.CharField(max_length=10, choices=ShareScope, default=ShareScope.NOW)
    share_audience = models.CharField(max_length=10, choices=ShareAudience, default=ShareAudience.LINK)
    shared_answer = models.ForeignKey("chat.Answer", models.SET_NULL, null=True, related_name="+")
    title = models.CharField(_("title"), max_length=200)
    created_at = models.DateTimeField(_("started"), auto_now_add=True)
    updated_at = models.DateTimeField(_("last question"), default=timezone.now)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at"]
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        constraints = [
            models.CheckConstraint(condition=Q(owner=None) | Q(visitor=""), name="conversation_has_one_owner")
        ]

    def __str__(self) -> str:
        return self.title or str(self.pk)

    def list_questions(self) -> list[tuple[uuid.UUID, str]]:
        return list(self.answers.order_by("created_at").values_list("pk", "question"))

    @property
    def experiment_subject(self) -> str:
        """A text that identifies the asker for experiments: "user:ID", "visitor:ID", or "" without cookies."""
        if self.owner_id is not None:
            return f"user:{self.owner_id}"
        return f"visitor:{self.visitor}" if self.visitor else ""
