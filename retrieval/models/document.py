from __future__ import annotations

import uuid
from collections import Counter
from pathlib import PurePath
from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.jobs import Job
from core.user_types import AnyUser
from core.users import build_user_key
from retrieval.models.collection import Collection
from retrieval.models.left_out import KINDS, explain_left_out_parts, summarise_left_out_parts
from retrieval.models.narrowing import build_group_restricted_condition, build_readable_condition, build_reader_rights
from retrieval.models.natural_order import build_natural_sort_key
from retrieval.models.webhook import Webhook, announce_event


class RecognisedPage(models.Model):
    """The result of OCR on one page of a file.

    Each of ``words`` is [text, left, top, right, bottom, line, confidence], in ten thousandths of the upright page.
    After a ``failure``, the page is not read again until the ``recipe`` (OCR's version and languages) changes.
    """

    content_hash = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    recipe = models.CharField(max_length=200)
    width = models.FloatField(default=0)
    height = models.FloatField(default=0)
    turned = models.PositiveSmallIntegerField(default=0)
    words = models.JSONField(default=list)
    confidence = models.FloatField(null=True)
    failure = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["content_hash", "number", "recipe"], name="page_recognised_once")
        ]

    def __str__(self) -> str:
        return f"page {self.number} of {self.content_hash[:12]}"


def upload_path(document: Document, filename: str) -> str:
    """Return a random path, which is unique and cannot be guessed."""
    return f"documents/{uuid.uuid4().hex}{PurePath(filename).suffix.lower()[:12]}"


class DocumentQuerySet(models.QuerySet["Document"]):
    def readable_by(self, user: AnyUser) -> DocumentQuerySet:
        return self.filter(
            build_readable_condition(build_reader_rights(user)), collection__in=Collection.objects.readable_by(user)
        )

    def filter_restricted(self) -> DocumentQuerySet:
        return self.filter(build_group_restricted_condition())

    def count_left_out_kinds(self) -> dict[str, int]:
        rows = self.exclude(left_out=[]).order_by().values_list("left_out", flat=True)
        counts = Counter(kind for left_out in rows for kind in {kind for kind, _names, _count in left_out})
        return {kind: counts[kind] for kind in KINDS}


