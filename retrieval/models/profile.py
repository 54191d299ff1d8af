from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from core.dataclass_json import to_json
from core.users import build_user_key
from retrieval.profile_settings import ProfileSettings, from_json


class VersionIsImmutable(TypeError):
    """A programming error: code tried to change a saved version."""


class SearchProfile(models.Model):
    slug = models.SlugField(
        _("short name"), unique=True, help_text=_("Names the profile in explanations, as in “default v3”.")
    )
    name = models.CharField(_("name"), max_length=200)
    description = models.TextField(_("description"), blank=True, help_text=_("What it is for, in a sentence or two."))
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("search profile")
        verbose_name_plural = _("search profiles")

    def __str__(self) -> str:
        return self.name


class SearchProfileVersion(models.Model):
    """A version of a search profile's settings, which never changes.

    At most one version is published, counted over all profiles.
    """

    profile = models.ForeignKey(
        SearchProfile, models.CASCADE, related_name="versions", verbose_name=_("search profile")
    )
    number = models.PositiveIntegerField(_("version"))
    settings = models.JSONField(_("settings"))
    note = models.CharField(_("note"), max_length=500, blank=True)
    created_at = models.DateTimeField(_("made"), auto_now_add=True)
    created_by = build_user_key(_("made by"), blank=True)
    is_published = models.BooleanField(_("in use"), default=False)
    published_at = models.DateTimeField(_("published"), null=True, blank=True)
    published_by = build_user_key(_("published by"), blank=True)

    class Meta:
        ordering = ["profile", "-number"]
        verbose_name = _("version of a search profile")
        verbose_name_plural = _("versions of search profiles")
        constraints = [
            models.UniqueConstraint(fields=["profile", "number"], name="one_version_per_number"),
            models.UniqueConstraint(
                fields=["is_published"], condition=Q(is_published=True), name="one_published_profile_version"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.profile.slug} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save a new version.

        Raises: VersionIsImmutable if it was saved before; ImproperProfile for invalid settings.
        """
        if not self._state.adding:
            raise VersionIsImmutable(f"Version {self.pk} is saved and stays as it is: a change is a new version.")
        self.settings = to_json(from_json(self.settings))
        super().save(*args, **kwargs)

    def read_settings(self) -> ProfileSettings:
        """Return the settings. Raises: ImproperProfile if this release of Ragsite cannot read them."""
        return from_json(self.settings)


class Publication(models.Model):
    """A record of one publication of a search profile.

    ``objections`` come from gates, which are checks before a publication. ``override`` is the reason to publish anyway.
    """

    version = models.ForeignKey(
        SearchProfileVersion, models.CASCADE, related_name="publications", verbose_name=_("version")
    )
    published_at = models.DateTimeField(_("published"), auto_now_add=True)
    published_by = build_user_key(_("published by"), blank=True)
    objections = models.JSONField(_("objections"), default=list, blank=True)
    override = models.TextField(_("reason to publish against objections"), blank=True)

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
