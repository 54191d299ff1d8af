from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models


def user_key(verbose_name: Any, **options: Any) -> models.ForeignKey[Any, Any]:
    """Who did something; empty once the account is deleted."""
    return models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=verbose_name, **options
    )
