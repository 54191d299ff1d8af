"""A signal for events that the audit log keeps although they change no row of its models."""

from __future__ import annotations

from django.db.models import Model
from django.dispatch import Signal

# Sent with `action`, such as “conversation.viewed”, `subject` (a row, or None) and `details`.
happened = Signal()


def tell(action: str, subject: Model | None = None, **details: object) -> None:
    """Say that something happened. ``details`` hold no text of documents, questions or answers."""
    happened.send(sender=None, action=action, subject=subject, details=details)
