"""Limits on the number of requests, shared by all web processes."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DatabaseError, connection
from django.utils import timezone
from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle

from core import disk
from core.api.callers import find_address
from core.database import NOT_WAITING
from retrieval.models import RequestCount

logger = logging.getLogger(__name__)

_FORGOTTEN_AFTER = timedelta(days=2)
# All requests of one caller lock the same row. They lock it briefly: the commit does not wait for the disk.
_COUNT = f"""
    INSERT INTO retrieval_requestcount AS counted (key, calls, since)
    SELECT %(key)s, 1, %(now)s WHERE {NOT_WAITING}
    ON CONFLICT (key) DO UPDATE SET
        calls = CASE WHEN counted.since <= %(before)s THEN 1 ELSE least(counted.calls, %(limit)s) + 1 END,
        since = CASE WHEN counted.since <= %(before)s THEN EXCLUDED.since ELSE counted.since END
    RETURNING calls, since
"""


class FixedWindowThrottle(SimpleRateThrottle):
    """A limit on the requests in a window of time, which begins with its first request.

    One SQL statement counts and decides, so that simultaneous requests cannot all pass.
    """

    num_requests: int | None
    duration: int | None
    _wait_seconds = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        if self.rate is None:
            return True
        self.key = self.get_cache_key(request, view)
        if self.key is None:
            return True
        now = datetime.fromtimestamp(self.timer(), UTC)
        window = timedelta(seconds=self.duration or 0)
        counting: dict[str, str | datetime | int | None] = {
            "key": self.key[:200],
            "now": now,
            "before": now - window,
            "limit": self.num_requests,
        }
        try:
            with connection.cursor() as cursor:
                cursor.execute(_COUNT, counting)
                calls, since = cursor.fetchone()
        except DatabaseError as error:
            if not disk.is_disk_full(error):
                raise
            # Requests must still be answered if a full disk prevents counting.
            logger.warning("A request was not counted against its limit: %s", error)
            return True
        self._wait_seconds = max(0.0, (since + window - now).total_seconds())
        return bool(calls <= (self.num_requests or 0))

    def get_ident(self, request: Any) -> str:
        return find_address(request)

    def wait(self) -> float:
        return self._wait_seconds


class ScopedRates(ScopedRateThrottle, FixedWindowThrottle):
    """A throttle whose limit the view names in `throttle_scope`."""


def forget_old_counts() -> int:
    return RequestCount.objects.filter(since__lt=timezone.now() - _FORGOTTEN_AFTER).delete()[0]
