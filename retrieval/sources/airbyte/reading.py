"""Store how far a source was read, so that the next run reads only later records (incremental reading).

A connector reports this in a STATE message, which is stored after the documents of all earlier records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django.utils.crypto import salted_hmac

from retrieval.models import ReadingState, RegisteredConnector
from retrieval.sources.airbyte.state_messages import Snapshot, StateCollector, StateMessage, serialise_state
from retrieval.sources.airbyte.streams import DAYS_BETWEEN_FULL, ChosenStream

# A STATE is not kept if a newer one follows within this many items.
_ITEMS_BETWEEN = 200


def hash_setup(connector: RegisteredConnector, config: Mapping[str, Any], streams: Iterable[ChosenStream]) -> str:
    """Return a hash of the connector, its settings and its streams. A STATE is only valid with the same hash."""
    chosen = sorted([stream.name, dict(stream.options)] for stream in streams)
    told = json.dumps([connector.package_requirement, connector.manifest, config, chosen], sort_keys=True, default=str)
    # The hash uses a secret key. Otherwise, passwords in the settings could be guessed from it.
    return salted_hmac("retrieval.sources.airbyte.reading", told, algorithm="sha256").hexdigest()


class ReadProgress:
    """Tracks how far one run has read a source, so that the next run can continue.

    ``state`` is the connector's stored STATE (empty: read everything). ``is_full``: the run reads all records.
    """

    def __init__(self, source: int, run: int, setup: str, streams: Iterable[ChosenStream], days: int | None) -> None:
        self._source, self._setup = source, setup
        self._incremental = frozenset(stream.name for stream in streams if stream.is_incremental)
        self._began_run = run
        self.is_full, self.state = True, ""
        stored = ReadingState.objects.filter(source=source, setup=setup).first() if self._incremental else None
        self._read_all_at = stored.read_all_at if stored is not None else None
        if stored is not None and stored.began_run is not None:
            self._began_run, self.state = stored.began_run, stored.messages
        elif stored is not None and not _is_full_read_due(stored, days or DAYS_BETWEEN_FULL):
            self.is_full, self.state = False, stored.messages
        self._known = StateCollector(self.state, self._incremental)
        self._checkpoints: list[tuple[int, Snapshot]] = []
        self._stored = -1

    @property
    def is_incremental(self) -> bool:
        return bool(self._incremental)

    @property
    def has_advanced(self) -> bool:
        return bool(self._checkpoints) and serialise_state(self._checkpoints[-1][1]) != self.state

    def add_checkpoint(self, message: StateMessage, items: int) -> None:
        """Remember a STATE message, and how many different items came before it."""
        if not self._known.add_message(message):
            return
        before = self._checkpoints[-2][0] if len(self._checkpoints) > 1 else 0
        if self._checkpoints and items - before < _ITEMS_BETWEEN:
            self._checkpoints.pop()
        self._checkpoints.append((items, self._known.copy_state()))

    def is_deletion(self, stream: str, last_run: int) -> bool:
        """Return whether a record that this run did not read was deleted from the source.

        An incremental run reads only changes, so the result is False. An interrupted run that reads everything is
        continued by later runs: a record was deleted if none of these runs read it. ``last_run`` is the last run that
        read the record.
        """
        if stream not in self._incremental or not self.state:
            return True
        return self.is_full and last_run < self._began_run

    def store_connector_state(self, saved: int, *, is_all: bool, is_complete: bool) -> None:
        """Store the newest STATE message that follows only saved items. The next run continues after these.

        - ``saved``: the number of saved items, from the first one on.
        - ``is_all``: all items that the connector sent are saved.
        - ``is_complete``: the connector did not stop early.
        """
        if not self._incremental:
            return
        reached = [number for number, (items, _parts) in enumerate(self._checkpoints) if is_all or items <= saved]
        is_done = is_all and is_complete
        if not is_done and (not reached or reached[-1] <= self._stored):
            return
        self._stored = reached[-1] if reached else self._stored
        messages = serialise_state(self._checkpoints[self._stored][1]) if self._stored >= 0 else self.state
        if self.is_full and is_done:
            self._read_all_at = timezone.now()
        values = {
            "setup": self._setup,
            "messages": messages,
            "began_run": self._began_run if self.is_full and not is_done else None,
            "read_all_at": self._read_all_at,
        }
        ReadingState.objects.update_or_create(source_id=self._source, defaults=values)


def _is_full_read_due(stored: ReadingState, days: int) -> bool:
    age = timezone.now() - stored.read_all_at if stored.read_all_at else timedelta.max
    # Each run reads everything if the connector sends no STATE.
    return not stored.messages or age >= timedelta(days=days)
