"""One index check: find, repair if asked to, and keep the result where web processes find it."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, replace

from retrieval.models.index_check import IndexCheck
from retrieval.reconciliation.checks import DESCRIPTIONS, Inconsistency, ProblemKind, check
from retrieval.reconciliation.repairs import repair_found

logger = logging.getLogger(__name__)

CHECKS_KEPT = 30


def reconcile(*, repair: bool = False) -> list[Inconsistency]:
    """What :func:`check` found, each with whether it was repaired; the result is kept as an :class:`IndexCheck`.

    With ``repair``, what was found is repaired and checked again: ``repaired`` is what the second check says.

    Raises: ImproperEmbedder, and EmbeddingFailed when passages without a vector could not be embedded.
    """
    started = time.perf_counter()
    found = check()
    if repair and found:
        repair_found(found)
        left = {(kept.kind, kept.collection) for kept in check()}
        found = [replace(before, repaired=(before.kind, before.collection) not in left) for before in found]
    for inconsistency in found:
        place = f" in {inconsistency.collection}" if inconsistency.collection else ""
        outcome = "repaired" if inconsistency.repaired else "not repaired"
        description = DESCRIPTIONS[inconsistency.kind]
        logger.warning("Index check: %d %s%s, %s.", inconsistency.count, description, place, outcome)
    if not found:
        logger.info("Index check: everything agrees.")
    IndexCheck.objects.create(
        seconds=time.perf_counter() - started, inconsistencies=[asdict(inconsistency) for inconsistency in found]
    )
    outdated = list(IndexCheck.objects.values_list("pk", flat=True)[CHECKS_KEPT:])
    IndexCheck.objects.filter(pk__in=outdated).delete()
    return found


def last_counts() -> dict[str, int]:
    """What the last check found and did not repair, by kind; 0 for what it did not find, empty before the first one."""
    last = IndexCheck.objects.first()
    if last is None:
        return {}
    counts = dict.fromkeys((kind.value for kind in ProblemKind), 0)
    for inconsistency in last.inconsistencies:
        if not inconsistency["repaired"]:
            kind = inconsistency["kind"]
            counts[kind] = counts.get(kind, 0) + inconsistency["count"]
    return counts
