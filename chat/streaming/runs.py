"""The answers that this process writes: what each is written from, what it has published, and what became of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chat.models import Answer, StreamedEvent
from chat.types import AnswerDraft, Completed, Failed
from retrieval.types import SearchFilters, Turn


def text_of(events: Iterable[StreamedEvent]) -> str:
    """What these events say of the answer's text."""
    return "".join(event.payload["text"] for event in events if event.name == "token")


@dataclass(slots=True, eq=False)
class Run:
    """The writing of a leased ``answer`` in this process: what it is written from, what it has published so far, and
    what is to be saved of it.

    The first ``stored`` events are in the database. ``readers`` are those whose line is open, ``followers`` those of
    them who wait for the next event; ``last_read`` is when the last line was closed, ``last_followed`` when an event
    was last taken. ``caller`` is who has a share of the places. ``may_return`` says that a reader of a kind that comes
    back has been here, ``is_begun`` that it no longer waits for its turn, ``is_stopped`` that it was cancelled because
    somebody stopped it, nobody reads it, or another process writes it. ``ending`` says that its outcome is known and is
    being saved: from then on it cannot be stopped.

    ``draft`` is None until the sources are known, ``outcome`` until it is known; it is an earlier answer where that one
    serves again. ``is_partial`` says that a reader, the lack of one, or the deadline ended it. ``cache_key`` is empty
    for an answer that must not serve again.
    """

    answer: Answer
    filters: SearchFilters
    history: tuple[Turn, ...] = ()
    loop: asyncio.AbstractEventLoop = field(init=False)
    caller: str = ""
    may_return: bool = True
    events: list[StreamedEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    readers: int = 0
    last_read: float = field(default_factory=time.monotonic)
    followers: int = 0
    last_followed: float = field(default_factory=time.monotonic)
    stored: int = 0
    is_begun: bool = False
    is_stopped: bool = False
    ending: bool = False

    draft: AnswerDraft | None = None
    outcome: Completed | Failed | Answer | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)
    cache_key: str = ""
    is_partial: bool = False

    @property
    def text(self) -> str:
        """What has been published of the answer."""
        return text_of(self.events)

    def cancel(self) -> None:
        """Stop the writing, unless its outcome is being saved already."""
        if self.task is not None and not self.ending:
            self.is_stopped = True
            self.task.cancel()

    def next_event(self, name: str, payload: dict[str, Any]) -> StreamedEvent:
        """The event that comes behind those that were published."""
        sequence = len(self.events) + 1
        return StreamedEvent(
            answer=self.answer, attempt=self.answer.attempts, sequence=sequence, name=name, payload=payload
        )

    def publish(self, event: StreamedEvent) -> None:
        self.events.append(event)
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def tell(self, name: str, payload: dict[str, Any]) -> None:
        """Publish the next event."""
        self.publish(self.next_event(name, payload))


RUNS: dict[uuid.UUID, Run] = {}
