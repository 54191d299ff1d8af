"""Invitations: a link to one address, used once, until it expires."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from ragsite.models.account import Invitation

SESSION_KEY = "invitation"


class InvitationSpent(Exception):
    """The invitation was used, withdrawn or expired meanwhile."""


def new_token() -> tuple[str, str]:
    """A token for a link, and the hash of it that is stored."""
    token = secrets.token_urlsafe(32)
    return token, hash_token(token)


def hash_token(token: str) -> str:
    # Random and long, so that no salt and no slow hash is needed.
    return hashlib.sha256(token.encode()).hexdigest()


def find(token: str) -> Invitation | None:
    """The open invitation that a link belongs to."""
    return _open().filter(token_hash=hash_token(token)).first()


def pending(request: HttpRequest | None) -> Invitation | None:
    """The open invitation whose link this visitor followed."""
    pk = request.session.get(SESSION_KEY) if request is not None else None
    return _open().filter(pk=pk).first() if pk is not None else None


def accept(invitation: Invitation, user: Any) -> None:
    """Mark the invitation as used and give its groups. Raises: InvitationSpent."""
    if not _open().filter(pk=invitation.pk).update(accepted_at=timezone.now(), accepted_by=user):
        raise InvitationSpent
    user.groups.add(*invitation.groups.all())


def _open() -> QuerySet[Invitation]:
    if settings.SIGN_UP == "off" or not settings.LOCAL_PASSWORDS:
        return Invitation.objects.none()
    return Invitation.objects.filter(accepted_at=None, expires_at__gt=timezone.now())
