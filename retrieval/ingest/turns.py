"""Slow documents take turns, so that a few of them never keep all workers from the quick ones.

A document is slow once reading it took longer than ``QUICK_SECONDS``, or when it holds very much text. At most
``SLOW_DOCUMENTS_AT_ONCE`` of those are read at the same time; the others wait as PENDING, without an attempt counted.
Who has a turn stands in the rows: it is the slow documents that a living worker has claimed.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from retrieval.exceptions import RetrievalError
from retrieval.models import Document

logger = logging.getLogger(__name__)

HEARTBEAT_LOST_AFTER = timedelta(seconds=30)
WAITING = "Waits for its turn: reading this file takes long, and so does one that is being read now."
# Whoever ends a turn calls the next; this is for when nobody did.
_ASKED_AGAIN_AFTER = timedelta(seconds=15)
_TURNS_LOCK = 7_214_605_330_118_274_901


class TurnPostponed(RetrievalError):
    """The document waits for its turn; another worker will have it. For the log."""


class Turn:
    """The turn of one claimed document; ``takes_turns`` is False where no worker waits for it, as on a terminal."""

    def __init__(self, document: Document, *, takes_turns: bool) -> None:
        self._document = document
        self.is_taken = not takes_turns
        if document.is_slow:
            self.take()

    def is_wanted(self, elapsed_seconds: float) -> bool:
        """Whether work that has taken so long goes on; False when the document has to wait for its turn."""
        if elapsed_seconds >= settings.QUICK_SECONDS and not self.is_taken:
            self.is_taken = _take(self._document)
            return self.is_taken
        return True

    def take(self) -> None:
        """Raises: TurnPostponed."""
        if not self.is_taken:
            self.is_taken = _take(self._document)
        if not self.is_taken:
            raise TurnPostponed(f"Document {self._document.pk} waits for its turn.")


def postpone(document: Document) -> None:
    """Leave a claimed document that could have no turn to a later worker."""
    now = timezone.now()
    Document.objects.filter(pk=document.pk, claim=document.claim).update(
        status=Document.Status.PENDING,
        claim=None,
        is_slow=True,
        attempts=F("attempts") - 1,
        error=WAITING,
        retry_at=now + _ASKED_AGAIN_AFTER,
        updated_at=now,
    )


def next_waiting() -> int | None:
    """The id of the slow document that has waited longest."""
    waiting = Document.objects.filter(status=Document.Status.PENDING, is_slow=True, retry_at__isnull=False)
    return waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()


def _take(document: Document) -> bool:
    now = timezone.now()
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two workers that both counted before either wrote would both have the last turn.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        taken = Document.objects.filter(
            status=Document.Status.PROCESSING, is_slow=True, heartbeat_at__gte=now - HEARTBEAT_LOST_AFTER
        ).exclude(pk=document.pk)
        if taken.count() >= settings.SLOW_DOCUMENTS_AT_ONCE:
            return False
        # A claim that was lost is noticed where it is noticed always: when the text is to be saved.
        Document.objects.filter(pk=document.pk, claim=document.claim).update(is_slow=True)
        return True
