"""Check for `/readyz` whether the parts of the site work, within a deadline.

Each app registers its checks in its module `readiness`. The page is public, so errors are only logged.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.utils.module_loading import autodiscover_modules

from core.database import limit_statements

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 1.5
# The smallest value that libpq accepts.
CONNECT_TIMEOUT_SECONDS = 2
# The kernel closes the connection to a vanished server after 10 seconds.
_KEEPALIVE = {"keepalives_idle": 4, "keepalives_interval": 2, "keepalives_count": 3}
# Results of expensive checks are reused for this time, because a call of a remote embedder may cost money.
REMEMBERED_SECONDS = 30.0
FAILURE_REMEMBERED_SECONDS = 5.0
STATEMENT_TIMEOUT_SECONDS = 1.2


class Health(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check of the site. FAILED means that the site cannot answer questions."""

    state: Health = Health.OK
    detail: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[[], CheckResult]


@dataclass
class CachedCheck:
    """A check whose result is reused for some seconds. It is not safe for threads."""

    check: Check
    finding: CheckResult | None = None
    until: float = 0.0

    def __call__(self) -> CheckResult:
        if self.finding is None or time.monotonic() >= self.until:
            self.finding = self.check()
            kept_seconds = REMEMBERED_SECONDS if self.finding.state is Health.OK else FAILURE_REMEMBERED_SECONDS
            self.until = time.monotonic() + kept_seconds
        return self.finding


class CheckGroup:
    """Checks that need the same server. One thread runs them, one after another.

    ``hung`` returns the result for a check that hangs. If ``in_database`` is true, each SQL statement has a time limit.
    """

    def __init__(
        self,
        *,
        hung: Callable[[], Health] = lambda: Health.DEGRADED,
        in_database: bool = False,
    ) -> None:
        self.checks: dict[str, Check] = {}
        self._hung = hung
        self._in_database = in_database
        self._lock = threading.Lock()
        self._findings: dict[str, CheckResult] = {}
        self._thread: threading.Thread | None = None

    def check(self, name: str, *, is_remembered: bool = False) -> Callable[[Check], Check]:
        """Register the decorated function as a check. `/readyz` shows ``name``."""

        def register(check: Check) -> Check:
            self.checks[name] = CachedCheck(check) if is_remembered else check
            return check

        return register

    def begin(self) -> tuple[threading.Thread, dict[str, CheckResult]]:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._findings = {}
                self._thread = threading.Thread(
                    target=self._run_checks, args=[self._findings], name="readiness", daemon=True
                )
                self._thread.start()
            return self._thread, self._findings

    def _run_checks(self, findings: dict[str, CheckResult]) -> None:
        connections["default"] = create_unpooled_connection()
        try:
            for name, check in self.checks.items():
                if findings.get("database", CheckResult()).state is Health.FAILED:
                    findings[name] = CheckResult(Health.FAILED, "Not looked at: the database does not answer.")
                    continue
                try:
                    has_timeout = self._in_database and name != "database"
                    with limit_statements(STATEMENT_TIMEOUT_SECONDS) if has_timeout else nullcontext():
                        findings[name] = check()
                except Exception:
                    logger.exception("The readiness check %s failed.", name)
                    findings[name] = CheckResult(Health.FAILED, "This check failed; the log says why.")
        finally:
            connections.close_all()

    def add_hung_checks(self, found: dict[str, CheckResult]) -> dict[str, CheckResult]:
        silent = [name for name in self.checks if name not in found]
        for name in silent:
            said = f"Not looked at: {silent[0]} did not answer."
            if name == silent[0]:
                said = f"It did not answer within {DEADLINE_SECONDS:g} s."
            found[name] = CheckResult(self._hung(), said)
        return found


def collect_check_results(groups: Iterable[CheckGroup]) -> dict[str, CheckResult]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    collected: dict[str, CheckResult] = {}
    for group, (thread, findings) in [(group, group.begin()) for group in groups]:
        thread.join(max(0.0, deadline - time.monotonic()))
        collected |= group.add_hung_checks(dict(findings))
    return collected


def create_unpooled_connection() -> BaseDatabaseWrapper:
    made: BaseDatabaseWrapper = connections["default"].copy()
    made.settings_dict["OPTIONS"].pop("pool", None)
    made.settings_dict["OPTIONS"] |= {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "tcp_user_timeout": 2000,
        **_KEEPALIVE,
    }
    made.settings_dict["CONN_MAX_AGE"] = 0
    return made


DATABASE = CheckGroup(hung=lambda: Health.FAILED, in_database=True)
MACHINE = CheckGroup()
_GROUPS = [DATABASE, MACHINE]


def add_group(group: CheckGroup) -> CheckGroup:
    _GROUPS.append(group)
    return group


@functools.cache
def list_check_groups() -> tuple[CheckGroup, ...]:
    autodiscover_modules("readiness")
    return tuple(_GROUPS)


# If this first check fails, the others of the group do not run.
@DATABASE.check("database")
def check_database() -> CheckResult:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer.")
        return CheckResult(Health.FAILED, "The database does not answer; the log says why.")
    return CheckResult()


@DATABASE.check("migrations", is_remembered=True)
def check_migrations() -> CheckResult:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        return CheckResult(Health.FAILED, f"{len(waiting)} migrations are not applied: run `manage.py migrate`.")
    return CheckResult()
