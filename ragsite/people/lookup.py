from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError


def find_person(name: str) -> Any:
    """The user of that name, for a command. Raises: CommandError."""
    user = get_user_model()._default_manager.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no account named {name}.")
    return user
