"""Health endpoints: whether the process lives, whether the site can answer, and its metrics.

`/readyz` returns 200 while questions can be answered. Faults that do not prevent this are under `degraded`.
"""

from __future__ import annotations

import ipaddress
from itertools import product

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.module_loading import import_string
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from rest_framework.exceptions import APIException, PermissionDenied
from rest_framework.request import Request

from core import disk
from core.key_limits import get_limits
from core.metrics import build_latest_value_gauge
from core.readiness import CheckGroup, CheckResult, Health, collect_check_results, list_check_groups
from evaluation.models import Judgement
from ragsite.models import SlackQuestion
from ragsite.operations import shared_metrics
from ragsite.operations.queues import count_documents_by_status, count_queued_work
from ragsite.processes.supervision import read_restarts
from retrieval.documents.reconciliation import read_inconsistency_counts
from retrieval.index.distribution import list_nodes
from retrieval.models import Document
from retrieval.sources.states import count_sources_by_state

DOCUMENTS = build_latest_value_gauge("ragsite_documents", "Documents, by status.", ["status"])
LEFT_OUT = build_latest_value_gauge(
    "ragsite_documents_not_wholly_read", "Documents of whose file something was not read, by kind.", ["kind"]
)
INCONSISTENCIES = build_latest_value_gauge(
    "ragsite_index_inconsistencies", "What the last index check found and is not repaired, by kind.", ["kind"]
)
JUDGEMENTS = build_latest_value_gauge(
    "ragsite_judgements", "Judgements of answers, by judge and status.", ["judge", "status"]
)
SOURCES = build_latest_value_gauge("ragsite_sources", "Sources of documents, by state.", ["state"])
DISK_FREE = build_latest_value_gauge(
    "ragsite_disk_free_bytes", "Room that is left on each disk that the site writes to.", ["path"]
)
NODE_UP = build_latest_value_gauge(
    "ragsite_database_node_up", "Whether a node of a distributed database answers.", ["node"]
)
DATABASE_UP = build_latest_value_gauge(
    "ragsite_database_up", "Whether the database answered when it was asked for these figures."
)
RESTARTS = build_latest_value_gauge(
    "ragsite_process_restarts", "How often a process was started again, and why.", ["process", "reason"]
)
QUEUE_LENGTH = build_latest_value_gauge(
    "ragsite_queue_length", "What waits and could be begun now, by queue.", ["queue"]
)
QUEUE_AGE = build_latest_value_gauge(
    "ragsite_queue_age_seconds", "How long the oldest of what waits has waited, by queue.", ["queue"]
)
SLACK_QUESTIONS = build_latest_value_gauge(
    "ragsite_slack_questions", "Questions from Slack that are kept, by status.", ["status"]
)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Respond with 200, without a query: a failed database is no reason to kill this process."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    findings = collect_check_results(list_check_groups())
    ready = all(finding.state is not Health.FAILED for finding in findings.values())
    degraded = [name for name, finding in findings.items() if finding.state is not Health.OK]
    body: dict[str, object] = {
        "status": ("degraded" if degraded else "ready") if ready else "unavailable",
        "degraded": degraded,
        "checks": {name: {"state": found.state, "detail": found.detail} for name, found in findings.items()},
    }
    if ready:
        body["documents"] = findings["worker"].counts
        body["queues"] = findings["queue"].counts
    return JsonResponse(body, status=200 if ready else 503)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    try:
        if not _may_see_metrics(request):
            raise PermissionDenied("Metrics are for this machine, staff, and their keys with the scope `admin`.")
    except APIException as error:  # The caller has no permission, or an unknown key.
        return HttpResponse(f"{error.detail}\n", status=error.status_code, content_type="text/plain")
    DATABASE_UP.set(collect_check_results([_FIGURES])["figures"].state is Health.OK)
    for process, number in read_restarts(settings.DATA_DIR).items():
        RESTARTS.labels(process=process, reason="died").set(number)
    for room in disk.list_free_space():
        DISK_FREE.labels(path=str(room.path)).set(room.free_bytes)
    return HttpResponse(generate_latest(shared_metrics.build_registry()), content_type=CONTENT_TYPE_LATEST)


_FIGURES = CheckGroup(in_database=True)


@_FIGURES.check("figures")
def _update_database_metrics() -> CheckResult:
    """Update the metrics that are counted in the database."""
    for status, number in count_documents_by_status().items():
        DOCUMENTS.labels(status=status).set(number)
    for kind, number in Document.objects.count_left_out_kinds().items():
        LEFT_OUT.labels(kind=kind).set(number)
    for kind, number in read_inconsistency_counts().items():
        INCONSISTENCIES.labels(kind=kind).set(number)
    rows = Judgement.objects.order_by().values_list("judge", "status").annotate(Count("pk"))
    judgements = {(judge, status): number for judge, status, number in rows}
    for judge, status in product(Judgement.Judge.values, Judgement.Status.values):
        JUDGEMENTS.labels(judge=judge, status=status).set(judgements.get((judge, status), 0))
    if settings.SLACK_BOT_TOKEN:
        asked = dict(SlackQuestion.objects.order_by().values_list("status").annotate(Count("pk")))
        for status in SlackQuestion.Status.values:
            SLACK_QUESTIONS.labels(status=status).set(asked.get(status, 0))
    for state, number in count_sources_by_state().items():
        SOURCES.labels(state=state).set(number)
    for node in list_nodes():
        NODE_UP.labels(node=node.name).set(node.is_reachable)
    for waiting in count_queued_work():
        QUEUE_LENGTH.labels(queue=waiting.name).set(waiting.length)
        QUEUE_AGE.labels(queue=waiting.name).set(waiting.oldest_seconds)
    return CheckResult()


def _may_see_metrics(request: HttpRequest) -> bool:
    if settings.METRICS_PUBLIC or _is_from_this_machine(request):
        return True
    user = request.user
    if "Authorization" in request.headers:
        user = Request(request, authenticators=[import_string(settings.API_KEY_AUTHENTICATION)()]).user
    limits = get_limits(user)
    return user.is_active and user.is_staff and (limits is None or limits.may_use("metrics"))


def _is_from_this_machine(request: HttpRequest) -> bool:
    if any(header in request.headers for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP")):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
