"""Who may write an answer now, who waits for it, and who is refused, in all web processes of a machine. PURE.

The queue is a table in memory that a process shares with those forked from it after this module was imported, under a
lock of the kernel's, which opens when its holder is killed. A question that is taken reserves its place at once, so
that many that come together cannot all pass the check; whoever then never asks for the answer loses it after a few
seconds. One caller has no more than a share of the places.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from retrieval.resilience.slots import FileLock

RESERVED_SECONDS = 3.0
# What an answer is taken to last before the first one has been measured, and how much each later one counts.
FIRST_GUESS_SECONDS, NEWEST_SHARE = 2.0, 0.2
LONGEST_RETRY_SECONDS = 60
# More can neither wait nor be written, whatever the settings say.
MOST_PLACES = 4096
# So long a thread waits for the lock, which a process that hangs may hold, and an event loop, which others need.
LOCK_SECONDS, LOOP_LOCK_SECONDS = 0.5, 0.005
_LOCK_LOOK_SECONDS = 0.001
# Within a little more, a process that hangs is killed.
HUNG_SECONDS = 10
# The process that forks the others, and has no places of its own.
_SUPERVISOR = -1

_FREE, _RESERVED, _WAITING, _WRITING = range(4)
_TABLE = np.dtype(
    [
        ("version", "u8"),  # grows with every change
        ("mean_seconds", "f8"),
        *((name, kind, MOST_PLACES) for name, kind in (("order", "u8"), ("until", "f8"), ("answer", "V16"))),
        *((name, kind, MOST_PLACES) for name, kind in (("owner", "u4"), ("caller", "u8"), ("state", "u1"))),
    ],
    align=True,
)


class QueueFull(Exception):
    """As many answers wait as may wait, of all or of this caller. ``retry_after_seconds`` is when there will probably
    be room.
    """

    def __init__(self, retry_after_seconds: int, *, of_caller: bool = False) -> None:
        super().__init__("Too many answers wait.")
        self.retry_after_seconds = retry_after_seconds
        self.of_caller = of_caller


class QueueLocked(QueueFull):
    """The queue cannot be changed now: a process that holds its lock hangs, until it is killed."""


@dataclass(eq=False, slots=True)
class Ticket:
    """An answer that waits or is written, and where it stands in the table. ``wake`` is called, from any thread, when
    its place may have changed.
    """

    wake: Callable[[], None]
    row: int
    order: int
    begun_at: float | None = None


class Admission:
    """The queue. Shared by threads and by forks; the limits are given with each call, as settings may change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        table = np.frombuffer(mmap.mmap(-1, _TABLE.itemsize), _TABLE)
        self._version, self._mean_seconds = table["version"], table["mean_seconds"]
        self._state, self._owners, self._order = table["state"][0], table["owner"][0], table["order"][0]
        self._callers = table["caller"][0]
        self._until, self._answers = table["until"][0], table["answer"][0]
        self._mean_seconds[0] = FIRST_GUESS_SECONDS
        self._threads, self._processes = threading.Lock(), FileLock()
        self._tickets: set[Ticket] = set()
        self._standing: tuple[tuple[int, int], dict[int, int], int, int] = ((-1, 0), {}, 0, 0)
        self._owner = 0
        self._bells: list[socket.socket] = []
        self._dead: list[tuple[int, int]] = []

    def share(self, processes: int) -> list[socket.socket]:
        """Prepare for so many forks; each one's bell, readable when another process has changed the queue.

        The queue is empty then: what stands in it is of the forks of another supervisor, which was killed with them.
        """
        self._owner = _SUPERVISOR
        with self._changing():
            self._state[:] = _FREE
        pairs = [socket.socketpair() for _ in range(processes)]
        self._bells = [ringing for ringing, _heard in pairs]
        for each in (*self._bells, *(heard for _ringing, heard in pairs)):
            each.setblocking(False)
        return [heard for _ringing, heard in pairs]

    def belong_to(self, owner: int) -> None:
        """From now on this process is the fork ``owner`` (from 0) of those that share the queue."""
        self._owner = owner
        self._threads = threading.Lock()

    def forget(self, owner: int) -> None:
        """The fork ``owner`` is dead: what it wrote, and what waited in it, loses its place at `free_forgotten`. What
        its successor takes meanwhile has a later version.
        """
        self._dead.append((owner, int(self._version[0])))

    def free_forgotten(self) -> None:
        """To be called again and again: it gives up when the lock is held too long, by a process that hangs."""
        if not self._dead:
            return
        with contextlib.suppress(QueueLocked):
            with self._changing():
                for owner, last in self._dead:
                    had_place = (self._owners == owner) & (self._order <= last) & (self._state >= _WAITING)
                    self._state[had_place] = _FREE
            self._dead.clear()
            self._wake_all()

    def reserve(
        self, answer_id: UUID, *, at_once: int, waiting: int, caller: str = "", most_of_caller: int = MOST_PLACES
    ) -> None:
        """Keep a place for an answer that will be asked for in a moment. Without a name, ``caller`` is nobody who has
        a share. Raises: QueueFull.
        """
        with self._changing():
            self._drop_old_reservations()
            ahead = int(np.count_nonzero(self._state))
            if ahead >= min(at_once + waiting, MOST_PLACES):
                raise QueueFull(self._seconds_for((ahead - at_once + 1) / at_once))
            if self._count(_key(caller)) >= most_of_caller:
                raise QueueFull(self._seconds_for(1), of_caller=True)
            self._take(_RESERVED, answer_id, _key(caller))

    def release(self, answer_id: UUID) -> None:
        """The question was not taken after all, or its answer needs no place."""
        # What is not released now ends by itself in a moment.
        with contextlib.suppress(QueueLocked), self._changing(LOOP_LOCK_SECONDS):
            self._drop_reservation(answer_id)

    def release_all(self) -> None:
        """No question that was taken will be asked for any more."""
        with self._changing():
            self._state[self._state == _RESERVED] = _FREE

    # What follows is for event loops: it raises QueueLocked rather than wait.

    def join(self, answer_id: UUID, wake: Callable[[], None], most_of_caller: int = MOST_PLACES) -> Ticket:
        """A place at the end of the queue, even of a full one: the question has been taken.

        Raises: QueueFull when there are no places at all, or none left of the caller's.
        """
        with self._changing(LOOP_LOCK_SECONDS):
            self._drop_reservation(answer_id)
            # Whoever reserved it, also when that was too long ago: a free row is the one that was taken first.
            key = int(np.max(self._callers[self._answers == np.void(answer_id.bytes)], initial=0))
            if self._count(key) >= most_of_caller:
                raise QueueFull(LONGEST_RETRY_SECONDS, of_caller=True)
            row = self._take(_WAITING, answer_id, key)
            ticket = Ticket(wake, row, int(self._order[row]))
            self._tickets.add(ticket)
        return ticket

    def place(self, ticket: Ticket, at_once: int, most_of_caller: int = MOST_PLACES) -> int:
        """1 for the next one to begin, 0 or less for one that may begin now. Those whose callers have
        ``most_of_caller`` answers written, or to be written before, stand behind the others. Raises: QueueLocked.
        """
        if self._standing[0] != (int(self._version[0]), most_of_caller):
            # Once for all that wait in this process.
            with self._locked(LOOP_LOCK_SECONDS):
                writing = self._callers[self._state == _WRITING].tolist()
                taken = Counter(writing)
                may_begin: list[int] = []
                held_back: list[int] = []
                rows = np.flatnonzero(self._state == _WAITING)
                for row in rows[np.argsort(self._order[rows])].tolist():
                    caller = int(self._callers[row])
                    taken[caller] += 1
                    within = not caller or taken[caller] <= most_of_caller
                    (may_begin if within else held_back).append(int(self._order[row]))
                places = {order: place for place, order in enumerate(may_begin + held_back, start=1)}
                self._standing = (int(self._version[0]), most_of_caller), places, len(may_begin), len(writing)
        _version, places, beginning, writing_now = self._standing
        place = places.get(ticket.order, len(places) + 1)
        ahead = place - max(0, at_once - writing_now)
        return ahead if place <= beginning else max(1, ahead)

    def begin(self, ticket: Ticket) -> None:
        with self._changing(LOOP_LOCK_SECONDS):
            self._state[ticket.row] = _WRITING
            ticket.begun_at = self._clock()
        self._wake_all()

    def leave(self, ticket: Ticket) -> None:
        """The answer is written, or nobody wants it any more. Raises: QueueLocked."""
        with self._changing(LOOP_LOCK_SECONDS):
            self._state[ticket.row] = _FREE
            self._tickets.discard(ticket)
            if ticket.begun_at is not None:
                took_seconds = self._clock() - ticket.begun_at
                self._mean_seconds += NEWEST_SHARE * (took_seconds - self._mean_seconds)
        self._wake_all()

    def counts(self) -> tuple[int, int]:
        """How many are written, and how many wait."""
        is_reserved = (self._state == _RESERVED) & (self._until > self._clock())
        waiting = np.count_nonzero(self._state == _WAITING) + np.count_nonzero(is_reserved)
        return int(np.count_nonzero(self._state == _WRITING)), int(waiting)

    def wake_own(self) -> None:
        """Tell those who wait in this process that the queue has changed."""
        for ticket in list(self._tickets):
            if ticket.begun_at is None:
                ticket.wake()

    def _wake_all(self) -> None:
        self.wake_own()
        for owner, bell in enumerate(self._bells):
            if owner != self._owner:
                # One that is full rings already.
                with contextlib.suppress(BlockingIOError):
                    bell.send(b"!")

    def _seconds_for(self, answers: float) -> int:
        return max(1, min(LONGEST_RETRY_SECONDS, math.ceil(float(self._mean_seconds[0]) * answers)))

    def _count(self, key: int) -> int:
        """The places of a caller; none of one without a name."""
        return int(np.count_nonzero(self._state[self._callers == key])) if key else 0

    def _take(self, state: int, answer_id: UUID, key: int) -> int:
        row = int(np.argmin(np.where(self._state == _FREE, self._order, self._version[0])))
        if self._state[row] != _FREE:
            raise QueueFull(LONGEST_RETRY_SECONDS)
        self._owners[row], self._order[row] = self._owner, self._version[0]
        self._answers[row], self._until[row] = answer_id.bytes, self._clock() + RESERVED_SECONDS
        self._callers[row] = key
        # Last, so that a process that is killed here leaves nothing half done.
        self._state[row] = state
        return row

    def _drop_reservation(self, answer_id: UUID) -> None:
        self._state[(self._state == _RESERVED) & (self._answers == np.void(answer_id.bytes))] = _FREE

    def _drop_old_reservations(self) -> None:
        self._state[(self._state == _RESERVED) & (self._until <= self._clock())] = _FREE

    @contextlib.contextmanager
    def _locked(self, seconds: float) -> Iterator[None]:
        until = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise QueueLocked(HUNG_SECONDS)
        try:
            while not self._processes.try_acquire():
                if time.monotonic() >= until:
                    raise QueueLocked(HUNG_SECONDS)
                time.sleep(_LOCK_LOOK_SECONDS)
            try:
                yield
            finally:
                self._processes.release()
        finally:
            self._threads.release()

    @contextlib.contextmanager
    def _changing(self, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        with self._locked(seconds):
            self._version += 1
            yield


def _key(caller: str) -> int:
    """The same in all forks of one process."""
    return hash(caller) % 2**64 if caller else 0


ADMISSION = Admission()
