"""Counters that /metrics shows."""

from __future__ import annotations

from prometheus_client import Counter

ANSWERS = Counter("ragsite_answers", "Finished answers.", ["status", "refused"])