class Document(Job):
    """A file in a collection, and the job of reading it. Until a new version is read, the previous one is searched."""

    class Status(models.TextChoices):
        PENDING = "pending", _("waiting")
        PROCESSING = "processing", _("being read")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")

    TASK = "retrieval.tasks.ingest_document"
    WAITING, RUNNING, FAILED = Status.PENDING, Status.PROCESSING, Status.FAILED
    INTERRUPTED = "Reading it was interrupted %d times: the worker may run out of memory. Split the file."

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="documents", verbose_name=_("collection"))
    title = models.CharField(_("title"), max_length=500, blank=True, help_text=_("Empty: the title in the file."))
    # The title in the file. If `title` equals this title, a new version of the file changes both fields.
    extracted_title = models.CharField(max_length=500, blank=True, editable=False)
    source = models.CharField(
        _("source"), max_length=1000, help_text=_("File name or path; the same source again is a new version of it.")
    )
    origin = models.ForeignKey(
        "retrieval.Source",
        models.SET_NULL,
        null=True,
        blank=True,
        editable=False,
        related_name="documents",
        verbose_name=_("comes from"),
    )
    url = models.URLField(
        _("web address"), max_length=1000, blank=True, help_text=_("Where readers find the original.")
    )
    # The archive or mail that contained this file.
    parent = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        blank=True,
        editable=False,
        related_name="members",
        verbose_name=_("came in"),
    )
    file = models.FileField(_("file"), upload_to=upload_path, max_length=200)
    media_type = models.CharField(_("media type"), max_length=100, blank=True)
    content_hash = models.CharField(_("SHA-256 of the file"), max_length=64, db_index=True)
    size_bytes = models.PositiveBigIntegerField(_("size in bytes"), default=0)
    language = models.CharField(_("language"), max_length=8, blank=True)
    metadata = models.JSONField(_("metadata"), default=dict, blank=True)

    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.PENDING, db_index=True)
    progress_percent = models.PositiveSmallIntegerField(_("progress in percent"), default=0)
    is_slow = models.BooleanField(default=False, editable=False)
    chunk_count = models.PositiveIntegerField(_("passages"), default=0)
    instruction_count = models.PositiveIntegerField(_("sentences that give orders to an AI"), default=0)

    # The parts of the file that were not read: [kind, names of the first parts, number of parts].
    left_out = models.JSONField(default=list, db_default=[], editable=False)

    added_by = build_user_key(_("added by"), blank=True, editable=False)
    review_on = models.DateField(
        _("review date"),
        null=True,
        blank=True,
        help_text=_("From this day on, the document is marked as due for review."),
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    ingested_at = models.DateTimeField(_("last read"), null=True, blank=True)

    # If there is no title, the file's name (``source``) is the key.
    sort_key = models.GeneratedField(
        expression=build_natural_sort_key("title", "source"), output_field=models.TextField(), db_persist=True
    )

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["sort_key", "source", "id"]
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        constraints = [models.UniqueConstraint(fields=["collection", "source"], name="one_document_per_source")]
        indexes = [
            models.Index(fields=["file"], name="document_file"),
            GinIndex(fields=["metadata"], name="document_metadata"),
        ]

    def __str__(self) -> str:
        return self.title or self.source

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        with transaction.atomic():
            has_ended = super().end(status, error, **values)
            if has_ended and status == self.FAILED:
                names = {"source": self.source, "collection": self.collection.slug}
                announce_event(Webhook.Event.DOCUMENT_FAILED, {"document": self.pk, **names, "error": error})
        return has_ended

    def become_ready(self, passages: int) -> None:
        """Set the status READY and release the lease. The caller must save the instance."""
        self.status, self.error, self.lease, self.retry_at = self.Status.READY, "", None, None
        self.progress_percent, self.chunk_count, self.ingested_at = 100, passages, timezone.now()

    @property
    def is_review_due(self) -> bool:
        return self.review_on is not None and self.review_on <= timezone.localdate()

    @property
    def notice(self) -> str:
        """A sentence on content of the file that was not read; empty if all was read."""
        return explain_left_out_parts(self.left_out)

    @property
    def left_out_summary(self) -> str:
        return summarise_left_out_parts(self.left_out)

    def copy_metadata_to_members(self) -> None:
        """Copy the metadata, which include rights, to the documents inside this archive or mail."""
        Document.objects.filter(pk__in=self.list_own_and_member_ids()[1:]).update(metadata=self.metadata)

    def list_own_and_member_ids(self) -> list[int]:
        found = parents = [self.pk]
        while parents:
            parents = list(Document.objects.filter(parent__in=parents).values_list("pk", flat=True))
            found = found + parents
        return found

    def write_under_lease(self, **values: Any) -> bool:
        # `/readyz` reports a document as stuck if its `updated_at` is old.
        return super().write_under_lease(updated_at=timezone.now(), **values)


class DocumentText(models.Model):
    """The text of a document, in the version that is searched. Offsets of passages refer to this text.

    Each of ``pages`` is [number, start, end], each of ``sections`` [start, level, title]. Both are sorted by start.
    """

    document = models.OneToOneField(Document, models.CASCADE, primary_key=True, related_name="text")
    content_hash = models.CharField(max_length=64)
    # A fingerprint of extractor, chunker, text analysis and embedder.
    recipe = models.CharField(max_length=64)
    text = models.TextField()
    pages = models.JSONField(default=list)
    sections = models.JSONField(default=list)
    # [number, confidence] of each scanned page; the confidence is null if OCR failed
    recognised = models.JSONField(default=list)
    # [start, end, rule] of the first sentences that give orders to a language model.
    instructions = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"text of document {self.document_id}"

    @property
    def version(self) -> str:
        return f"{self.content_hash}:{self.recipe}"
