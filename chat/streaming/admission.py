"""Decide whether an answer may be written now, waits in a queue, or is refused.

Each process has its own queue. An accepted question reserves a place, which expires if it is not used.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from chat.exceptions import BudgetSpent, SiteBusy
from chat.metrics import ANSWERS_IN_QUEUE, ANSWERS_IN_WRITING, REFUSED_QUESTIONS

RESERVED_SECONDS = 3.0
# FIRST_GUESS_SECONDS is the assumed time of an answer before any was measured. NEWEST_SHARE is the newest answer's
# weight in the mean time.
FIRST_GUESS_SECONDS, NEWEST_SHARE, LONGEST_RETRY_SECONDS = 10.0, 0.2, 60


@dataclass(eq=False, slots=True)
class _QueuePlace:
    """A place in the queue of answers.

    It is reserved until the time ``until``. At ``begun_at`` the writing began. Any thread may call ``wake``.
    """

    caller: str
    until: float = math.inf
    wake: Callable[[], None] = lambda: None
    begun_at: float | None = None

    @property
    def has_begun(self) -> bool:
        return self.begun_at is not None


class AnswerAdmission:
    """The queue of answers to be written in this process, shared by its threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.processes = 1
        self._clock = clock
        self._lock = threading.Lock()
        self._mean_seconds = FIRST_GUESS_SECONDS
        self._reserved: dict[UUID, _QueuePlace] = {}
        self._joined: dict[UUID, _QueuePlace] = {}

    @property
    def max_concurrent_answers(self) -> int:
        return max(1, settings.ANSWERS_AT_ONCE // self.processes)

    @property
    def max_waiting_answers(self) -> int:
        return int(settings.ANSWERS_WAITING // self.processes)

    def reserve(self, answer_id: UUID, caller: str = "") -> None:
        """Reserve a place in the queue for the answer. If ``caller`` is empty, no caller's limit applies.

        Raises: SiteBusy if all places are taken; BudgetSpent if the caller has too many unfinished answers.
        """
        with self._lock:
            now = self._clock()
            self._reserved = {key: each for key, each in self._reserved.items() if each.until > now}
            places = Counter(each.caller for each in (*self._reserved.values(), *self._joined.values()))
            most_of_caller = compute_places_per_caller(self.max_concurrent_answers) + compute_places_per_caller(
                self.max_waiting_answers
            )
            # A caller's answers beyond the caller's share take no places from other callers.
            ahead = sum(min(number, most_of_caller) if each else number for each, number in places.items())
            if ahead >= self.max_concurrent_answers + self.max_waiting_answers:
                REFUSED_QUESTIONS.inc()
                message = _("Too many questions are being answered. Please try again in %(seconds)d seconds.")
                seconds = self._estimate_seconds(
                    (ahead - self.max_concurrent_answers + 1) / self.max_concurrent_answers
                )
                raise SiteBusy(message % {"seconds": seconds}, seconds)
            if caller and places[caller] >= most_of_caller:
                REFUSED_QUESTIONS.inc()
                sentence = _("Your earlier questions are still being answered. Ask again when one of them is complete.")
                raise BudgetSpent(sentence, self._estimate_seconds(1))
            self._reserved[answer_id] = _QueuePlace(caller, now + RESERVED_SECONDS)

    def release_reservation(self, answer_id: UUID) -> None:
        with self._lock:
            self._reserved.pop(answer_id, None)

    def join(self, answer_id: UUID, wake: Callable[[], None], caller: str = "") -> None:
        """Put an answer that is to be written into the queue, even if the queue is full.

        The answer counts towards the limit of the caller who made its reservation, or else of ``caller``.
        """
        with self._lock:
            reserved = self._reserved.pop(answer_id, None)
            self._joined[answer_id] = _QueuePlace(reserved.caller if reserved else caller, wake=wake)
            self._update_gauges()

    def get_position(self, answer_id: UUID) -> int:
        """Return the answer's position in the queue; at 0 or less, the writing may begin."""
        with self._lock:
            writing = [each for each in self._joined.values() if each.has_begun]
            taken = Counter(each.caller for each in writing)
            may_begin: list[UUID] = []
            held_back: list[UUID] = []
            for key, each in self._joined.items():
                if not each.has_begun:
                    taken[each.caller] += 1
                    is_within = not each.caller or taken[each.caller] <= compute_places_per_caller(
                        self.max_concurrent_answers
                    )
                    (may_begin if is_within else held_back).append(key)
            ahead = (may_begin + held_back).index(answer_id) + 1 - max(0, self.max_concurrent_answers - len(writing))
            return ahead if answer_id in may_begin else max(1, ahead)

    def begin(self, answer_id: UUID) -> None:
        with self._lock:
            self._joined[answer_id].begun_at = self._clock()
            self._update_gauges()
        self._wake_waiting_answers()

    def leave(self, answer_id: UUID) -> None:
        with self._lock:
            begun_at = self._joined.pop(answer_id).begun_at
            if begun_at is not None:
                self._mean_seconds += NEWEST_SHARE * (self._clock() - begun_at - self._mean_seconds)
            self._update_gauges()
        self._wake_waiting_answers()

    def _estimate_seconds(self, answers: float) -> int:
        return max(2, min(LONGEST_RETRY_SECONDS, math.ceil(self._mean_seconds * answers)))

    def count_writing_and_waiting_answers(self) -> tuple[int, int]:
        writing = sum(each.has_begun for each in self._joined.values())
        return writing, len(self._joined) - writing

    def _update_gauges(self) -> None:
        writing, waiting = self.count_writing_and_waiting_answers()
        ANSWERS_IN_WRITING.set(writing)
        ANSWERS_IN_QUEUE.set(waiting)

    def _wake_waiting_answers(self) -> None:
        for each in list(self._joined.values()):
            if not each.has_begun:
                each.wake()


ADMISSION = AnswerAdmission()


def compute_places_per_caller(places: int) -> int:
    return max(1, int(places * settings.CALLER_SHARE))
