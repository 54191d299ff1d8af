"""Is the process alive, can the site answer, and what do its counters say.

`/readyz` is 200 as long as questions can be answered; what does not work as it should, but does not keep them from
being answered, is named under `degraded`. Its sentences are for anybody; the log has the errors themselves.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import product
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest

from evaluation.gates import open_alerts
from evaluation.models import Judgement
from ragsite.celery import app as celery_app
from retrieval import conf
from retrieval.ingest.pipeline import HEARTBEAT_LOST_AFTER
from retrieval.models import Document, Embedder
from retrieval.profiles import active_profile
from retrieval.reconciliation.runs import last_counts
from retrieval.types import SearchMethod

logger = logging.getLogger(__name__)

# Older ones can corrupt an index; much older ones cannot go on scanning, so that filtered searches come back empty.
PGVECTOR_WANTED = (0, 8, 6)
PGVECTOR_NEEDED = (0, 8, 0)
# How long a document may wait before its waiting tells that no worker is there: the schedule looks every 15 seconds.
WAITS_FOR_NOBODY_AFTER = timedelta(seconds=90)
# What a probe remembers of a check that costs something: a remote embedder is not to be paid for every few seconds.
REMEMBERED_SECONDS = 30.0
FAILURE_REMEMBERED_SECONDS = 5.0
BROKER_TIMEOUT_SECONDS = 3

DOCUMENTS = Gauge("ragsite_documents", "Documents, by status.", ["status"])
INCONSISTENCIES = Gauge(
    "ragsite_index_inconsistencies", "What the last index check found and nobody has mended, by kind.", ["kind"]
)
ALERTS = Gauge(
    "ragsite_evaluation_alerts", "Watched sets that do significantly worse since documents changed, not yet seen."
)
JUDGEMENTS = Gauge("ragsite_judgements", "Judgements of answers, by judge and status.", ["judge", "status"])


class State(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; FAILED means that no question can be answered."""

    state: State = State.OK
    detail: str = ""


def database() -> Finding:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.exception("The database does not answer.")
        return Finding(State.FAILED, "The database does not answer; the log says why.")
    return Finding()


def migrations() -> Finding:
    executor = MigrationExecutor(connection)
    waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if waiting:
        return Finding(State.FAILED, f"{len(waiting)} migrations are not applied: run `manage.py migrate`.")
    return Finding()


def pgvector() -> Finding:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return Finding(State.FAILED, "The extension vector is not installed: run `manage.py migrate`.")
    version = tuple(int(part) for part in row[0].split(".") if part.isdecimal())
    wanted = ".".join(map(str, PGVECTOR_WANTED))
    if version < PGVECTOR_NEEDED:
        return Finding(State.FAILED, f"pgvector {row[0]} is too old: install {wanted} or newer.")
    if version < PGVECTOR_WANTED:
        return Finding(State.DEGRADED, f"pgvector {row[0]} has known faults: install {wanted} or newer.")
    return Finding(detail=row[0])


def embedder() -> Finding:
    """Whether questions can be searched by meaning; if not, keywords still answer unless they are switched off."""
    only_leg = not settings.RETRIEVAL_HYBRID_ENABLED or active_profile().settings.method is SearchMethod.VECTOR
    state = State.FAILED if only_leg else State.DEGRADED
    try:
        configured = conf.embedder()
        configured.embed_query("ready")
    except Exception:  # whatever keeps a backend from answering, the search goes on without it
        logger.exception("The embedder does not work.")
        return Finding(state, "The embedder does not work; the log says why.")
    active = Embedder.objects.filter(is_active=True).first()
    if active is not None and (active.name, active.dimension) != (configured.name, configured.dimension):
        return Finding(state, "The stored vectors are another embedder's: run `manage.py reembed`.")
    return Finding(detail=configured.name)


def search_profile() -> Finding:
    """Which search profile is in force, and whether the switch leaves anything of it but vectors."""
    profile = active_profile()
    if profile.error:
        return Finding(
            State.DEGRADED, "The published search profile cannot be read, the built-in one is used; the log says why."
        )
    if not settings.RETRIEVAL_HYBRID_ENABLED:
        return Finding(detail=f"{profile}, by vectors alone: RETRIEVAL_HYBRID_ENABLED is false.")
    return Finding(detail=profile.name)


def broker() -> Finding:
    try:
        with celery_app.connection_for_write(connect_timeout=BROKER_TIMEOUT_SECONDS) as link:
            link.ensure_connection(max_retries=1, timeout=BROKER_TIMEOUT_SECONDS)
    except Exception:  # each transport has its own errors
        logger.exception("The broker does not answer.")
        return Finding(State.DEGRADED, "The broker does not answer: new documents wait until it does.")
    return Finding()


