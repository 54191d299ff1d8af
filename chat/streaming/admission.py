"""Who may write an answer now, who waits for it, and who is refused, in all web processes of a machine. PURE.

The queue is a table in memory that a process shares with those forked from it after this module was imported, under a
lock of the kernel's, which opens when its holder is killed. A question that is taken reserves its place at once, so
that many that come together cannot all pass the check; whoever then never asks for the answer loses it after a few
seconds.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import socket
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from retrieval.resilience.slots import LOOK_SECONDS, FileLock

RESERVED_SECONDS = 3.0
# What an answer is taken to last before the first one has been measured, and how much each later one counts.
FIRST_GUESS_SECONDS, NEWEST_SHARE = 2.0, 0.2
LONGEST_RETRY_SECONDS = 60
# More can neither wait nor be written, whatever the settings say.
MOST_PLACES = 4096
# So long a supervisor waits for the lock, which a fork that hangs may hold.
LOCK_SECONDS = 0.5
# The process that forks the others, and has no places of its own.
_SUPERVISOR = -1

_FREE, _RESERVED, _WAITING, _WRITING = range(4)
_TABLE = np.dtype(
    [
        ("version", "u8"),  # grows with every change
        ("mean_seconds", "f8"),
        *((name, kind, MOST_PLACES) for name, kind in (("order", "u8"), ("until", "f8"), ("answer", "V16"))),
        *((name, kind, MOST_PLACES) for name, kind in (("owner", "u4"), ("state", "u1"))),
    ],
    align=True,
)


class QueueFull(Exception):
    """As many answers wait as may wait. ``retry_after_seconds`` is when there will probably be room."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__("Too many answers wait.")
        self.retry_after_seconds = retry_after_seconds


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
        self._until, self._answers = table["until"][0], table["answer"][0]
        self._mean_seconds[0] = FIRST_GUESS_SECONDS
        self._threads, self._processes = threading.Lock(), FileLock()
        self._tickets: set[Ticket] = set()
        self._standing: tuple[int, list[int], int] = (-1, [], 0)
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
        with self._threads:
            until = time.monotonic() + LOCK_SECONDS
            while not self._processes.try_acquire():
                if time.monotonic() >= until:
                    return
                time.sleep(LOOK_SECONDS)
            try:
                self._version += 1
                for owner, last in self._dead:
                    had_place = (self._owners == owner) & (self._order <= last) & (self._state >= _WAITING)
                    self._state[had_place] = _FREE
            finally:
                self._processes.release()
        self._dead.clear()
        self._wake_all()

    def reserve(self, answer_id: UUID, *, at_once: int, waiting: int) -> None:
        """Keep a place for an answer that will be asked for in a moment. Raises: QueueFull."""
        with self._changing():
            self._drop_old_reservations()
            ahead = int(np.count_nonzero(self._state))
            if ahead >= min(at_once + waiting, MOST_PLACES):
                seconds = float(self._mean_seconds[0]) * (ahead - at_once + 1) / at_once
                raise QueueFull(max(1, min(LONGEST_RETRY_SECONDS, math.ceil(seconds))))
            self._take(_RESERVED, answer_id)

    def release(self, answer_id: UUID) -> None:
        """The question was not taken after all, or its answer needs no place."""
        with self._changing():
            self._drop_reservation(answer_id)

    def release_all(self) -> None:
        """No question that was taken will be asked for any more."""
        with self._changing():
            self._state[self._state == _RESERVED] = _FREE

    def join(self, answer_id: UUID, wake: Callable[[], None]) -> Ticket:
        """A place at the end of the queue, even of a full one: the question has been taken.

        Raises: QueueFull when there are no places at all.
        """
        with self._changing():
            self._drop_reservation(answer_id)
            row = self._take(_WAITING, answer_id)
            ticket = Ticket(wake, row, int(self._order[row]))
            self._tickets.add(ticket)
        return ticket

    def place(self, ticket: Ticket, at_once: int) -> int:
        """1 for the next one to begin, 0 or less for one that may begin now."""
        if self._standing[0] != int(self._version[0]):
            # Once for all that wait in this process.
            with self._locked():
                orders = sorted(self._order[self._state == _WAITING].tolist())
                writing = int(np.count_nonzero(self._state == _WRITING))
                self._standing = int(self._version[0]), orders, writing
        _version, orders, writing = self._standing
        return bisect_left(orders, ticket.order) + 1 - max(0, at_once - writing)

    def begin(self, ticket: Ticket) -> None:
        with self._changing():
            self._state[ticket.row] = _WRITING
            ticket.begun_at = self._clock()
        self._wake_all()

    def leave(self, ticket: Ticket) -> None:
        """The answer is written, or nobody wants it any more."""
        with self._changing():
            self._state[ticket.row] = _FREE
            self._tickets.discard(ticket)
            if ticket.begun_at is not None:
                took_seconds = self._clock() - ticket.begun_at
                self._mean_seconds += NEWEST_SHARE * (took_seconds - self._mean_seconds)
        self._wake_all()

    def counts(self) -> tuple[int, int]:
        """How many are written, and how many wait."""
        with self._changing():
            self._drop_old_reservations()
            writing = int(np.count_nonzero(self._state == _WRITING))
            return writing, int(np.count_nonzero(self._state)) - writing

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

    def _take(self, state: int, answer_id: UUID) -> int:
        row = int(np.argmin(self._state))
        if self._state[row] != _FREE:
            raise QueueFull(LONGEST_RETRY_SECONDS)
        self._owners[row], self._order[row] = self._owner, self._version[0]
        self._answers[row], self._until[row] = answer_id.bytes, self._clock() + RESERVED_SECONDS
        # Last, so that a process that is killed here leaves nothing half done.
        self._state[row] = state
        return row

    def _drop_reservation(self, answer_id: UUID) -> None:
        self._state[(self._state == _RESERVED) & (self._answers == np.void(answer_id.bytes))] = _FREE

    def _drop_old_reservations(self) -> None:
        self._state[(self._state == _RESERVED) & (self._until <= self._clock())] = _FREE

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._threads, self._processes:
            yield

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._locked():
            self._version += 1
            yield


ADMISSION = Admission()
