"""Check for `/readyz` whether the parts of the site work, and count waiting work.

The checks end within a deadline, even if a server hangs. Their sentences are public; errors are only logged.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from importlib.util import find_spec
from typing import Any

from celery import current_app
from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.db import DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Case, Count, F, Min, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Now
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models import Answer
from core import breaker, disk
from core.database import statements_within
from core.exceptions import FilesUnavailable
from core.job_queue import count_queued
from core.jobs import Job, is_due
from evaluation.models import EvaluationRun, Judgement
from ragsite.models import SlackQuestion
from ragsite.processes import local_model
from retrieval.documents import sandbox
from retrieval.documents.reconciliation import read_last_counts
from retrieval.documents.storage import document_files
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import searches_former
from retrieval.index.closeness import find_calibration, missing_calibration
from retrieval.index.distribution import list_nodes as cluster_nodes
from retrieval.models import Document, Draft, Embedder, SourceRun, WebhookDelivery
from retrieval.search.profiles.profiles import active_profile
from retrieval.types import SearchMethod

logger = logging.getLogger(__name__)

DEADLINE_SECONDS = 1.5
CONNECT_TIMEOUT_SECONDS = 2
# The kernel gives up a server that has vanished after 10 seconds.
_KEEPALIVE = {"keepalives_idle": 4, "keepalives_interval": 2, "keepalives_count": 3}
# The finding of an expensive check is used again for this time: a remote embedder may cost money for each call.
REMEMBERED_SECONDS = 30.0
FAILURE_REMEMBERED_SECONDS = 5.0
STATEMENT_TIMEOUT_SECONDS = 1.2


class Health(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. FAILED means that no question can be answered."""

    state: Health = Health.OK
    detail: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


Check = Callable[[], Finding]


@dataclass
class Remembered:
    """A check whose finding is used again for a while. Only the thread of its group calls it."""

    check: Check
    finding: Finding | None = None
    until: float = 0.0

    def __call__(self) -> Finding:
        if self.finding is None or time.monotonic() >= self.until:
            self.finding = self.check()
            kept_seconds = REMEMBERED_SECONDS if self.finding.state is Health.OK else FAILURE_REMEMBERED_SECONDS
            self.until = time.monotonic() + kept_seconds
        return self.finding


class CheckGroup:
    """Checks that need the same server. One thread runs them, one after another.

    A group has at most one thread and one connection. While a check hangs, later requests do not start another thread.
    ``hung`` returns the state of a check that does not answer. ``in_database`` limits the time of each statement.
    """

    def __init__(
        self,
        checks: dict[str, Check],
        *,
        hung: Callable[[], Health] = lambda: Health.DEGRADED,
        in_database: bool = False,
    ) -> None:
        self.checks = checks
        self._hung = hung
        self._in_database = in_database
        self._lock = threading.Lock()
        self._findings: dict[str, Finding] = {}
        self._thread: threading.Thread | None = None

    def begin(self) -> tuple[threading.Thread, dict[str, Finding]]:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._findings = {}
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
                    has_timeout = self._in_database and name != "database"
                    with statements_within(STATEMENT_TIMEOUT_SECONDS) if has_timeout else nullcontext():
                        findings[name] = check()
                except Exception:
                    logger.exception("The readiness check %s failed.", name)
                    findings[name] = Finding(Health.FAILED, "This check failed; the log says why.")
        finally:
            connections.close_all()

    def add_unfinished_checks(self, found: dict[str, Finding]) -> dict[str, Finding]:
        silent = [name for name in self.checks if name not in found]
        for name in silent:
            said = f"Not looked at: {silent[0]} did not answer."
            if name == silent[0]:
                said = f"It did not answer within {DEADLINE_SECONDS:g} s."
            found[name] = Finding(self._hung(), said)
        return found


def collect_findings(groups: Iterable[CheckGroup]) -> dict[str, Finding]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    collected: dict[str, Finding] = {}
    for group, (thread, findings) in [(group, group.begin()) for group in groups]:
        thread.join(max(0.0, deadline - time.monotonic()))
        collected |= group.add_unfinished_checks(dict(findings))
    return collected


def dedicated_connection() -> BaseDatabaseWrapper:
    made: BaseDatabaseWrapper = connections["default"].copy()
    made.settings_dict["OPTIONS"].pop("pool", None)
    made.settings_dict["OPTIONS"] |= {
        "connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "tcp_user_timeout": 2000,
        **_KEEPALIVE,
    }
    made.settings_dict["CONN_MAX_AGE"] = 0
    return made


