from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import models
from django.http import HttpRequest

from core.key_limits import get_limits
from core.user_types import AnyUser

if TYPE_CHECKING:
    from rest_framework.request import Request


def is_active(user: AnyUser) -> bool:
    return bool(getattr(user, "is_authenticated", False) and getattr(user, "is_active", False))


def list_groups(user: AnyUser) -> models.QuerySet[Group]:
    groups: models.QuerySet[Group] = user.groups.all() if user.pk is not None else Group.objects.none()
    return groups


def is_superuser(user: AnyUser) -> bool:
    return is_active(user) and bool(getattr(user, "is_superuser", False))


def build_user_key(verbose_name: Any, **options: Any) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=verbose_name, **options
    )


def is_staff_with(user: AnyUser, permission: str) -> bool:
    """Return whether the user is active staff and has the permission, and the scopes of an API key allow it."""
    limits = get_limits(user)
    if limits is not None and not limits.may_use(permission):
        return False
    return bool(getattr(user, "is_active", False) and getattr(user, "is_staff", False) and user.has_perm(permission))


def may_debug(user: AnyUser) -> bool:
    """Return whether the user may see how passages were found, in answers that they may read."""
    return bool(settings.CHAT_DEBUG_FOR_EVERYONE) or is_staff_with(user, "chat.view_answer")


def get_account(request: HttpRequest | Request) -> User:
    return cast(User, request.user)
