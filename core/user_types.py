from __future__ import annotations

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User

AnyUser: TypeAlias = User | AnonymousUser
