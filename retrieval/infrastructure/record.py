"""What is worth keeping on record and what no saved row tells. Whoever keeps the record listens."""

from __future__ import annotations

from django.db.models import Model
from django.dispatch import Signal

# Sent with `action`, such as “conversation.viewed”, `subject` (a row, or None) and `details`.
happened = Signal()


def tell(action: str, subject: Model | None = None, **details: object) -> None:
    """Say that something happened. ``details`` hold no text of documents, questions or answers."""
    happened.send(sender=None, action=action, subject=subject, details=details)
