"""Runs health checks within a deadline, even if a server hangs.

Checks that depend on the same server form a group and run one after another in one thread. While a round hangs, later
probes wait for the same round, so a group never has more than one thread and one connection.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial, wraps
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


class CheckGroup:
    """Checks that run one after another in one thread. ``hung`` is the state of a check that does not answer."""

    def __init__(self, checks: dict[str, Check], *, hung: Callable[[], Health] = lambda: Health.FAILED) -> None:
        self.checks = checks
        self._hung = hung
        self._lock = threading.Lock()
        # Of the last round; the findings grow while it runs.
        self._findings: dict[str, Finding] = {}
        self._done = threading.Event()
        self._done.set()

    def begin(self) -> Callable[[float], dict[str, Finding]]:
        """Start a round unless one is running. The function returned waits for it until a time of the
        monotonic clock.
        """
        with self._lock:
            if self._done.is_set():
                self._findings, self._done = {}, threading.Event()
                # A daemon thread does not keep the process from ending.
                begun = self._findings, self._done
                threading.Thread(target=self._run, args=begun, name="readiness", daemon=True).start()
            return partial(self._wait, self._findings, self._done)

    def _run(self, findings: dict[str, Finding], done: threading.Event) -> None:
        connections["default"] = dedicated_connection()
        try:
            for name, check in self.checks.items():
                if findings.get("database", Finding()).state is Health.FAILED:
                    findings[name] = Finding(Health.FAILED, "Not looked at: the database does not answer.")
                    continue
                try:
                    findings[name] = check()
                except Exception:  # any error of a check is a finding
                    logger.exception("The readiness check %s failed.", name)
                    findings[name] = Finding(Health.FAILED, "This check failed; the log says why.")
        finally:
            connections.close_all()
            done.set()

    def _wait(self, findings: dict[str, Finding], done: threading.Event, deadline: float) -> dict[str, Finding]:
        done.wait(max(0.0, deadline - time.monotonic()))
        found = dict(findings)
        silent = [name for name in self.checks if name not in found]
        for name in silent:
            said = f"Not looked at: {silent[0]} did not answer."
            if name == silent[0]:
                said = f"It did not answer within {DEADLINE_SECONDS:g} s."
            found[name] = Finding(self._hung(), said)
        return found


def collect_findings(groups: Iterable[CheckGroup]) -> dict[str, Finding]:
    """What all checks found, at the latest after DEADLINE_SECONDS."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    rounds = [group.begin() for group in groups]
    return {name: finding for wait in rounds for name, finding in wait(deadline).items()}


def dedicated_connection() -> BaseDatabaseWrapper:
    """A connection outside the pool, with short timeouts."""
    described: dict[str, Any] = copy.deepcopy(connections.settings["default"])
    options = described["OPTIONS"]
    options.pop("pool", None)
    options |= {"connect_timeout": CONNECT_TIMEOUT_SECONDS, "tcp_user_timeout": 2000, **_KEEPALIVE}
    described["CONN_MAX_AGE"] = 0
    made: BaseDatabaseWrapper = load_backend(described["ENGINE"]).DatabaseWrapper(described, "default")
    return made
