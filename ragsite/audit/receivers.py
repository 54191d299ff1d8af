"""What is recorded beside changed rows: sign-ins, and what other apps tell."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import Model
from django.dispatch import receiver
from django.utils import timezone

from ragsite.audit.origin import current_origin
from ragsite.audit.recording import record
from ragsite.models import AuditEntry
from retrieval.record import happened

# Whoever looks on for a while, on a page that asks again and again, looked once.
LOOKED_AGAIN_AFTER = timedelta(minutes=10)
_LOOKS = ("conversation.viewed", "conversation.listed")


@receiver(user_logged_in, dispatch_uid="audit.signed_in")
def _signed_in(user: Any, **_: Any) -> None:
    record("sign_in.succeeded", user)


@receiver(user_logged_out, dispatch_uid="audit.signed_out")
def _signed_out(user: Any, **_: Any) -> None:
    if user is not None:
        record("sign_in.ended", user)


@receiver(user_login_failed, dispatch_uid="audit.sign_in_failed")
def _sign_in_failed(credentials: dict[str, Any], **_: Any) -> None:
    # What was typed is not kept unless it is somebody's name: people type passwords into that field.
    users = get_user_model()
    name = credentials.get(users.USERNAME_FIELD) or credentials.get("username")
    user = users._default_manager.filter(**{users.USERNAME_FIELD: str(name).replace("\0", "")}).first()
    record("sign_in.failed", user, known=user is not None)


@receiver(happened, dispatch_uid="audit.happened")
def _happened(action: str, subject: Model | None, details: dict[str, Any], **_: Any) -> None:
    if action not in _LOOKS or not _looked_lately(action, subject):
        record(action, subject, **details)


def _looked_lately(action: str, subject: Model | None) -> bool:
    user = current_origin().user
    looks = AuditEntry.objects.filter(
        action=action,
        actor__user_id=user.pk if user else None,
        object_id=str(subject.pk) if subject is not None else "",
        at__gt=timezone.now() - LOOKED_AGAIN_AFTER,
    )
    return looks.exists()
