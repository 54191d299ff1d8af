"""The dashboard's figures, kept for a minute where they take long to count."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import date, datetime

from django.core.cache import caches
from django.utils import timezone

from evaluation.dashboard.activity import Activity, activity
from evaluation.dashboard.scope import DashboardScope
from evaluation.dashboard.scores import Distribution, distributions

KEPT_SECONDS = 60
# What is counted sooner is counted anew for every look.
LONG_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Figures:
    """``days`` and their ``total``, and the distributions of scores, as of one moment."""

    days: dict[date, Activity]
    total: Activity
    scores: list[Distribution]
    as_of: datetime


def figures(scope: DashboardScope) -> Figures:
    """The figures of the scope, at most a minute old: of the answers that its viewer may read."""
    is_open = scope.open_sql()
    collection = scope.collection.pk if scope.collection else ""
    whose = hashlib.sha256(is_open.encode()).hexdigest()
    key = f"figures:{scope.since:%Y-%m-%d}:{scope.days}:{collection}:{timezone.get_current_timezone_name()}:{whose}"
    kept: Figures | None = caches["process"].get(key)
    if kept is not None:
        return kept
    started = time.perf_counter()
    found = Figures(*activity(scope, is_open), distributions(scope, is_open), scope.until)
    if time.perf_counter() - started >= LONG_SECONDS:
        caches["process"].set(key, found, KEPT_SECONDS)
    return found
