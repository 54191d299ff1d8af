from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.users import build_user_key

INVITATION_LASTS = timedelta(days=7)


def invitation_expiry() -> datetime:
    return timezone.now() + INVITATION_LASTS


class Invitation(models.Model):
    email = models.EmailField(_("e-mail address"))
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    groups = models.ManyToManyField(
        Group, verbose_name=_("groups"), blank=True, help_text=_("Given to the account when it is made.")
    )
    created_by = build_user_key(_("invited by"), editable=False)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"), default=invitation_expiry)
    accepted_at = models.DateTimeField(_("accepted"), null=True, editable=False)
    accepted_by = build_user_key(_("account"), editable=False)

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("invitation")
        verbose_name_plural = _("invitations")

    def __str__(self) -> str:
        return self.email


class ClaimedRights(models.Model):
    """The rights that an account got from its identity provider. Only these can be lost at a later sign-in."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="claimed_rights")
    groups = models.ManyToManyField(Group, related_name="+")
    is_staff = models.BooleanField(default=False)

    def __str__(self) -> str:
        return str(self.user)


def find_users_by_email(address: str) -> list[Any]:
    users = get_user_model()._default_manager.filter(email__iexact=address)
    # The database's iexact treats some letters as equal that lower() does not.
    return [user for user in users if user.email.lower() == address.lower()]


def forget_other_addresses(sender: Any, instance: Any, update_fields: Any = None, **_options: Any) -> None:
    """Delete allauth's record of a replaced e-mail address, which could still reset the password."""
    if update_fields is None or "email" in update_fields:
        EmailAddress.objects.filter(user_id=instance.pk).exclude(email=instance.email.lower()).delete()


class SignInCount(models.Model):
    """The failed sign-ins of an account, of a network address, or of an account at one network address.

    In rows of the kind KNOWN, ``failures`` is not used, and ``since`` is the account's last sign-in at the address. In
    other rows, ``since`` is the first failure. ``key`` is a keyed hash, because people sometimes type a
    password as the name. After many failures, few attempts are allowed; ``admitted_at`` is the last allowed one.
    """

    class Kind(models.TextChoices):
        PAIR = "pair"
        ADDRESS = "address"
        ACCOUNT = "account"
        TOKENS = "tokens"
        KNOWN = "known"
        BUSY = "busy"

    key = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=7, choices=Kind)
    failures = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(db_index=True)
    admitted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.kind}: {self.failures}"
