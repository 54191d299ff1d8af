from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from retrieval.models import Collection


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def of(self, user: Any, visitor: str) -> ConversationQuerySet:
        """The conversations of a signed-in user, or of an anonymous visitor's browser."""
        if getattr(user, "is_authenticated", False):
            return self.filter(owner=user)
        return self.filter(owner=None, visitor=visitor) if visitor else self.none()


class Conversation(models.Model):
    """Questions that follow one another. Belongs to a user, or to the browser of a visitor who did not sign in."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="conversations"
    )
    visitor = models.CharField(max_length=64, blank=True, db_index=True, editable=False)
    collection = models.ForeignKey(
        Collection, models.SET_NULL, null=True, blank=True, verbose_name=_("collection"), help_text=_("Empty: all.")
    )
    # In the address for whoever was sent it; without one the conversation is its owner's alone.
    share_token = models.UUIDField(null=True, blank=True, unique=True, editable=False)
    shared_at = models.DateTimeField(_("shared"), null=True, blank=True)
    title = models.CharField(_("title"), max_length=200, blank=True)
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

    @property
    def subject(self) -> str:
        """Whose it is, as "user:ID" or "visitor:ID"; empty for a program that keeps no cookies."""
        if self.owner_id is not None:
            return f"user:{self.owner_id}"
        return f"visitor:{self.visitor}" if self.visitor else ""
