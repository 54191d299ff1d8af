from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.key_limits import KeyLimits, KeyScope
from retrieval.models import Collection, Source

SCOPE_LABELS = {
    KeyScope.SEARCH.value: _("search: search, and list collections and documents"),
    KeyScope.ASK.value: _("ask: ask questions, and read and change one's own conversations"),
    KeyScope.DOCUMENTS_WRITE.value: _("documents:write: add, replace and delete documents"),
    KeyScope.ADMIN.value: _("admin: everything that the account may do"),
}


check_rate = RegexValidator(
    r"\A[1-9][0-9]{0,6}/(s|sec|min|hour|day)\Z",
    _("Write a rate as a number and a period: 10/s, 60/min, 1000/hour or 5000/day."),
)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> ApiKeyQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)


class ApiKey(models.Model):
    """An API key of a program, with some of the rights of its user.

    The key is shown once, and its SHA-256 is stored. ``public_id`` names it in lists and in the audit log.
    """

    secret = ""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys", verbose_name=_("account")
    )
    name = models.CharField(_("name"), max_length=100, help_text=_("What it is used for, and where."))
    public_id = models.CharField(_("begins with"), max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=20, choices=SCOPE_LABELS), verbose_name=_("scopes"))
    # Without this field, a limited key would get access to everything when its last collection is deleted.
    is_limited = models.BooleanField(_("limited to collections"), default=False)
    collections = models.ManyToManyField(
        Collection,
        blank=True,
        related_name="+",
        verbose_name=_("collections"),
        help_text=_("For a limited key: the collections that it may use, if its account may read them."),
    )
    # Without its source (an import of documents), a key would have more rights, so both are deleted together.
    source = models.ForeignKey(
        Source,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("source"),
        help_text=_("A source of the kind Push: the key may do nothing but send documents to it."),
    )
    rate = models.CharField(
        _("rate"),
        max_length=20,
        blank=True,
        validators=[check_rate],
        help_text=_("The most requests with this key, such as 60/min. Empty: the limit of every account."),
    )
    lists_sources = models.BooleanField(
        _("list of sources"),
        default=False,
        db_default=False,
        help_text=_("Answers at /v1 end with a list of their sources, for programs that show only the text."),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True, help_text=_("Empty: never."))
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")

    def __str__(self) -> str:
        return f"{self.name} ({self.public_id}…)"

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def is_usable(self) -> bool:
        return self.revoked_at is None and not self.is_expired

    def limits(self) -> KeyLimits:
        return KeyLimits(
            key=self.public_id,
            scopes=frozenset(KeyScope(scope) for scope in self.scopes),
            collections=frozenset(self.collections.values_list("pk", flat=True)) if self.is_limited else None,
            source=self.source_id,
        )

    def revoke(self) -> None:
        if self.revoked_at is None:
            self.revoked_at = timezone.now()
            self.save(update_fields=["revoked_at"])
