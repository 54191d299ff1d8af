"""Runs health checks within a deadline, even if a server hangs.

Checks that depend on the same server form a group and run one after another in one thread. While a round hangs, later
probes wait for the same round, so a group never has more than one thread and one connection.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend

from retrieval.infrastructure.database import statements_within

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 1.5
# The least that libpq accepts. It is longer than the deadline, which does not wait for it.
CONNECT_TIMEOUT_SECONDS = 2
# A server whose machine is gone without a word is given up by the kernel after 10 seconds.
_KEEPALIVE = {"keepalives_idle": 4, "keepalives_interval": 2, "keepalives_count": 3}
# How long the finding of an expensive check is kept: a remote embedder may cost money for each call.
REMEMBERED_SECONDS = 30.0
FAILURE_REMEMBERED_SECONDS = 5.0
# For each statement of a check; less than the deadline.
STATEMENT_TIMEOUT_SECONDS = 1.2


class Health(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; FAILED means that no question can be answered. ``counts`` is what it counted on the way."""

    state: Health = Health.OK
    detail: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


Check = Callable[[], Finding]


@dataclass
class Remembered:
    """A check whose finding is kept for a while."""

    check: Callable[[], Finding]
    finding: Finding | None = None
    until: float = 0.0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self) -> Finding:
        with self.lock:
            if self.finding is None or time.monotonic() >= self.until:
                self.finding = self.check()
                holds = REMEMBERED_SECONDS if self.finding.state is Health.OK else FAILURE_REMEMBERED_SECONDS
                self.until = time.monotonic() + holds
            return self.finding


def ask_in_database(check: Check) -> Check:
    """``check`` in a transaction with a statement timeout."""

    @wraps(check)
    def check_with_timeout() -> Finding:
        with statements_within(STATEMENT_TIMEOUT_SECONDS):
            return check()

    return check_with_timeout


@dataclass(eq=False)
class Round:
    """One run through the checks of a group; ``findings`` grows while it runs."""

    checks: Mapping[str, Check]
    findings: dict[str, Finding] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        connections["default"] = dedicated_connection()
        try:
            for name, check in self.checks.items():
                if self.findings.get("database", Finding()).state is Health.FAILED:
                    self.findings[name] = Finding(Health.FAILED, "Not looked at: the database does not answer.")
                    continue
                try:
                    self.findings[name] = check()
                except Exception:  # any error of a check is a finding
                    logger.exception("The readiness check %s failed.", name)
                    self.findings[name] = Finding(Health.FAILED, "This check failed; the log says why.")
        finally:
            connections.close_all()
            self.done.set()


class CheckGroup:
    """Checks that run one after another in one thread. ``hung`` is the state of a check that does not answer.

    The checks are looked up in ``known`` by name at each round.
    """

    def __init__(
        self, known: Mapping[str, Check], names: Sequence[str], *, hung: Callable[[], Health] = lambda: Health.FAILED
    ) -> None:
        self._known = known
        self._names = names
        self._hung = hung
        self._lock = threading.Lock()
        self._round: Round | None = None

    def begin(self) -> Round:
        """The running round, or a new one."""
        with self._lock:
            if self._round is None or self._round.done.is_set():
                self._round = Round({name: self._known[name] for name in self._names})
                # A daemon thread does not keep the process from ending.
                threading.Thread(target=self._round.run, name="readiness", daemon=True).start()
            return self._round

    def findings(self, of: Round, deadline: float) -> dict[str, Finding]:
        """What the round has found by ``deadline`` (a time of the monotonic clock)."""
        of.done.wait(max(0.0, deadline - time.monotonic()))
        found = dict(of.findings)
        silent = [name for name in of.checks if name not in found]
        for name in silent:
            found[name] = Finding(
                self._hung(),
                f"It did not answer within {DEADLINE_SECONDS:g} s."
                if name == silent[0]
                else f"Not looked at: {silent[0]} did not answer.",
            )
        return found


def collect_findings(groups: Sequence[CheckGroup]) -> dict[str, Finding]:
    """What all checks found, at the latest after DEADLINE_SECONDS."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    rounds = [group.begin() for group in groups]
    found: dict[str, Finding] = {}
    for group, under_way in zip(groups, rounds, strict=True):
        found |= group.findings(under_way, deadline)
    return found


def dedicated_connection() -> BaseDatabaseWrapper:
    """A connection outside the pool, with short timeouts."""
    described: dict[str, Any] = copy.deepcopy(connections.settings["default"])
    options = described["OPTIONS"]
    options.pop("pool", None)
    options |= {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "tcp_user_timeout": 2000, **_KEEPALIVE}
    described["CONN_MAX_AGE"] = 0
    made: BaseDatabaseWrapper = load_backend(described["ENGINE"]).DatabaseWrapper(described, "default")
    return made
