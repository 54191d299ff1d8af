from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class AuditPerson(models.Model):
    """A person in the audit log. The name is stored only here, so that an erasure can replace it.

    ``user_id`` is no foreign key, because entries stay when the account is deleted.
    """

    user_id = models.BigIntegerField(null=True, unique=True)
    name = models.CharField(_("name"), max_length=200)

    class Meta:
        verbose_name = _("person in the audit log")
        verbose_name_plural = _("persons in the audit log")

    def __str__(self) -> str:
        return self.name


class AuditEntry(models.Model):
    """One recorded action. The database forbids changes, and deletions before AUDIT_DAYS.

    It contains no text of documents, questions or answers. ``object_person`` is the account that was changed, or the
    owner of the changed object.
    """

    class Channel(models.TextChoices):
        PAGE = "page", _("a page")
        API = "api", _("the API")
        COMMAND = "command", _("a command")
        TASK = "task", _("a background task")

    at = models.DateTimeField(_("time"), default=timezone.now, db_index=True)
    action = models.CharField(_("action"), max_length=60, db_index=True)
    actor = models.ForeignKey(
        AuditPerson, models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("who did it")
    )
    key = models.CharField(_("with the API key"), max_length=16, blank=True)
    via = models.CharField(_("by way of"), max_length=8, choices=Channel)
    address = models.CharField(_("address"), max_length=60, blank=True)
    object_type = models.CharField(_("kind of object"), max_length=60, blank=True)
    object_id = models.CharField(_("id of the object"), max_length=60, blank=True)
    object_label = models.CharField(_("object"), max_length=300, blank=True)
    object_person = models.ForeignKey(
        AuditPerson, models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("subject")
    )
    details = models.JSONField(_("details"), default=dict, blank=True, encoder=DjangoJSONEncoder)

    class Meta:
        ordering = ["-at", "-pk"]
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit log")
        indexes = [models.Index(fields=["object_type", "object_id"], name="audit_by_object")]

    def __str__(self) -> str:
        # The object's name is left out, because some readers of the log must not see it.
        return f"{self.action} {self.object_id}".strip()
