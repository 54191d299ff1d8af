from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from core.jobs import Job
from core.users import user_key
from retrieval.models.collection import Collection


class DraftQuerySet(models.QuerySet["Draft"]):
    def open(self) -> DraftQuerySet:
        """Those that are neither published nor discarded."""
        return self.exclude(status__in=Draft.ENDED)


class Draft(Job):
    """A working copy of a collection, in which documents are added, changed and removed before readers meet them.

    The copy is a collection of its own, so that it is searched, measured and asked like any other, by staff alone. The
    row is the job of what a worker does with it (see ``retrieval.documents.drafts.lifecycle``); ``attempts`` are those
    of the publication once it is asked for. Once published, it is the record: ``changes`` holds the sources that were
    added, changed and removed, ``objections`` what the gates had against it.
    """

    class Status(models.TextChoices):
        COPYING = "copying", _("being copied")
        OPEN = "open", _("open")
        PUBLISHING = "publishing", _("being published")
        PUBLISHED = "published", _("published")
        DISCARDED = "discarded", _("discarded")

    ENDED = (Status.PUBLISHED, Status.DISCARDED)
    TASK = "retrieval.tasks.resume_draft"
    # A worker resumes it from the state that it is in.
    WAITING = models.F("status")

    collection = models.ForeignKey(Collection, models.CASCADE, related_name="drafts", verbose_name=_("collection"))
    # None once the draft is ended and its copy cleared away.
    working_copy = models.OneToOneField(
        Collection, models.SET_NULL, null=True, related_name="draft", verbose_name=_("working copy")
    )
    status = models.CharField(_("status"), max_length=12, choices=Status, default=Status.COPYING)
    copied = models.PositiveIntegerField(_("documents copied"), default=0)
    created_at = models.DateTimeField(_("begun"), auto_now_add=True)
    created_by = user_key(_("begun by"))
    # What the permission to publish was given for: the states of the collection and of the working copy.
    permitted_versions = models.JSONField(default=list, editable=False)
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    published_by = user_key(_("published by"), blank=True)
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
        return f"{self.collection} · {_('draft')} #{self.pk}"

    @property
    def is_open(self) -> bool:
        return self.status not in self.ENDED

    @classmethod
    def unfinished(cls) -> models.QuerySet[Draft]:
        """The drafts to copy, to publish or to clear away."""
        return cls.objects.filter(
            Q(status__in=[cls.Status.COPYING, cls.Status.PUBLISHING])
            | Q(status__in=cls.ENDED, working_copy__isnull=False)
        )

    def give_back(self, error: str) -> bool:
        """Return a publication to the admin; False when it is not being published under this lease."""
        publishing = self.held().filter(status=self.Status.PUBLISHING)
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
        if not (self.is_last_attempt and self.give_back(message % self.attempts)):
            self.postpone(self.error, timedelta())
