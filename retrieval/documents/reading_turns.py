"""Limit how many slow documents are read at once, so that workers stay free for other documents.

A waiting document stays PENDING. The wait does not count as an attempt.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from core.exceptions import RagsiteError
from retrieval.models import Document

if TYPE_CHECKING:
    pass


WAITING = "Waits for its turn: reading this file takes long, and so does one that is being read now."


# A slow document that waits for its turn is tried again after this time.
ASKED_AGAIN_AFTER = timedelta(seconds=15)


# After this time, the command that submitted a document may be dead, so a worker reads it.
LEFT_TO_ITS_COMMAND = timedelta(seconds=30)


_TURNS_LOCK = 7_214_605_330_118_274_901


class ReadingTurnPostponed(RagsiteError):
    """An error: too many slow documents are being read. The message is for the log."""


class ReadingTurn:
    """The permission to read one slow document.

    It is always given if ``takes_turns`` is False. If ``ends`` is true, reading stops after a while, so that other
    documents get a turn.
    """

    def __init__(self, document: Document, *, takes_turns: bool) -> None:
        self._document = document
        self.is_taken = not takes_turns
        self.ends = takes_turns
        if document.is_slow:
            self.take()

    def may_continue_reading(self, elapsed_seconds: float) -> bool:
        return elapsed_seconds < settings.QUICK_SECONDS or self._try_to_take()

    def take(self) -> None:
        """Get the permission to read. Raises: ReadingTurnPostponed."""
        if not self._try_to_take():
            raise ReadingTurnPostponed(f"Document {self._document.pk} waits for its turn.")

    def _try_to_take(self) -> bool:
        self.is_taken = self.is_taken or _take_reading_turn(self._document)
        return self.is_taken


def find_next_slow_document() -> int | None:
    waiting = Document.objects.filter(status=Document.Status.PENDING, is_slow=True, retry_at__isnull=False)
    return waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()


def _take_reading_turn(document: Document) -> bool:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two workers could take the last turn if there were no lock.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        slow = Document.objects.filter(status=Document.Status.PROCESSING, is_slow=True)
        taken = slow.filter(heartbeat_at__gte=Now() - Document.SILENT_AFTER).exclude(pk=document.pk)
        if taken.count() >= settings.SLOW_DOCUMENTS_AT_ONCE:
            return False
        # After a lost lease, no row is updated. Saving the text detects this.
        document.filter_by_lease().update(is_slow=True)
        return True
