from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models

from core.key_limits import limits_of


def is_active(user: Any) -> bool:
    """Return whether the user has an account that is not switched off."""
    return bool(getattr(user, "is_authenticated", False) and getattr(user, "is_active", False))


def groups_of(user: Any) -> models.QuerySet[Group]:
    groups: models.QuerySet[Group] = user.groups.all() if user.pk is not None else Group.objects.none()
    return groups


def is_superuser(user: Any) -> bool:
    return is_active(user) and bool(getattr(user, "is_superuser", False))


def user_key(verbose_name: Any, **options: Any) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=verbose_name, **options
    )


def is_staff_with(user: Any, permission: str) -> bool:
    """Return whether the user is active staff with the permission; superusers have all.

    An API key's scopes must allow the permission too.
    """
    limits = limits_of(user)
    if limits is not None and not limits.permit(permission):
        return False
    return bool(getattr(user, "is_active", False) and getattr(user, "is_staff", False) and user.has_perm(permission))
