"""Who opens pages, and what pages say."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User


def messages(response: Any) -> list[str]:
    """The sentences that Django's admin shows once."""
    return [str(message) for message in response.context["messages"]]


def boss() -> User:
    """A superuser, who may see everything."""
    return User.objects.filter(username="boss").first() or User.objects.create_superuser("boss")


def staff(*codenames: str) -> User:
    """One of the staff who has these permissions alone."""
    user = User.objects.create_user("eva", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user
