from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.jobs import Job
from core.users import build_user_key
from retrieval.models.collection import Collection


class DraftQuerySet(models.QuerySet["Draft"]):
    def filter_open(self) -> DraftQuerySet:
        return self.exclude(status__in=Draft.ENDED)


class Draft(Job):
    """A working copy of a collection, which is itself a collection. Readers see its changes only after it is published.

    ``attempts`` counts attempts to publish. ``objections`` are the reasons of gates (checks) against publication.
    """

    class Status(models.TextChoices):
        COPYING = "copying", _("being copied")
        OPEN = "open", _("open")
        PUBLISHING = "publishing", _("being published")
        PUBLISHED = "published", _("published")
        DISCARDED = "discarded", _("discarded")

    ENDED = (Status.PUBLISHED, Status.DISCARDED)
    TASK = "retrieval.tasks.resume_draft"
    WAITING = models.F("status")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="drafts", verbose_name=_("collection"))
    # None after the copy was deleted.
    working_copy = models.OneToOneField(
        Collection, models.SET_NULL, null=True, related_name="draft", verbose_name=_("working copy")
    )
    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.COPYING)
    copied = models.PositiveIntegerField(_("documents copied"), default=0)
    created_at = models.DateTimeField(_("begun"), auto_now_add=True)
    created_by = build_user_key(_("begun by"))
    # The versions of collection and working copy that may be published.
    permitted_versions = models.JSONField(default=list, editable=False)
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    published_by = build_user_key(_("published by"), blank=True)
    changes = models.JSONField(_("changes"), default=dict, blank=True)
    objections = models.JSONField(_("objections"), default=list, blank=True)
    override = models.TextField(_("reason to publish against objections"), blank=True)

    objects = DraftQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("draft")
        verbose_name_plural = _("drafts")
        constraints = [
            models.UniqueConstraint(
                fields=["collection"],
                condition=~Q(status__in=["published", "discarded"]),
                name="one_open_draft_per_collection",
            ),
            models.CheckConstraint(
                condition=Q(objections=[], override="") | ~Q(objections=[]) & ~Q(override=""),
                name="draft_override_gives_its_reason",
            ),
        ]

    def __str__(self) -> str:
        kind = _("draft")
        return f"{self.collection} · {kind} #{self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status not in self.ENDED

    @classmethod
    def unfinished(cls) -> models.QuerySet[Draft]:
        return cls.objects.filter(
            Q(status__in=[cls.Status.COPYING, cls.Status.PUBLISHING])
            | Q(status__in=cls.ENDED, working_copy__isnull=False)
        )

    def cancel_publication(self, error: str) -> bool:
        """Cancel a publication and store ``error`` for the admin; return False if this process has lost the lease."""
        publishing = self.filter_by_lease().filter(status=self.Status.PUBLISHING)
        return bool(
            publishing.update(
                status=self.Status.OPEN,
                error=error,
                lease=None,
                attempts=0,
                permitted_versions=[],
                published_by=None,
                objections=[],
                override="",
            )
        )

    def interrupt(self) -> None:
        message = _t("Publishing it was interrupted %d times: the worker may run out of memory or time.")
        if not (self.is_last_attempt and self.cancel_publication(message % self.attempts)):
            self.postpone(self.error, timedelta())
