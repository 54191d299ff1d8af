from __future__ import annotations

import logging
from importlib.util import find_spec

from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.db import connection

from core.exceptions import FilesUnavailable
from core.readiness import DATABASE, MACHINE, CheckGroup, CheckResult, Health, add_group
from retrieval.documents import sandbox
from retrieval.documents.reconciliation import read_inconsistency_counts
from retrieval.documents.storage import get_document_storage
from retrieval.index import embedder_choice
from retrieval.index.active_embedder import is_searching_old_vectors
from retrieval.index.closeness import describe_missing_calibration, find_calibration
from retrieval.index.distribution import list_nodes as cluster_nodes
from retrieval.models import Draft, Embedder
from retrieval.search.profiles.profiles import active_profile
from retrieval.types import SearchMethod

logger = logging.getLogger(__name__)

# Older pgvector versions can corrupt an index. Versions below PGVECTOR_NEEDED have no iterative index scan.
PGVECTOR_WANTED = (0, 8, 6)
PGVECTOR_NEEDED = (0, 8, 0)
_FILES = add_group(CheckGroup())


@DATABASE.check("pgvector")
def check_pgvector() -> CheckResult:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        row = cursor.fetchone()
    if row is None:
        return CheckResult(Health.FAILED, "The extension vector is not installed: run `manage.py migrate`.")
    version = tuple(int(part) for part in row[0].split(".") if part.isdecimal())
    recommended = ".".join(map(str, PGVECTOR_WANTED))
    if version < PGVECTOR_NEEDED:
        return CheckResult(Health.FAILED, f"pgvector {row[0]} is too old: install {recommended} or newer.")
    if version < PGVECTOR_WANTED:
        return CheckResult(Health.DEGRADED, f"pgvector {row[0]} has known faults: install {recommended} or newer.")
    return CheckResult(detail=row[0])


@DATABASE.check("nodes")
def check_nodes() -> CheckResult:
    """Check that all nodes of a distributed database answer."""
    known = cluster_nodes()
    lost = [node.name for node in known if not node.is_reachable]
    if lost:
        logger.error("Nodes of the database do not answer: %s", ", ".join(lost))
        return CheckResult(Health.FAILED, f"{len(lost)} of {len(known)} nodes of the database do not answer.")
    return CheckResult(detail=f"{len(known)} nodes." if known else "")


# This state is reported if the embedder hangs. It is stored in advance, because a query would take too long.
_without_embedder = Health.DEGRADED
_EMBEDDER = add_group(CheckGroup(hung=lambda: _without_embedder))


@_EMBEDDER.check("embedder", is_remembered=True)
def check_embedder() -> CheckResult:
    """Check the embedder, without which searches use keywords alone or fail."""
    global _without_embedder
    is_alone = not settings.RETRIEVAL_HYBRID_ENABLED or active_profile().settings.method is SearchMethod.VECTOR
    state = _without_embedder = Health.FAILED if is_alone else Health.DEGRADED
    try:
        configured = embedder_choice.get_embedder()
        configured.embed_query("ready")
    except Exception:
        logger.exception("The embedder does not work.")
        return CheckResult(state, "The embedder does not work; the log says why.")
    active = Embedder.objects.filter(is_active=True).first()
    if active is not None and (active.name, active.dimension) != (configured.name, configured.dimension):
        if is_searching_old_vectors(configured.name):
            return CheckResult(Health.DEGRADED, "Another embedder is in service: restart the site with its settings.")
        return CheckResult(state, "The stored vectors are another embedder's: run `manage.py reembed`.")
    if find_calibration(configured.name) is None:
        return CheckResult(detail=describe_missing_calibration(configured.name))
    return CheckResult(detail=embedder_choice.describe_embedder_choice() or configured.name)


@DATABASE.check("search_profile")
def check_search_profile() -> CheckResult:
    """Check that the published search profile can be read, and report if RETRIEVAL_HYBRID_ENABLED is false."""
    profile = active_profile()
    if profile.error:
        return CheckResult(
            Health.DEGRADED, "The published search profile cannot be read, the built-in one is used; the log says why."
        )
    if not settings.RETRIEVAL_HYBRID_ENABLED:
        return CheckResult(detail=f"{profile}, by vectors alone: RETRIEVAL_HYBRID_ENABLED is false.")
    return CheckResult(detail=profile.name)


@DATABASE.check("drafts")
def check_failing_drafts() -> CheckResult:
    """Report drafts (unpublished copies of collections) whose copying or deletion failed more than twice."""
    if failing := Draft.unfinished().exclude(error="").filter(attempts__gte=3).count():
        return CheckResult(
            Health.DEGRADED, f"Drafts that fail to be copied or cleared away: {failing}; the log says why."
        )
    return CheckResult()


@_FILES.check("files", is_remembered=True)
def check_files() -> CheckResult:
    """Check the storage of uploaded files. Questions can be answered without it."""
    storage = get_document_storage()
    if not isinstance(storage, FileSystemStorage):
        try:
            storage.check()  # type: ignore[attr-defined]
        except (FilesUnavailable, FileNotFoundError):
            return CheckResult(
                Health.DEGRADED, "The storage of the files does not answer: nothing can be uploaded or read."
            )
    return CheckResult()


@MACHINE.check("sandbox")
def check_file_sandbox() -> CheckResult:
    state = sandbox.read_sandbox_state()
    if state.failure:
        return CheckResult(Health.DEGRADED, "The process that reads files could not be started; the log says why.")
    if state.missing_guards:
        read = "No file is read" if settings.SANDBOX_REQUIRED else "Files are read without these guards"
        return CheckResult(Health.DEGRADED, f"{read}, which this machine lacks: {', '.join(state.missing_guards)}.")
    if not find_spec("xberg"):
        return CheckResult(
            Health.DEGRADED,
            "The package xberg is not installed: old Office files, RTF, notebooks and markup are not read.",
        )
    return CheckResult()


@DATABASE.check("indexes")
def check_indexes() -> CheckResult:
    """Report whether the last `manage.py reconcile` found faults in passages, vectors or statistics."""
    if sum(read_inconsistency_counts().values()):
        return CheckResult(Health.DEGRADED, "The last index check found faults: run `manage.py reconcile --repair`.")
    return CheckResult()
