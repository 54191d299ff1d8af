"""Counters that /metrics shows."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

SEARCH_SECONDS = Histogram(
    "ragsite_search_seconds",
    "Time of one search, by the method that ranked.",
    ["method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
LEG_FAILURES = Counter("ragsite_search_leg_failures", "Legs that failed or were late; the other one answered.", ["leg"])
RERANK_FAILURES = Counter(
    "ragsite_search_rerank_failures", "Rerankers that failed or were late; the fused order stood.", ["reranker"]
)
