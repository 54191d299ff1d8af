"""Streaming replicas, from which searches read (docs/adr/0040-replicas.md).

Before a search, the primary and a replica are asked the same question: how far has your log been replayed, and which
version do the searched collections have? The replica answers the search when it holds every change of them that was
committed on the primary by then: documents, and who may see them. So a search on a replica never finds less, nor more,
than one on the primary. A replica that is too far behind for anything else, or does not answer, is left alone.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db import Error as DatabaseTrouble
from django.db import connection as primary_connection

from retrieval.infrastructure import database, deadline
from retrieval.infrastructure.database import fetch
from retrieval.infrastructure.metrics import REPLICA_LAG, REPLICA_USED, SEARCHES_BY_SERVER

logger = logging.getLogger(__name__)

T = TypeVar("T")

PRIMARY = "primary"
# A replica that does not tell its state within this time is left alone.
LOOK_SECONDS = 1.0
LEFT_ALONE_SECONDS = 5.0
# A replica that is further behind is not read: what was uploaded a moment ago should be found.
MOST_LAG_SECONDS = 5.0
LOOKS_AT_ONCE = 4
AWAY = "does not answer"
# How often the primary's place in its log is remembered, and for how long.
REMEMBERED_EVERY_SECONDS = 0.2
REMEMBERED = 3_000

_STATE = """
    SELECT pg_is_in_recovery(),
        (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0')::bigint,
        (SELECT system_identifier FROM pg_control_system()),
        EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
        (SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM retrieval_embedder WHERE is_active),
        ARRAY(SELECT collection_id FROM retrieval_collectionstatistics
            WHERE collection_id = ANY(%s::bigint[]) ORDER BY collection_id),
        ARRAY(SELECT version FROM retrieval_collectionstatistics
            WHERE collection_id = ANY(%s::bigint[]) ORDER BY collection_id)
"""


@dataclass(frozen=True, slots=True)
class ServerState:
    """What a server said of itself. ``position`` is the place in the log of the last change that it holds."""

    is_replica: bool
    position: int
    system: int
    is_distributed: bool
    embedders: tuple[int, ...]
    versions: Mapping[int, int]


class _PrimaryPositions:
    """Where the primary was in its log, and when: the clocks of two machines are not compared, nor is a replica that
    has lost its primary taken for one with nothing to do."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def remember(self, position: int) -> None:
        now = time.monotonic()
        with self._lock:
            last = self._seen[-1] if self._seen else None
            if last is None or (position > last[1] and now - last[0] > REMEMBERED_EVERY_SECONDS):
                self._seen.append((now, position))

    def lag_seconds(self, position: int) -> float:
        """For how long, as far as this process has seen, a server at ``position`` lacks something."""
        with self._lock:
            since = next((when for when, seen in self._seen if seen > position), None)
        return 0.0 if since is None else time.monotonic() - since


_positions = _PrimaryPositions()


class Replica:
    """One streaming replica, as this process knows it. Shared by threads."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.name = alias.replace("_", " ")
        self._trouble = ""
        self._left_alone_until = 0.0
        # A frozen replica keeps these waiting, and nobody else.
        self._threads = ThreadPoolExecutor(LOOKS_AT_ONCE, thread_name_prefix=self.name)

    def reason_not_to_ask(self, primary: ServerState, collections: Sequence[int]) -> str:
        """Why it may not answer a search of the collections now, as part of a sentence; empty when it may."""
        if time.monotonic() < self._left_alone_until:
            return self._trouble or AWAY
        try:
            state = self._state(collections)
        except (DatabaseTrouble, TimeoutError) as error:
            return self.failed(str(error))
        lag = _positions.lag_seconds(state.position)
        REPLICA_LAG.labels(replica=self.name).set(lag)
        trouble = self._unfitness(primary, state, lag)
        self._tell(trouble, f"it is at {state.position}, {lag:.1f} s behind")
        if trouble:
            return trouble
        if state.embedders != primary.embedders or any(
            state.versions.get(pk, -1) < version for pk, version in primary.versions.items()
        ):
            return "has not replayed the latest changes yet"
        return ""

    def failed(self, failure: str) -> str:
        """Leave it alone for a while, and return why, as part of a sentence."""
        self._left_alone_until = time.monotonic() + LEFT_ALONE_SECONDS
        self._tell(AWAY, failure)
        return AWAY

    def _state(self, collections: Sequence[int]) -> ServerState:
        """Raises: DatabaseTrouble, TimeoutError."""
        looking = deadline.submit(self._threads, _state_of, self.alias, tuple(collections))
        try:
            return looking.result(timeout=LOOK_SECONDS)
        except TimeoutError:
            looking.cancel()
            raise TimeoutError(f"It did not answer within {LOOK_SECONDS:g} s.") from None

    @staticmethod
    def _unfitness(primary: ServerState, state: ServerState, lag: float) -> str:
        if state.is_distributed:
            return "belongs to a distributed database, whose nodes replay on their own"
        if not state.is_replica:
            return "is no replica"
        if state.system != primary.system:
            return "is a replica of another server"
        if lag > MOST_LAG_SECONDS:
            return f"is more than {MOST_LAG_SECONDS:g} s behind"
        return ""

    def _tell(self, trouble: str, detail: str) -> None:
        """Log what has changed since the last look."""
        REPLICA_USED.labels(replica=self.name).set(not trouble)
        before, self._trouble = self._trouble, trouble
        if trouble and trouble != before:
            logger.warning("Searches do not read from %s, which %s (%s).", self.name, trouble, detail)
        elif before and not trouble:
            logger.warning("Searches read from %s again.", self.name)


@cache
def replicas() -> tuple[Replica, ...]:
    """Those of the settings, in their order."""
    return tuple(Replica(alias) for alias in database.replica_aliases())


_turns = count(os.getpid())


def read_from_replica(work: Callable[[], T], collections: Sequence[int]) -> T:
    """What ``work`` returns, a search of the collections that only reads: from a replica that may answer it, else from
    the primary. When a replica fails, the work is done again.

    Within a transaction, and within such work, the server stays the same.
    """
    others = replicas()
    if not others or database.is_chosen() or primary_connection.in_atomic_block:
        return work()
    reasons = []
    turn = next(_turns)
    try:
        primary = _state_of(DEFAULT_DB_ALIAS, tuple(collections))
    except DatabaseTrouble:
        # The work tells its own way.
        return work()
    _positions.remember(primary.position)
    for place in range(len(others)):
        replica = others[(turn + place) % len(others)]
        reason = replica.reason_not_to_ask(primary, collections)
        if not reason:
            with database.reading_from(replica.alias, replica.name) as reading:
                try:
                    result = work()
                except Exception:
                    if not reading.failure:
                        raise
                else:
                    if not reading.failure:
                        SEARCHES_BY_SERVER.labels(server=replica.name).inc()
                        return result
            reason = replica.failed(reading.failure)
        reasons.append(f"{replica.name} {reason}")
    SEARCHES_BY_SERVER.labels(server=PRIMARY).inc()
    with database.reading_from(DEFAULT_DB_ALIAS, f"{PRIMARY} ({'; '.join(reasons)})"):
        return work()


def troubles() -> dict[str, str]:
    """Each replica, asked now, with why searches do not read from it, as part of a sentence; empty where they do."""
    if not replicas():
        return {}
    primary = _state_of(DEFAULT_DB_ALIAS, ())
    _positions.remember(primary.position)
    return {replica.name: replica.reason_not_to_ask(primary, ()) for replica in replicas()}


def _state_of(alias: str, collections: tuple[int, ...]) -> ServerState:
    """Raises: DatabaseTrouble."""
    with database.reading_from(alias):
        try:
            ((is_replica, position, system, is_distributed, embedders, ids, versions),) = fetch(
                _STATE, [list(collections), list(collections)]
            )
        finally:
            if alias != DEFAULT_DB_ALIAS:
                database.give_connections_back()
    return ServerState(
        is_replica, position or 0, system, is_distributed, tuple(embedders), dict(zip(ids, versions, strict=True))
    )
