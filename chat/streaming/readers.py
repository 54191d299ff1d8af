"""Stream an answer to a reader, and end the stream if the reader loses the right to its sources."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user, get_user_model
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.module_loading import import_string

from chat.conversations import rights
from chat.conversations.history import find_earlier_sources
from chat.conversations.rights import Rights
from chat.models import Answer, StreamedEvent
from chat.payload_types import DocumentPlacePayload, SearchedEventPayload
from chat.streaming import streams
from chat.streaming.runs import RUNS
from core.key_limits import KeyLimits, get_limits, set_limits
from core.threads import run_in_database_thread
from core.user_types import AnyUser

RECHECK_SECONDS = 1.0
_MOST_CACHED = 1000
# The fields of an answer that decide who may read it.
_READ_FIELDS = (
    *("status", "attempts", "created_at", "history", "sources", "alternatives", "source_collections"),
    *("source_documents", "conversation__owner", "conversation__visitor", "conversation__branched_from"),
)


# Caches the rights for each user, API key and session, with the time of the check.
_RIGHTS: dict[tuple[int | None, KeyLimits | None, str], tuple[float, Rights | None]] = {}


async def follow_as_reader(
    answer_id: uuid.UUID,
    user: AnyUser,
    after: str = "",
    *,
    session_key: str = "",
    may_return: bool = True,
    caller: str = "",
) -> AsyncGenerator[StreamedEvent, None]:
    """Yield an answer's events, as long as ``user`` may read its sources.

    The account, API key and session of ``user`` must stay valid too.
    """
    reader = _Reader(answer_id, user, session_key)
    if not await run_in_database_thread(reader.may_begin_reading):
        yield _build_withheld_event()
        return
    events = streams.follow_answer_stream(answer_id, after, may_return=may_return, caller=caller)
    async with aclosing(_yield_while_permitted(events, reader)) as permitted:
        async for event in permitted:
            yield event


async def _yield_while_permitted(
    events: AsyncGenerator[StreamedEvent, None], reader: _Reader
) -> AsyncGenerator[StreamedEvent, None]:
    checked_at = time.monotonic()
    try:
        while True:
            following = asyncio.ensure_future(_read_next_event(events))
            try:
                while not following.done():
                    await asyncio.wait([following], timeout=max(0.0, checked_at + RECHECK_SECONDS - time.monotonic()))
                    if time.monotonic() - checked_at >= RECHECK_SECONDS:
                        checked_at = time.monotonic()
                        if not await run_in_database_thread(reader.may_continue_reading):
                            yield _build_withheld_event()
                            return
            finally:
                # The cancelled task still uses the events, so it must finish before they are closed.
                if not following.done():
                    following.cancel()
                    await asyncio.wait([following])
            event = following.result()
            if event is None:
                return
            if event.name == "searched":
                may_read = await run_in_database_thread(reader.may_read_sources, event.payload["sources"])
            elif event.name == "completed" or (event.name == "token" and not reader.knows_sources):
                is_saved = event.name == "completed" and event.answer.is_finished
                may_read = await run_in_database_thread(reader.may_begin_reading, event.answer if is_saved else None)
            else:
                may_read = True
            yield event if may_read else _build_withheld_event()
            if not may_read:
                return
    finally:
        await events.aclose()


async def _read_next_event(events: AsyncIterator[StreamedEvent]) -> StreamedEvent | None:
    return await anext(events, None)


def may_still_read(answer: Answer, user: AnyUser) -> bool:
    held = _find_reader_rights(user.pk, get_limits(user), fresh=True)
    if held is None or not held.may_read_collections(answer.source_collections):
        return False
    return not held.find_hidden_documents(rights.find_used_document_ids(answer))


class _Reader:
    def __init__(self, answer_id: uuid.UUID, user: AnyUser, session_key: str) -> None:
        self._answer_id = answer_id
        self._user_pk: int | None = user.pk
        self._session_key = session_key if user.pk is not None else ""
        self._limits = get_limits(user)
        self._is_own = True
        self._behind: frozenset[int] = frozenset()
        self._documents: frozenset[int] = frozenset()
        # After a reconnection it is false, because only the event `searched` names the sources.
        self.knows_sources = False

    def may_begin_reading(self, saved: Answer | None = None) -> bool:
        """Return whether the user may read the answer. If it was deleted, return True: the stream reports that.

        ``saved`` is the answer, if it is loaded already.
        """
        if saved is None:
            found = Answer.objects.select_related("conversation").filter(pk=self._answer_id)
            answer = found.only(*_READ_FIELDS).order_by().first()
            if answer is None:
                return True
            # The view has already checked that the visitor's cookie belongs to the conversation.
            owner = answer.conversation.owner_id
            self._is_own = owner == self._user_pk or (owner is None and not answer.conversation.visitor)
        else:
            answer = saved
        self._behind, self._documents = frozenset(answer.source_collections), frozenset(answer.source_documents)
        if answer.is_finished:
            return self.may_read_sources(answer.shown_passages, fresh=True)
        collections, documents = find_earlier_sources(answer)
        self._behind |= collections
        self._documents |= documents
        payload = _load_searched_payload(answer)
        return (
            self.may_read_sources(payload["sources"], fresh=True)
            if payload is not None
            else self.may_continue_reading(fresh=True)
        )

    def may_read_sources(self, sources: Iterable[DocumentPlacePayload], *, fresh: bool = False) -> bool:
        """Return whether the user may read these sources and all sources passed in earlier calls.

        If ``fresh``, the rights are not taken from the cache.
        """
        quoted = rights.list_document_ids(sources)
        self._documents |= quoted
        self._behind |= rights.find_collections(quoted)
        self.knows_sources = True
        return self.may_continue_reading(fresh=fresh)

    def may_continue_reading(self, *, fresh: bool = False) -> bool:
        held = _find_reader_rights(self._user_pk, self._limits, self._session_key, fresh=fresh)
        if held is None or not (self._is_own or held.reads_all):
            allowed = False
        else:
            allowed = held.may_read_collections(self._behind) and not held.find_hidden_documents(self._documents)
        # The user may have got the right since, so the rights are read again before a refusal.
        return allowed or (not fresh and self.may_continue_reading(fresh=True))


def _load_searched_payload(answer: Answer) -> SearchedEventPayload | None:
    run = RUNS.get(answer.pk)
    events = list(run.events) if run is not None else []
    if not events:
        events = list(StreamedEvent.objects.filter(answer=answer, attempt=answer.attempts, name="searched"))
    # Each event `searched` contains all sources of the answer, so the last event is enough.
    return next((event.payload for event in reversed(events) if event.name == "searched"), None)


def _find_reader_rights(
    user_pk: int | None, limits: KeyLimits | None, session_key: str = "", *, fresh: bool
) -> Rights | None:
    now = time.monotonic()
    known = _RIGHTS.get((user_pk, limits, session_key))
    if known is not None and not fresh and now - known[0] < RECHECK_SECONDS / 2:
        return known[1]
    if len(_RIGHTS) >= _MOST_CACHED:
        _RIGHTS.clear()
    held = _look_up_rights(user_pk, limits, session_key)
    _RIGHTS[user_pk, limits, session_key] = (now, held)
    return held


def _look_up_rights(user_pk: int | None, limits: KeyLimits | None, session_key: str) -> Rights | None:
    if user_pk is None:
        return rights.find_rights(AnonymousUser())
    user = (
        _find_user_of_session(session_key)
        if session_key
        else get_user_model()._default_manager.filter(pk=user_pk, is_active=True).first()
    )
    if user is None or user.pk != user_pk:
        return None
    if limits is not None and limits.key:
        limits = import_string(settings.API_KEY_AUTHENTICATION)().load_limits(limits.key)
        if limits is None:
            return None
    set_limits(user, limits)
    return rights.find_rights(user)


def _find_user_of_session(session_key: str) -> Any:
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return get_user(request)


def _build_withheld_event() -> StreamedEvent:
    return streams.build_unstored_event("failed", {"message": rights.get_withheld_message(), "withheld": True})