def worker() -> Finding:
    """Whether somebody reads new documents; told from those that wait, so that no worker has to be asked."""
    now = timezone.now()
    documents = Document.objects.order_by()
    stale = documents.filter(
        status=Document.Status.PENDING, attempts=0, updated_at__lt=now - WAITS_FOR_NOBODY_AFTER
    ).exists()
    busy = documents.filter(status=Document.Status.PROCESSING, heartbeat_at__gte=now - HEARTBEAT_LOST_AFTER).exists()
    if stale and not busy:
        return Finding(State.DEGRADED, "Documents wait and nobody reads them: start a worker.")
    return Finding()


def indexes() -> Finding:
    """Whether passages, vectors and statistics agreed when they were last checked."""
    if sum(last_counts().values()):
        return Finding(State.DEGRADED, "The last index check found faults: run `manage.py reconcile --repair`.")
    return Finding()


@dataclass
class Remembered:
    """A check whose finding holds for a while; one probe at a time asks anew."""

    check: Callable[[], Finding]
    finding: Finding | None = None
    until: float = 0.0

    def __post_init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self) -> Finding:
        with self.lock:
            if self.finding is None or time.monotonic() >= self.until:
                self.finding = self.check()
                holds = REMEMBERED_SECONDS if self.finding.state is State.OK else FAILURE_REMEMBERED_SECONDS
                self.until = time.monotonic() + holds
            return self.finding


CHECKS: dict[str, Callable[[], Finding]] = {
    "database": database,
    "migrations": Remembered(migrations),
    "pgvector": pgvector,
    "embedder": Remembered(embedder),
    "search_profile": search_profile,
    "broker": Remembered(broker),
    "worker": worker,
    "indexes": indexes,
}


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """This process answers. Asks nothing of the database, so that its loss does not get the process killed."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when questions can be answered, 503 otherwise."""
    findings: dict[str, Finding] = {}
    for name, check in CHECKS.items():
        if findings.get("database", Finding()).state is State.FAILED:
            findings[name] = Finding(State.FAILED, "Not looked at: the database does not answer.")
            continue
        try:
            findings[name] = check()
        except Exception:  # a probe tells what is wrong instead of going wrong
            logger.exception("The readiness check %s failed.", name)
            findings[name] = Finding(State.FAILED, "This check failed; the log says why.")
    ready = all(finding.state is not State.FAILED for finding in findings.values())
    degraded = [name for name, finding in findings.items() if finding.state is not State.OK]
    body: dict[str, Any] = {
        "status": ("degraded" if degraded else "ready") if ready else "unavailable",
        "degraded": degraded,
        "checks": {name: {"state": found.state, "detail": found.detail} for name, found in findings.items()},
    }
    if ready:
        body["documents"] = _documents_by_status()
    return JsonResponse(body, status=200 if ready else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Counters of this web process (each has its own) for Prometheus."""
    if not (getattr(settings, "METRICS_PUBLIC", False) or _from_this_machine(request) or _is_staff(request)):
        return HttpResponse(
            "Metrics are shown to staff and to this machine; METRICS_PUBLIC shows them to all.\n",
            status=403,
            content_type="text/plain",
        )
    for status, number in _documents_by_status().items():
        DOCUMENTS.labels(status=status).set(number)
    for kind, number in last_counts().items():
        INCONSISTENCIES.labels(kind=kind).set(number)
    for (judge, status), number in _judgements().items():
        JUDGEMENTS.labels(judge=judge, status=status).set(number)
    ALERTS.set(open_alerts().count())
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


def _documents_by_status() -> dict[str, int]:
    counted = dict(Document.objects.order_by().values_list("status").annotate(Count("pk")))
    return {status: counted.get(status, 0) for status in Document.Status.values}


def _judgements() -> dict[tuple[str, str], int]:
    """How many there are for every pair of judge and status, also where there are none."""
    rows = Judgement.objects.order_by().values_list("judge", "status").annotate(Count("pk"))
    counted = {(judge, status): number for judge, status, number in rows}
    return {pair: counted.get(pair, 0) for pair in product(Judgement.Judge.values, Judgement.Status.values)}


def _from_this_machine(request: HttpRequest) -> bool:
    """Whether the request comes from this machine itself; what a proxy on this machine passes on does not."""
    if any(header in request.headers for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP")):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


def _is_staff(request: HttpRequest) -> bool:
    return request.user.is_authenticated and request.user.is_active and request.user.is_staff
