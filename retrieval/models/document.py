"""Documents, who may see them, and what was recognised in them."""

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
from core.users import user_key
from retrieval.models.collection import Collection
from retrieval.models.left_out import KINDS, explain, summarise
from retrieval.models.narrowing import is_narrowed, readers_for, seen_by
from retrieval.models.webhook import Webhook, announce


class RecognisedPage(models.Model):
    """What was recognised on one page of a file: kept as soon as it is known, so that no page is recognised twice.

    ``words`` holds [text, left, top, right, bottom, line, confidence] of each, in ten thousandths of the upright page.
    ``failure`` says why nothing could be recognised; the page is not tried again with the same ``recipe``.
    """

    content_hash = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    # The engine, its version and its languages.
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
    """Where an uploaded file is kept: under a random name, so that no upload can overwrite or guess another's."""
    return f"documents/{uuid.uuid4().hex}{PurePath(filename).suffix.lower()[:12]}"


class DocumentQuerySet(models.QuerySet["Document"]):
    def readable_by(self, user: AnyUser) -> DocumentQuerySet:
        """Documents that ``user`` may read at this moment."""
        return self.filter(seen_by(readers_for(user)), collection__in=Collection.objects.readable_by(user))

    def narrowed(self) -> DocumentQuerySet:
        """Those that only members of some groups see."""
        return self.filter(is_narrowed())

    def count_left_out(self) -> dict[str, int]:
        """Return how many documents lack something of their file, by its kind; a kind that none lacks has 0."""
        rows = self.exclude(left_out=[]).order_by().values_list("left_out", flat=True)
        counts = Counter(kind for left_out in rows for kind in {kind for kind, _names, _count in left_out})
        return {kind: counts[kind] for kind in KINDS}


class Document(Job):
    """A file an admin put into a collection, and the job of ingesting it.

    While a new version of the file is being read, or when reading it failed, the passages of the version before it
    stay searchable: they belong to :class:`DocumentText`, which only a successful ingestion replaces.
    """

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
    # The title as it stands in the file: while `title` equals it, a new version of the file may change it.
    extracted_title = models.CharField(max_length=500, blank=True, editable=False)
    source = models.CharField(
        _("source"), max_length=1000, help_text=_("File name or path; the same source again is a new version of it.")
    )
    # The source that keeps it in sync; None for one that was uploaded.
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
    # The archive or mail that this file came in: read again, it brings this document up to date, or removes it.
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
    # Reading it took longer than the quick ones take: few such documents are read at once.
    is_slow = models.BooleanField(default=False, editable=False)
    chunk_count = models.PositiveIntegerField(_("passages"), default=0)
    # Sentences that speak to a language model instead of a reader (retrieval.text.instructions).
    instruction_count = models.PositiveIntegerField(_("instructions to a model"), default=0)

    # What the file holds beside its text: [kind, first names, count] of each.
    left_out = models.JSONField(default=list, db_default=[], editable=False)

    # None of what a command or a source brought.
    added_by = user_key(_("added by"), blank=True, editable=False)
    review_on = models.DateField(
        _("review date"),
        null=True,
        blank=True,
        help_text=_("From this day on, the document is marked as due for review."),
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)
    ingested_at = models.DateTimeField(_("last read"), null=True, blank=True)

    objects = DocumentQuerySet.as_manager()

    class Meta:
        ordering = ["title", "source", "id"]
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        constraints = [models.UniqueConstraint(fields=["collection", "source"], name="one_document_per_source")]
        # Which documents have a file still, asked when one of them lets go of it.
        # And which ones are narrowed, asked before each search.
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
                announce(Webhook.Event.DOCUMENT_FAILED, {"document": self.pk, **names, "error": error})
        return has_ended

    @property
    def is_due(self) -> bool:
        """Whether it has to be reviewed by now."""
        return self.review_on is not None and self.review_on <= timezone.localdate()

    @property
    def notice(self) -> str:
        """What was not read of the file, in the language of the page; empty when all was."""
        return explain(self.left_out)

    @property
    def not_read(self) -> str:
        """How much was not read of the file, by kind, in the language of the page; empty when all was."""
        return summarise(self.left_out)

    def share_metadata(self) -> None:
        """Give the members, and theirs, this document's metadata: what narrows a mail narrows what came in it."""
        Document.objects.filter(pk__in=self.list_with_members()[1:]).update(metadata=self.metadata)

    def list_with_members(self) -> list[int]:
        """Its id, and those of what came in it, and in that."""
        found = parents = [self.pk]
        while parents:
            parents = list(Document.objects.filter(parent__in=parents).values_list("pk", flat=True))
            found = found + parents
        return found

    def write(self, **values: Any) -> bool:
        # During ingestion this is the time of the last progress: `/readyz` recognises a stuck document by it.
        return super().write(updated_at=timezone.now(), **values)


class DocumentText(models.Model):
    """The canonical text of the version that is being served; every offset of its chunks refers to it.

    ``pages`` holds [number, start, end] triples, ``sections`` [start, level, title]; both by ascending start.
    """

    document = models.OneToOneField(Document, models.CASCADE, primary_key=True, related_name="text")
    content_hash = models.CharField(max_length=64)
    # The fingerprint of everything that shaped the chunks: file, extractor, chunker, analysis, embedder.
    recipe = models.CharField(max_length=64)
    text = models.TextField()
    pages = models.JSONField(default=list)
    sections = models.JSONField(default=list)
    # [number, confidence] of each page that is a picture; the confidence is null where nothing was recognised.
    recognised = models.JSONField(default=list)
    # [start, end, rule] of the first sentences that instruct a language model.
    instructions = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"text of document {self.document_id}"
