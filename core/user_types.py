"""The type of a person who uses the site: an account or a visitor."""

from __future__ import annotations

from typing import TypeAlias

from django.contrib.auth.models import AnonymousUser, User

AnyUser: TypeAlias = User | AnonymousUser
