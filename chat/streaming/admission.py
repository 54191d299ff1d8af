"""Who may write an answer now in this process, who waits for it, and who is refused. PURE.

A question that is taken reserves its place at once, so that many that come together cannot all pass the check; whoever
then never asks for the answer loses it after a few seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

RESERVED_SECONDS = 3.0
# What an answer is taken to last before the first one has been measured, and how much each later one counts.
FIRST_GUESS_SECONDS, NEWEST_SHARE = 2.0, 0.2
LONGEST_RETRY_SECONDS = 60


class QueueFull(Exception):
    """As many answers wait as may wait. ``retry_after_seconds`` is when there will probably be room."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("Too many answers wait.")
        self.retry_after_seconds = retry_after_seconds


@dataclass(eq=False, slots=True)
class Ticket:
    """An answer that waits or is written. ``wake`` is called, from any thread, when its place may have changed."""

    wake: Callable[[], None]
    begun_at: float | None = None


@dataclass(slots=True)
class Admission:
    """The queue of one process. Shared by threads; the limits are given with each call, as settings may change."""

    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: list[Ticket] = field(default_factory=list)
    _writing: set[Ticket] = field(default_factory=set)
    _reserved: dict[UUID, float] = field(default_factory=dict)
    _mean_seconds: float = FIRST_GUESS_SECONDS

    def reserve(self, answer_id: UUID, *, at_once: int, waiting: int) -> None:
        """Keep a place for an answer that will be asked for in a moment. Raises: QueueFull."""
        with self._lock:
            self._drop_old_reservations()
            ahead = len(self._writing) + len(self._waiting) + len(self._reserved)
            if ahead >= at_once + waiting:
                seconds = self._mean_seconds * (ahead - at_once + 1) / at_once
                raise QueueFull(max(1, min(LONGEST_RETRY_SECONDS, math.ceil(seconds))))
            self._reserved[answer_id] = self.clock() + RESERVED_SECONDS

    def release(self, answer_id: UUID) -> None:
        """The question was not taken after all, or its answer needs no place."""
        with self._lock:
            self._reserved.pop(answer_id, None)

    def join(self, answer_id: UUID, wake: Callable[[], None]) -> Ticket:
        """A place at the end of the queue, even of a full one: the question has been taken."""
        ticket = Ticket(wake)
        with self._lock:
            self._reserved.pop(answer_id, None)
            self._waiting.append(ticket)
        return ticket

    def place(self, ticket: Ticket, at_once: int) -> int:
        """1 for the next one to begin, 0 or less for one that may begin now."""
        with self._lock:
            return self._waiting.index(ticket) + 1 - max(0, at_once - len(self._writing))

    def begin(self, ticket: Ticket) -> None:
        with self._lock:
            self._waiting.remove(ticket)
            ticket.begun_at = self.clock()
            self._writing.add(ticket)
        self._wake_all()

    def leave(self, ticket: Ticket) -> None:
        """The answer is written, or nobody wants it any more."""
        with self._lock:
            if ticket in self._writing:
                self._writing.remove(ticket)
                took_seconds = self.clock() - (ticket.begun_at or 0.0)
                self._mean_seconds += NEWEST_SHARE * (took_seconds - self._mean_seconds)
            else:
                self._waiting.remove(ticket)
        self._wake_all()

    def counts(self) -> tuple[int, int]:
        """How many are written, and how many wait."""
        with self._lock:
            self._drop_old_reservations()
            return len(self._writing), len(self._waiting) + len(self._reserved)

    def _wake_all(self) -> None:
        for ticket in list(self._waiting):
            ticket.wake()

    def _drop_old_reservations(self) -> None:
        now = self.clock()
        self._reserved = {answer: until for answer, until in self._reserved.items() if until > now}


ADMISSION = Admission()
