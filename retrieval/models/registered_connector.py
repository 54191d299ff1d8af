from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

# Airbyte's development kit, which runs manifests.
MANIFEST_PACKAGE = ("airbyte-cdk", "7.39.1")
MOST_MANIFEST_CHARACTERS = 1_000_000


class RegisteredConnector(models.Model):
    """A connector of Airbyte's protocol that a superuser allowed.

    ``spec`` is the JSON Schema of its settings, ``program`` the command that runs it, ``error`` why its installation
    failed.
    """

    class Kind(models.TextChoices):
        MANIFEST = "manifest", _("manifest (YAML)")
        PACKAGE = "package", _("package of PyPI")

    class State(models.TextChoices):
        ABSENT = "absent", _("not installed")
        INSTALLING = "installing", _("installing")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")

    name = models.CharField(
        _("name"),
        max_length=40,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*\Z", _("Use small letters, digits and hyphens."))],
        help_text=_("Small letters, digits and hyphens, such as notion."),
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.MANIFEST)
    manifest = models.TextField(_("manifest"), blank=True, max_length=MOST_MANIFEST_CHARACTERS)
    package = models.CharField(
        _("package"),
        max_length=100,
        blank=True,
        validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", _("This is not the name of a package."))],
        help_text=_("Such as airbyte-source-faker. It must have a console script that begins with source-."),
    )
    version = models.CharField(
        _("version"),
        max_length=60,
        blank=True,
        validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9.+!_-]*\Z", _("This is not a version."))],
    )
    is_for_curators = models.BooleanField(
        _("curators may use it"),
        default=False,
        help_text=_(
            "Otherwise only superusers make and change its sources. Some connectors read files of the server, or any "
            "address that their settings name: leave those to superusers."
        ),
    )
    state = models.CharField(_("status"), max_length=10, choices=State, default=State.ABSENT, editable=False)
    error = models.TextField(_("error"), blank=True, editable=False)
    spec = models.JSONField(default=dict, blank=True, editable=False)
    program = models.CharField(max_length=200, blank=True, editable=False)
    registered_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("registered by"),
    )
    created_at = models.DateTimeField(_("added"), auto_now_add=True)
    installed_at = models.DateTimeField(_("installed"), null=True, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("connector")
        verbose_name_plural = _("connectors")

    def __str__(self) -> str:
        return self.name

    @property
    def package_requirement(self) -> str:
        package, version = MANIFEST_PACKAGE if self.kind == self.Kind.MANIFEST else (self.package, self.version)
        return f"{package}=={version}"

    @property
    def is_ready(self) -> bool:
        return self.state == self.State.READY
