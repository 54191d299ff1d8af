"""Runs health checks within a deadline, even if a server hangs.

Checks that depend on the same server form a group and run one after another in one thread. While a round hangs, later
probes wait for the same round, so a group never has more than one thread and one connection.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

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
    """A check whose finding is kept for a while. One thread at a time runs it: its group's."""

    check: Check
    finding: Finding | None = None
    until: float = 0.0

    def __call__(self) -> Finding:
        if self.finding is None or time.monotonic() >= self.until:
            self.finding = self.check()
            kept_seconds = REMEMBERED_SECONDS if self.finding.state is Health.OK else FAILURE_REMEMBERED_SECONDS
            self.until = time.monotonic() + kept_seconds
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
        # Of the last round; the findings grow while its thread runs.
        self._findings: dict[str, Finding] = {}
        self._thread: threading.Thread | None = None

    def begin(self) -> tuple[threading.Thread, dict[str, Finding]]:
        """The thread of the round that is running, or of a new one, and its findings so far."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._findings = {}
                # A daemon thread does not keep the process from ending.
                self._thread = threading.Thread(target=self._run, args=[self._findings], name="readiness", daemon=True)
                self._thread.start()
            return self._thread, self._findings

    def _run(self, findings: dict[str, Finding]) -> None:
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

    def with_silent(self, found: dict[str, Finding]) -> dict[str, Finding]:
        """``found`` and, for each check that is missing in it, that it did not answer."""
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
    collected: dict[str, Finding] = {}
    for group, (thread, findings) in [(group, group.begin()) for group in groups]:
        thread.join(max(0.0, deadline - time.monotonic()))
        collected |= group.with_silent(dict(findings))
    return collected


def dedicated_connection() -> BaseDatabaseWrapper:
    """A connection outside the pool, with short timeouts."""
    made: BaseDatabaseWrapper = connections["default"].copy()
    made.settings_dict["OPTIONS"].pop("pool", None)
    made.settings_dict["OPTIONS"] |= {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "tcp_user_timeout": 2000,
        **_KEEPALIVE,
    }
    made.settings_dict["CONN_MAX_AGE"] = 0
    return made
