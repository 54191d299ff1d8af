from __future__ import annotations

from django.db import models

from ragsite.models.account import ClaimedRights, Invitation

__all__ = ["ClaimedRights", "Invitation", "SignInCount"]


class SignInCount(models.Model):
    """Failed sign-ins of one account, one address, or both; and the addresses where an account succeeded.

    In the database, because all web processes share it. ``key`` is a keyed hash, because people type passwords into
    the field for the name. ``since`` is when counting began, or the last success. ``admitted_at`` is when a slowed
    account was last let through.
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
