from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from chat.models import Answer, StreamedEvent
from chat.payload_types import EventPayload
from chat.types import AnswerDraft, CompletedEvent, FailedEvent
from retrieval.types import SearchFilters, Turn


def join_tokens(events: Iterable[StreamedEvent]) -> str:
    """Return the answer's text: the tokens since the last `reset`."""
    text = ""
    for event in events:
        text = "" if event.name == "reset" else text
        text += event.payload["text"] if event.name == "token" else ""
    return text


@dataclass(slots=True, eq=False)
class WritingRun:
    """An ``answer`` that this process writes. The process has a lease (the reservation in the database).

    - ``stored``: the number of events in the database.
    - ``readers``: the number of open connections. ``followers``: the number of those that wait for an event.
    - ``may_return``: a reader can reconnect.
    - ``is_begun``: the answer has left the queue.
    - ``ending``: it is being saved and cannot be stopped any more.
    - ``is_stopped``: it was cancelled, or the lease was lost.
    - ``outcome``: a new CompletedEvent or FailedEvent, or the earlier Answer that is used again; None until then.
    - ``is_partial``: the answer was stopped or its time was over.
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
    outcome: CompletedEvent | FailedEvent | Answer | None = None
    timings_ms: dict[str, float] = field(default_factory=dict)
    cache_key: str = ""
    is_partial: bool = False

    @property
    def written_text(self) -> str:
        return join_tokens(self.events)

    def cancel(self) -> None:
        if self.task is not None and not self.ending:
            self.is_stopped = True
            self.task.cancel()

    def build_next_event(self, name: str, payload: EventPayload) -> StreamedEvent:
        sequence = len(self.events) + 1
        return StreamedEvent(
            answer=self.answer, attempt=self.answer.attempts, sequence=sequence, name=name, payload=payload
        )

    def publish(self, event: StreamedEvent) -> None:
        self.events.append(event)
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def publish_next_event(self, name: str, payload: EventPayload) -> None:
        self.publish(self.build_next_event(name, payload))


RUNS: dict[uuid.UUID, WritingRun] = {}