LATE_AFTER = {
    "documents": timedelta(minutes=10),
    "maintenance": timedelta(minutes=5),
    "judgements": timedelta(hours=1),
    "deliveries": timedelta(hours=1),
    "answers": timedelta(minutes=1),
}
QUEUE_LABELS = {
    "documents": _("Documents and sources"),
    "maintenance": _("Maintenance"),
    "judgements": _("Automatic ratings and evaluation runs"),
    "deliveries": _("Webhook deliveries"),
    "answers": _("Answers"),
}
# The queue `maintenance` is missing, because its tasks have no rows.
_JOBS: dict[str, tuple[type[Job], ...]] = {
    "documents": (Document, SourceRun, Draft),
    "judgements": (Judgement, EvaluationRun),
    "deliveries": (WebhookDelivery,),
}


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of work. ``oldest_seconds`` is how long its oldest due job has waited, or 0."""

    name: str
    length: int
    oldest_seconds: float

    @property
    def label(self) -> str:
        return str(QUEUE_LABELS[self.name])

    @property
    def is_late(self) -> bool:
        # The scheduler sends eight maintenance tasks a minute, so a few that wait are normal.
        is_backlog = self.name != "maintenance" or self.length > 20
        return is_backlog and self.oldest_seconds > LATE_AFTER[self.name].total_seconds()


def count_queued_work() -> list[Queue]:
    """Return the work that is due, by queue. Maintenance is counted only if the queue is in the database."""
    counts = [_count_answers(), *(_count_jobs(name, model) for name, models in _JOBS.items() for model in models)]
    lengths, oldest, now = Counter[str](), dict[str, float](), timezone.now()
    for name, length, since in counts[0].union(*counts[1:], all=True):
        lengths[name] += length
        oldest[name] = max(oldest.get(name, 0.0), (now - (since or now)).total_seconds())
    if current_app.conf.broker_url.startswith("pgmq:"):
        lengths["maintenance"], oldest["maintenance"] = count_queued("maintenance")
    return [Queue(name, lengths[name], oldest.get(name, 0.0)) for name in LATE_AFTER]


def _count_answers() -> QuerySet[Any, Any]:
    return _count("answers", Answer.objects.filter(status=Answer.Status.PENDING), F("created_at"))


def _count_jobs(name: str, model: type[Job]) -> QuerySet[Any, Any]:
    if model is not Document:
        return _count(name, model.startable(), Coalesce("retry_at", "enqueued_at", "created_at"))
    # A document that was never tried waits since its last update: the scheduler changes its `retry_at`.
    rows = Document.objects.filter(Q(attempts=0) | is_due(), status=Document.Status.PENDING)
    return _count(name, rows, Case(When(attempts=0, then="updated_at"), default="retry_at"))


def _count(name: str, rows: QuerySet[Any], since: Combinable) -> QuerySet[Any, Any]:
    named = rows.order_by().annotate(queue=Value(name)).values("queue")
    counted: QuerySet[Any, Any] = named.annotate(length=Count("pk"), since=Min(since))
    return counted.values_list("queue", "length", "since")


# Versions below WANTED can corrupt an index. Versions below NEEDED cannot scan an index iteratively.
PGVECTOR_WANTED = (0, 8, 6)
PGVECTOR_NEEDED = (0, 8, 0)
# The scheduler sends waiting work every 15 seconds, so a longer wait shows that no worker takes it.
WAITS_FOR_NOBODY_AFTER = timedelta(seconds=90)
# If a worker reads a document for longer without progress, it is stuck, although it sends heartbeats.
STUCK_AFTER = timedelta(minutes=3)
# The scheduler touches its file every few seconds.
SCHEDULER_LOST_AFTER_SECONDS = 120.0
BROKER_TIMEOUT_SECONDS = 3


def database() -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer.")
        return Finding(Health.FAILED, "The database does not answer; the log says why.")
    return Finding()


def migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        return Finding(Health.FAILED, f"{len(waiting)} migrations are not applied: run `manage.py migrate`.")
    return Finding()


def pgvector() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return Finding(Health.FAILED, "The extension vector is not installed: run `manage.py migrate`.")
    version = tuple(int(part) for part in row[0].split(".") if part.isdecimal())
    recommended = ".".join(map(str, PGVECTOR_WANTED))
    if version < PGVECTOR_NEEDED:
        return Finding(Health.FAILED, f"pgvector {row[0]} is too old: install {recommended} or newer.")
    if version < PGVECTOR_WANTED:
        return Finding(Health.DEGRADED, f"pgvector {row[0]} has known faults: install {recommended} or newer.")
    return Finding(detail=row[0])


def nodes() -> Finding:
    """Check the nodes of a distributed database. A search needs all nodes that have shards."""
    known = cluster_nodes()
    lost = [node.name for node in known if not node.is_reachable]
    if lost:
        logger.error("Nodes of the database do not answer: %s", ", ".join(lost))
        return Finding(Health.FAILED, f"{len(lost)} of {len(known)} nodes of the database do not answer.")
    return Finding(detail=f"{len(known)} nodes." if known else "")


# The state if the embedder hangs. It is remembered, because there is then no time left to query the database.
_without_embedder = Health.DEGRADED


def embedder() -> Finding:
    """Check the search by meaning. If it fails, searches use words alone, unless the settings forbid it."""
    global _without_embedder
    is_alone = not settings.RETRIEVAL_HYBRID_ENABLED or active_profile().settings.method is SearchMethod.VECTOR
    state = _without_embedder = Health.FAILED if is_alone else Health.DEGRADED
    try:
        configured = embedder_choice.get_embedder()
        configured.embed_query("ready")
    except Exception:
        logger.exception("The embedder does not work.")
        return Finding(state, "The embedder does not work; the log says why.")
    active = Embedder.objects.filter(is_active=True).first()
    if active is not None and (active.name, active.dimension) != (configured.name, configured.dimension):
        if searches_former(configured.name):
            return Finding(Health.DEGRADED, "Another embedder is in service: restart the site with its settings.")
        return Finding(state, "The stored vectors are another embedder's: run `manage.py reembed`.")
    if find_calibration(configured.name) is None:
        return Finding(detail=missing_calibration(configured.name))
    return Finding(detail=embedder_choice.describe_embedder_choice() or configured.name)


def search_profile() -> Finding:
    """Check the published search profile, and report if RETRIEVAL_HYBRID_ENABLED turns off the search by words."""
    profile = active_profile()
    if profile.error:
        return Finding(
            Health.DEGRADED, "The published search profile cannot be read, the built-in one is used; the log says why."
        )
    if not settings.RETRIEVAL_HYBRID_ENABLED:
        return Finding(detail=f"{profile}, by vectors alone: RETRIEVAL_HYBRID_ENABLED is false.")
    return Finding(detail=profile.name)


def broker() -> Finding:
    try:
        with current_app.connection_for_write(connect_timeout=BROKER_TIMEOUT_SECONDS) as link:
            try:
                link.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_SECONDS)
            except Exception:
                # pgmq's transport does not close its pool after a failed first query.
                client = getattr(link.transport, "_pgmq_client", None)
                if client is not None:
                    client.pool.close()
                raise
    except Exception:  # each transport has its own errors
        logger.exception("The broker does not answer.")
        return Finding(Health.DEGRADED, "The broker does not answer: new documents wait until it does.")
    return Finding()


def _is_served(queue: str) -> bool:
    alive = Q(heartbeat_at__gte=Now() - Job.SILENT_AFTER)
    return queue not in _JOBS or any(model._default_manager.filter(alive).exists() for model in _JOBS[queue])


def worker() -> Finding:
    counts = documents_by_status()
    limit = WAITS_FOR_NOBODY_AFTER.total_seconds()
    idle = [line.name for line in count_queued_work() if line.oldest_seconds > limit and not _is_served(line.name)]
    if idle:
        detail = f"Nobody takes what waits in the queues: {', '.join(idle)}; start a worker for them."
        return Finding(Health.DEGRADED, detail, counts)
    busy = Document.objects.filter(status=Document.Status.PROCESSING, heartbeat_at__gte=Now() - Document.SILENT_AFTER)
    if stuck := busy.filter(updated_at__lt=Now() - STUCK_AFTER).count():
        minutes = STUCK_AFTER.total_seconds() / 60
        return Finding(
            Health.DEGRADED, f"Documents being read without progress for {minutes:g} minutes: {stuck}.", counts
        )
    return Finding(counts=counts)


def slack() -> Finding:
    waiting = SlackQuestion.waiting().annotate(since=Coalesce("retry_at", "created_at"))
    if settings.SLACK_BOT_TOKEN and waiting.filter(since__lt=Now() - WAITS_FOR_NOBODY_AFTER).exists():
        return Finding(
            Health.DEGRADED,
            "Questions from Slack wait: start `python -m ragsite.processes.slack_app`; its log says why.",
        )
    return Finding()


def drafts() -> Finding:
    """Check the drafts. A step that fails is tried again for ever, and reported after two attempts."""
    if failing := Draft.unfinished().exclude(error="").filter(attempts__gte=3).count():
        return Finding(Health.DEGRADED, f"Drafts that fail to be copied or cleared away: {failing}; the log says why.")
    return Finding()


def documents_by_status() -> dict[str, int]:
    counted = dict(Document.objects.order_by().values_list("status").annotate(Count("pk")))
    return {status: counted.get(status, 0) for status in Document.Status.values}


def queue() -> Finding:
    lines = count_queued_work()
    counts = {line.name: {"length": line.length, "oldest_seconds": round(line.oldest_seconds, 1)} for line in lines}
    late = "; ".join(
        f"{line.length} {line.name}, the oldest for {line.oldest_seconds / 60:.0f} min"
        for line in lines
        if line.is_late
    )
    return Finding(Health.DEGRADED, f"Work waits for too long: {late}.", counts) if late else Finding(counts=counts)


def disk_space() -> Finding:
    short = min(disk.list_free_space(), key=lambda room: room.free_bytes, default=None)
    if short is None:
        return Finding()
    free = f"{short.free_bytes // 2**20} MiB are free"
    if short.free_bytes < settings.DISK_RESERVE_BYTES:
        reserve = f"{free}, less than {settings.DISK_RESERVE_BYTES // 2**20} MiB"
        return Finding(Health.DEGRADED, f"The disk is full ({reserve}): nothing is saved until there is room.")
    if short.free_bytes < 2 * settings.DISK_RESERVE_BYTES:
        return Finding(Health.DEGRADED, f"The disk is nearly full ({free}): make room.")
    return Finding(detail=f"{free}.")


def files() -> Finding:
    """Check the bucket with the files. Questions can be answered without it."""
    storage = document_files()
    if not isinstance(storage, FileSystemStorage):
        try:
            storage.check()  # type: ignore[attr-defined]
        except (FilesUnavailable, FileNotFoundError):
            return Finding(
                Health.DEGRADED, "The storage of the files does not answer: nothing can be uploaded or read."
            )
    return Finding()


def scheduler() -> Finding:
    """Check that the scheduler runs, if it has ever run with this data directory."""
    seen = settings.SCHEDULER_SEEN_FILE
    if seen.exists() and time.time() - seen.stat().st_mtime > SCHEDULER_LOST_AFTER_SECONDS:
        return Finding(
            Health.DEGRADED,
            "The scheduler does not run: what was interrupted is not resumed. "
            "Start `python -m ragsite.processes.beat`.",
        )
    return Finding()


def breakers() -> Finding:
    failing = [part for part, state in breaker.states().items() if state != breaker.BreakerState.CLOSED]
    if failing:
        return Finding(Health.DEGRADED, f"Failed repeatedly and asked again after a pause: {', '.join(failing)}.")
    return Finding()


def language_model() -> Finding:
    if settings.LOCAL_MODEL and not local_model.is_ready():
        return Finding(
            Health.DEGRADED,
            "The local language model does not run; answers are quoted from the documents.",
        )
    return Finding(detail=settings.OPENAI_MODEL)


def file_sandbox() -> Finding:
    state = sandbox.state()
    if state.failure:
        return Finding(Health.DEGRADED, "The process that reads files could not be started; the log says why.")
    if state.missing_guards:
        read = "No file is read" if settings.SANDBOX_REQUIRED else "Files are read without these guards"
        return Finding(Health.DEGRADED, f"{read}, which this machine lacks: {', '.join(state.missing_guards)}.")
    if not find_spec("xberg"):
        return Finding(
            Health.DEGRADED,
            "The package xberg is not installed: old Office files, RTF, notebooks and markup are not read.",
        )
    return Finding()


def indexes() -> Finding:
    if sum(read_last_counts().values()):
        return Finding(Health.DEGRADED, "The last index check found faults: run `manage.py reconcile --repair`.")
    return Finding()


GROUPS = (
    CheckGroup(
        {
            "database": database,
            "migrations": Remembered(migrations),
            **{
                check.__name__: check
                for check in (pgvector, nodes, search_profile, worker, queue, drafts, slack, indexes)
            },
        },
        hung=lambda: Health.FAILED,
        in_database=True,
    ),
    CheckGroup({"embedder": Remembered(embedder)}, hung=lambda: _without_embedder),
    CheckGroup({"broker": Remembered(broker)}),
    CheckGroup({"files": Remembered(files)}),
    CheckGroup(
        {
            "disk": disk_space,
            "scheduler": scheduler,
            "breakers": breakers,
            "language_model": language_model,
            "sandbox": file_sandbox,
        }
    ),
)
