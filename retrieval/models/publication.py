from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from retrieval.models.profile import SearchProfileVersion


class Publication(models.Model):
    """That a version was put in force; against which objections, and then why. Written once, by ``publish``."""

    version = models.ForeignKey(
        SearchProfileVersion, models.CASCADE, related_name="publications", verbose_name=_("version")
    )
    published_at = models.DateTimeField(_("published"), auto_now_add=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("published by"),
    )
    objections = models.JSONField(_("objections"), default=list, blank=True)
    override = models.TextField(_("published all the same because"), blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("publication")
        verbose_name_plural = _("publications")
        permissions = [("override_gate", _("Can publish against objections"))]
        constraints = [
            models.CheckConstraint(
                condition=Q(objections=[], override="") | ~Q(objections=[]) & ~Q(override=""),
                name="override_gives_its_reason",
            )
        ]

    def __str__(self) -> str:
        return str(self.version)
