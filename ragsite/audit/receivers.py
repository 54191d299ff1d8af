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
from retrieval.observability.record import happened

# Whoever does the same again and again, from the same address, did it once in so long: looks on, on a page that asks
# for more, or sends a password with each call.
AGAIN_AFTER = {
    "conversation.viewed": timedelta(minutes=10),
    "conversation.listed": timedelta(minutes=10),
    "sign_in.basic": timedelta(hours=1),
}


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
    if action not in AGAIN_AFTER or not _happened_lately(action, subject):
        record(action, subject, **details)


def _happened_lately(action: str, subject: Model | None) -> bool:
    origin = current_origin()
    before = AuditEntry.objects.filter(
        action=action,
        actor__user_id=origin.user.pk if origin.user else None,
        object_id=str(subject.pk) if subject is not None else "",
        address=origin.address,
        at__gt=timezone.now() - AGAIN_AFTER[action],
    )
    return before.exists()
