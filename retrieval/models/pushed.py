from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from core.key_limits import get_limits
from core.user_types import AnyUser
from core.users import build_user_key
from retrieval.models.collection import Collection
from retrieval.models.document import Document
from retrieval.models.source import PUSH, Source


class PushedItemQuerySet(models.QuerySet["PushedItem"]):
    def with_documents(self) -> list[PushedItem]:
        """Return the items in a list, each with its ``document`` loaded, in two queries."""
        items = list(self)
        rows = Document.objects.filter(
            origin__in={item.source_id for item in items}, source__in=[i.name for i in items]
        )
        documents = {(row.origin_id, row.source): row for row in rows}
        for item in items:
            item.document = documents.get((item.source_id, item.name)) if item.name else None
        return items


class PushedItem(models.Model):
    """A document that a program sent to a source of the kind Push, as it was sent last.

    - ``external_id`` is the program's id of the document.
    - ``name`` is the name of the document (``Document.source``); empty after a deletion.
    - ``content_hash`` is the SHA-256 of the stored file.
    - ``readers`` are names of groups; None admits all readers of the collection.
    - ``key`` is the public part of the API key of the request.
    """

    class Result(models.TextChoices):
        ADDED = "added", _("added")
        CHANGED = "changed", _("changed")
        UNCHANGED = "unchanged", _("unchanged")
        DELETED = "deleted", _("deleted")

    document: Document | None = None

    source = models.ForeignKey(Source, models.CASCADE, related_name="pushed_items", verbose_name=_("source"))
    external_id = models.CharField(_("identifier"), max_length=500)
    name = models.CharField(max_length=1000, blank=True)
    content_hash = models.CharField(max_length=64, blank=True)
    title = models.CharField(max_length=500, blank=True)
    url = models.CharField(max_length=1000, blank=True)
    metadata = models.JSONField(default=dict)
    readers = models.JSONField(null=True)
    changed_at = models.DateTimeField(_("changed"), null=True)
    result = models.CharField(_("result"), max_length=10, choices=Result)
    sent_at = models.DateTimeField(_("sent"))
    sent_by = build_user_key(_("sent by"))
    key = models.CharField(_("key"), max_length=16, blank=True)

    objects = PushedItemQuerySet.as_manager()

    class Meta:
        ordering = ["-sent_at", "-pk"]
        verbose_name = _("sent document")
        verbose_name_plural = _("sent documents")
        constraints = [models.UniqueConstraint(fields=["source", "external_id"], name="one_item_per_external_id")]
        indexes = [models.Index(fields=["source", "-sent_at"], name="pushed_items_newest")]

    def __str__(self) -> str:
        return self.external_id


def list_push_sources(user: AnyUser) -> models.QuerySet[Source]:
    """Return the sources to which a user may send documents. The limits of the user's current API key apply too."""
    sources = Source.objects.filter(kind=PUSH, collection__in=Collection.objects.curated_by(user))
    limits = get_limits(user)
    return sources if limits is None or limits.source is None else sources.filter(pk=limits.source)
