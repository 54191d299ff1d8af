from __future__ import annotations

from django.db.models import Model
from django.dispatch import Signal

# Arguments: `action` (such as “conversation.viewed”), `subject` (a row or None), `details`.
happened = Signal()


def record_event(action: str, subject: Model | None = None, **details: object) -> None:
    """Write an event to the audit log. Details must not contain text of documents, questions or answers."""
    happened.send(sender=None, action=action, subject=subject, details=details)
