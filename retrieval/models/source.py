from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import MD5
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.encryption import SecretHolder, parse_url_origin
from core.jobs import Job
from retrieval.models.collection import Collection
from retrieval.models.document import Document

# A source is stale after three intervals without a successful run, but at least this many minutes.
STALE_MINUTES = 60

# The kind of source whose documents other programs send.
PUSH = "push"

# If ``readers`` has this value, all readers of the collection may read the item.
EVERYBODY = "everybody"

# Options that name the server to which a secret is sent, and the encryption. If one changes, the secret is removed.
DESTINATION_OPTIONS = ("url", "endpoint", "repository", "host", "port", "security")


class Source(SecretHolder):
    """A website, folder or other place from which a collection's documents are read.

    ``options`` depend on the kind; ``secret`` is their encrypted part. ``found`` is the result of the last preview.
    """

    SECRET_PURPOSE = "retrieval.sources"  # noqa: S105 (the name of a purpose)

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="sources", verbose_name=_("collection"))
    name = models.CharField(_("name"), max_length=100, help_text=_("Added in front of the names of its documents."))
    kind = models.CharField(_("kind"), max_length=20)
    options = models.JSONField(_("settings"), default=dict, blank=True)
    secret = models.TextField(blank=True, editable=False)
    found = models.JSONField(default=dict, db_default={}, blank=True, editable=False)
    metadata = models.JSONField(
        _("metadata"),
        default=dict,
        db_default={},
        blank=True,
        help_text=_(
            "Facts about each of its documents, for filters and rights: names and values in braces, such as "
            '{"department": "sales"}.'
        ),
    )
    interval_minutes = models.PositiveIntegerField(
        _("minutes between runs"),
        default=60,
        help_text=_("60 is every hour, 1440 every day; 0: only on request."),
    )
    is_paused = models.BooleanField(_("paused"), default=False)
    keeps_missing = models.BooleanField(
        _("keep documents that disappear from the source"),
        default=False,
        db_default=False,
        help_text=_("For archives: no run removes a document, and each says how many it kept."),
    )
    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True)
    created_at = models.DateTimeField(_("added"), auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("source")
        verbose_name_plural = _("sources")
        constraints = [models.UniqueConstraint(fields=["collection", "name"], name="one_source_per_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def secret_destination(self) -> object:
        # Any setting of a connector may be the address to which its secrets are sent. So after a change of any setting,
        # secrets must be entered again.
        own = sorted((name, value) for name, value in self.options.items() if name.startswith("config."))
        connector = [self.options.get("connector"), own] if self.kind == "connector" else []
        return self.kind, [parse_url_origin(str(self.options.get(name))) for name in DESTINATION_OPTIONS], connector

    @property
    def is_pushed(self) -> bool:
        return self.kind == PUSH

    @property
    def has_readers_by_source(self) -> bool:
        return bool(self.options.get("takes_readers"))

    @property
    def own_documents(self) -> models.QuerySet[Document]:
        return self.documents.filter(collection=self.collection_id)


class SourceRun(Job):
    """One run of a source: a job that updates the documents from the source. A preview only reports changes.

    ``removed`` counts deleted documents. ``kept_back`` counts deletions that wait until an admin starts a run with
    ``may_remove``.
    """

    class Status(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        STOPPED = "stopped", _("stopped")

    TASK = "retrieval.tasks.sync_source"
    WAITING, RUNNING, FAILED = Status.WAITING, Status.RUNNING, Status.FAILED
    ACTIVE = (Status.WAITING, Status.RUNNING)
    MOST_ATTEMPTS = 3

    source = models.ForeignKey(Source, models.CASCADE, related_name="runs", verbose_name=_("source"))
    status = models.CharField(_("status"), max_length=10, choices=Status, default=Status.WAITING)
    is_preview = models.BooleanField(_("preview"), default=False)
    may_remove = models.BooleanField(default=False, editable=False)
    added = models.PositiveIntegerField(_("added"), default=0)
    changed = models.PositiveIntegerField(_("changed"), default=0)
    unchanged = models.PositiveIntegerField(_("unchanged"), default=0)
    removed = models.PositiveIntegerField(_("removed"), default=0)
    failed = models.PositiveIntegerField(_("failed"), default=0)
    kept_back = models.PositiveIntegerField(_("removals that wait"), default=0)
    # Documents that are kept by a setting, although the source no longer has them.
    kept = models.PositiveIntegerField(_("kept"), default=0, db_default=0)
    details = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(_("asked for"), auto_now_add=True)
    finished_at = models.DateTimeField(_("ended"), null=True, blank=True)
    seconds = models.FloatField(_("seconds"), default=0)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("run of a source")
        verbose_name_plural = _("runs of sources")
        constraints = [
            models.UniqueConstraint(
                fields=["source"], condition=Q(status__in=["waiting", "running"]), name="one_active_run_per_source"
            )
        ]

    def __str__(self) -> str:
        return f"{self.source_id} #{self.pk}"

    def end(self, status: str, error: str = "", **values: Any) -> bool:
        return super().end(status, error, finished_at=timezone.now(), **values)

    @property
    def is_active(self) -> bool:
        return self.status in self.ACTIVE


class SourceItem(models.Model):
    """An item of a source, such as a page or file, as it was last listed.

    - ``key`` is its id in the source, ``name`` the name of its document (``Document.source``).
    - ``fingerprint`` shows whether it has changed. ``validators`` are headers for a conditional request.
    - ``links`` are the items to which this item links, as keyword arguments of ``RemoteItem``.
    - ``readers`` are the users and groups who may read the item, or EVERYBODY; None if they are not imported.
    - ``own_groups`` are groups that the item's record or a curator added.
    """

    class Outcome(models.TextChoices):
        ADDED = "added", _("added")
        CHANGED = "changed", _("changed")
        UNCHANGED = "unchanged", _("unchanged")
        FAILED = "failed", _("failed")
        # A redirect, or a page whose links are followed but whose content is not stored.
        PASSED = "passed", _("not a document")

    source = models.ForeignKey(Source, models.CASCADE, related_name="items")
    key = models.TextField()
    name = models.CharField(max_length=1000, blank=True)
    fingerprint = models.TextField(blank=True)
    validators = models.JSONField(default=dict)
    content_hash = models.CharField(max_length=64, blank=True)
    links = models.JSONField(default=list)
    readers = models.JSONField(null=True)
    own_groups = models.JSONField(null=True)
    seen_by_run = models.BigIntegerField(null=True)
    outcome = models.CharField(max_length=10, choices=Outcome, blank=True)
    error = models.TextField(blank=True)
    # The site could not use the item. It reads the item again only after the item or the supported formats change.
    is_rejected = models.BooleanField(default=False)
    # The item has disappeared. Its document will be deleted once an admin agrees.
    is_held = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(F("source"), MD5("key"), name="one_item_per_key")]

    def __str__(self) -> str:
        return self.key


def is_stale(source: Source, last_success: Any) -> bool:
    if source.is_paused or not source.interval_minutes:
        return False
    allowed = timedelta(minutes=max(3 * source.interval_minutes, STALE_MINUTES))
    return bool((last_success or source.created_at) < timezone.now() - allowed)
