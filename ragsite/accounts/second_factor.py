"""Which accounts need more than a password, and the limits on guesses at a second factor."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.adapter import get_adapter
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


def has_second_factor(user: AbstractBaseUser | AnonymousUser) -> bool:
    return bool(get_adapter().is_mfa_enabled(user))


def is_missing(user: Any) -> bool:
    """Whether this member of the staff must set up a second factor before the admin opens."""
    return bool(settings.STAFF_REQUIRES_MFA and user.is_staff and not has_second_factor(user))


def is_password_enough(user: AbstractBaseUser) -> bool:
    """Whether the right password alone proves who signs in: no second factor, and no address left to confirm."""
    return not has_second_factor(user) and not EmailAddress.objects.filter(user_id=user.pk, verified=False).exists()
