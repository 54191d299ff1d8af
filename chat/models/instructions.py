from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.validators import MaxLengthValidator
from django.db import models, transaction
from django.db.models import Max, Q
from django.utils.translation import gettext_lazy as _

from core.users import build_user_key
from retrieval.models import Collection

LONGEST = 800


class CollectionInstructions(models.Model):
    """A version of the curators' instructions to a language model, for one collection.

    It does not change, and at most one per collection is active. ``outcome`` describes its evaluation.
    """

    collection = models.ForeignKey(
        Collection, models.CASCADE, related_name="instructions", verbose_name=_("collection")
    )
    number = models.PositiveIntegerField(_("version"), editable=False)
    text = models.TextField(
        _("instructions"),
        validators=[MaxLengthValidator(LONGEST)],
        help_text=_(
            "Tone, language, and what to say when unsure, for the language model: at most 800 characters, which take "
            "room from the sources. The site's rules on sources and citations come first."
        ),
    )
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    created_by = build_user_key(_("made by"), editable=False)
    is_active = models.BooleanField(_("in use"), default=False, editable=False)
    requested_at = models.DateTimeField(_("asked for"), null=True, editable=False)
    requested_by = build_user_key(None, editable=False)
    outcome = models.TextField(_("outcome"), blank=True, editable=False)

    class Meta:
        ordering = ["collection", "-number"]
        verbose_name = _("instructions of a collection")
        verbose_name_plural = _("instructions of collections")
        constraints = [
            models.UniqueConstraint(fields=["collection", "number"], name="one_instructions_per_number"),
            models.UniqueConstraint(
                fields=["collection"], condition=Q(is_active=True), name="one_active_instructions_per_collection"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.collection.slug} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        with transaction.atomic():
            if self._state.adding:
                Collection.objects.select_for_update().get(pk=self.collection_id)
                newest = CollectionInstructions.objects.filter(collection=self.collection_id).aggregate(Max("number"))
                self.number = (newest["number__max"] or 0) + 1
            super().save(*args, **kwargs)

    def activate(self, outcome: str = "") -> None:
        with transaction.atomic():
            Collection.objects.select_for_update().get(pk=self.collection_id)
            for other in CollectionInstructions.objects.filter(collection=self.collection_id, is_active=True):
                other.is_active = False
                other.save(update_fields=["is_active"])
            self.is_active, self.requested_at, self.outcome = True, None, outcome
            self.save(update_fields=["is_active", "requested_at", "outcome"])


def list_instructions(*, slugs: Iterable[str] = (), collections: Iterable[int] = ()) -> list[CollectionInstructions]:
    """Return the active instructions of the collections; for a draft's working copy, those of its original."""
    named = Q(collection__slug__in=slugs) | Q(collection__drafts__working_copy__slug__in=slugs)
    known = Q(collection__in=collections) | Q(collection__drafts__working_copy__in=collections)
    found = CollectionInstructions.objects.filter(named | known, is_active=True).select_related("collection")
    return list(found.distinct().order_by("pk"))
