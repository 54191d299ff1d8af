from __future__ import annotations

import hashlib

from django.db import models
from django.utils.translation import gettext_lazy as _

DEFAULT_NAME = "Ragsite"


class SiteIdentity(models.Model):
    name = models.CharField(
        _("name of the site"), max_length=60, default=DEFAULT_NAME, help_text=_("Shown on every page and in its title.")
    )
    line = models.CharField(
        _("line below the name"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("One sentence on the front page, for example whose documents these are."),
    )
    contact = models.CharField(
        _("who keeps the site"),
        max_length=300,
        blank=True,
        default="",
        db_default="",
        help_text=_("Shown at the foot of the front page: whose site it is, and how to reach them."),
    )
    logo = models.BinaryField(_("logo"), null=True, blank=True)
    logo_type = models.CharField(max_length=20, blank=True, default="")
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("name and logo")
        verbose_name_plural = _("name and logo")

    def __str__(self) -> str:
        return self.name

    @property
    def logo_version(self) -> str:
        return hashlib.sha256(self.logo).hexdigest()[:12] if self.logo else ""
