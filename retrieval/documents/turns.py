"""Which document a worker reads next, so that a few slow ones never keep all workers from the quick ones.

Documents that nobody has tried yet stand in line by when they came and how large they are: a small file passes the
large ones that came shortly before it. The workers' messages are interchangeable for them: each is for one document,
and the worker takes whichever is first in line.

A document is slow once reading it took longer than ``QUICK_SECONDS``, or when it holds very much text. At most
``SLOW_DOCUMENTS_AT_ONCE`` of those are read at the same time; the others wait as PENDING, without an attempt counted.
The rows say who has a turn: it is the slow documents that are leased to a living worker.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, QuerySet, Value
from django.db.models.functions import Least, Now

from retrieval.exceptions import RetrievalError
from retrieval.infrastructure.job import is_due
from retrieval.models import Document

WAITING = "Waits for its turn: reading this file takes long, and so does one that is being read now."
# Whoever ends a turn calls the next; this is for when nobody did.
ASKED_AGAIN_AFTER = timedelta(seconds=15)
# A file of 100 kB lets smaller ones pass that come up to 10 s later, the largest those of ten minutes: nothing starves.
_PASSED_PER_BYTE = timedelta(microseconds=100)
_PASSED_AT_MOST = timedelta(minutes=10)
# A command submits and reads in two steps: no worker comes between them. If the command died, one reads the document.
LEFT_TO_ITS_COMMAND = timedelta(seconds=30)
_TURNS_LOCK = 7_214_605_330_118_274_901


class TurnPostponed(RetrievalError):
    """The document waits for its turn; another worker will have it. For the log."""


class ReadingTurn:
    """The turn of one leased document; ``takes_turns`` is False where no worker waits for it, as on a terminal.
    ``ends`` says that it is to be given to another after a while."""

    def __init__(self, document: Document, *, takes_turns: bool) -> None:
        self._document = document
        self.is_taken = not takes_turns
        self.ends = takes_turns
        if document.is_slow:
            self.take()

    def is_wanted(self, elapsed_seconds: float) -> bool:
        """Whether work that has taken so long goes on; False when the document has to wait for its turn."""
        return elapsed_seconds < settings.QUICK_SECONDS or self._try_to_take()

    def take(self) -> None:
        """Raises: TurnPostponed."""
        if not self._try_to_take():
            raise TurnPostponed(f"Document {self._document.pk} waits for its turn.")

    def _try_to_take(self) -> bool:
        self.is_taken = self.is_taken or _take(self._document)
        return self.is_taken


def is_untried(document_id: int) -> bool:
    return _untried().filter(pk=document_id).exists()


def first_in_line() -> int | None:
    """The id of the untried document to read next."""
    passed = Least(F("size_bytes") * Value(_PASSED_PER_BYTE), Value(_PASSED_AT_MOST), output_field=DurationField())
    order = ExpressionWrapper(F("updated_at") + passed, DateTimeField())
    return _untried().order_by(order, "pk").values_list("pk", flat=True).first()


def _untried() -> QuerySet[Document]:
    # What waits for room on the disk, or was interrupted, has an error or an attempt.
    untried = Document.objects.filter(status=Document.Status.PENDING, is_slow=False, attempts=0, error="")
    return untried.filter(is_due(), lease=None)


def next_waiting() -> int | None:
    """The id of the slow document that has waited longest."""
    waiting = Document.objects.filter(status=Document.Status.PENDING, is_slow=True, retry_at__isnull=False)
    return waiting.order_by("created_at", "pk").values_list("pk", flat=True).first()


def _take(document: Document) -> bool:
    with transaction.atomic():
        with connection.cursor() as cursor:
            # Two workers that both counted before either wrote would both have the last turn.
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_TURNS_LOCK])
        slow = Document.objects.filter(status=Document.Status.PROCESSING, is_slow=True)
        taken = slow.filter(heartbeat_at__gte=Now() - Document.SILENT_AFTER).exclude(pk=document.pk)
        if taken.count() >= settings.SLOW_DOCUMENTS_AT_ONCE:
            return False
        # Whether the lease was lost is checked when the text is saved.
        document.held().update(is_slow=True)
        return True
