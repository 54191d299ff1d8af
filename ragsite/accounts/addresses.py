"""An account has the one address that stands in it."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model


def users_with(address: str) -> list[Any]:
    """Accounts of this address, whatever its capitals; also those that wait for it to be confirmed."""
    users = get_user_model()._default_manager.filter(email__iexact=address)
    # The database folds more letters together than addresses do.
    return [user for user in users if user.email.lower() == address.lower()]


def forget_other_addresses(sender: Any, instance: Any, update_fields: Any = None, **_options: Any) -> None:
    """Delete allauth's record of an address that an administrator replaced: it could go on resetting the password."""
    if update_fields is None or "email" in update_fields:
        EmailAddress.objects.filter(user_id=instance.pk).exclude(email=instance.email.lower()).delete()
