from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from ragsite.accounts.keys import compute_digest
from ragsite.models.account import Invitation

SESSION_KEY = "invitation"


def find_invitation(token: str) -> Invitation | None:
    return _find_open_invitations().filter(token_hash=compute_digest(token)).first()


def find_pending_invitation(request: HttpRequest | None) -> Invitation | None:
    pk = request.session.get(SESSION_KEY) if request is not None else None
    return _find_open_invitations().filter(pk=pk).first() if pk is not None else None


def accept_invitation(invitation: Invitation, user: User) -> bool:
    """Mark the invitation as used, and add the user to its groups; False if it is used or has expired."""
    if not _find_open_invitations().filter(pk=invitation.pk).update(accepted_at=timezone.now(), accepted_by=user):
        return False
    user.groups.add(*invitation.groups.all())
    return True


def _find_open_invitations() -> QuerySet[Invitation]:
    if settings.SIGN_UP == "off" or not settings.LOCAL_PASSWORDS:
        return Invitation.objects.none()
    return Invitation.objects.filter(accepted_at=None, expires_at__gt=timezone.now())
