"""A question put to the chat's own `answer()`, and all that came back, with nothing saved."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from chat.answering import answer
from chat.protocols import PartialAnswer
from chat.types import AnswerToken, Completed, Failed, Searched
from retrieval.search.profiles import NamedProfile
from retrieval.types import SearchFilters


@dataclass(slots=True)
class Reply:
    """``end`` is None when the answer broke off, ``searched`` when the question was turned away unsearched, and
    ``first_ms`` when there was no token. Milliseconds count from the question."""

    draft: PartialAnswer = field(default_factory=PartialAnswer)
    searched: Searched | None = None
    end: Completed | Failed | None = None
    first_ms: float | None = None
    last_ms: float = 0.0


async def reply_to(question: str, filters: SearchFilters, profile: NamedProfile) -> Reply:
    """What a visitor would get who asks this first, searched with the profile."""
    reply = Reply()
    started = time.perf_counter()
    async for event in answer(question, filters, draft=reply.draft, profile=profile):
        match event:
            case Searched():
                reply.searched = event
            case AnswerToken():
                if reply.first_ms is None:
                    reply.first_ms = (time.perf_counter() - started) * 1000
            case Completed() | Failed():
                reply.end = event
    reply.last_ms = (time.perf_counter() - started) * 1000
    return reply
