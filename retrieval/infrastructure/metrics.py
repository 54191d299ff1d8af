"""Counters that /metrics shows."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import Counter, Gauge, Histogram


def latest_gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """What is the same whichever process of the site looks: the value that was set last counts for all of them."""
    return Gauge(name, documentation, labels, multiprocess_mode="mostrecent")


SEARCH_SECONDS = Histogram(
    "ragsite_search_seconds",
    "Time of one search, by the method that ranked.",
    ["method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REFUSED_SEARCHES = Counter("ragsite_refused_searches", "Searches that were refused because too many ran.")
QUERY_ENCODINGS = Counter(
    "ragsite_query_encodings", "Questions turned into vectors: by the embedder, or from memory.", ["source"]
)
RETRIEVER_FAILURES = Counter(
    "ragsite_search_leg_failures", "Retrievers that failed or were late; the other one answered.", ["leg"]
)
RERANK_FAILURES = Counter(
    "ragsite_search_rerank_failures", "Rerankers that failed or were late; the fused order stood.", ["reranker"]
)
REFORMULATION_FAILURES = Counter(
    "ragsite_search_reformulation_failures", "Questions that the model did not reformulate."
)
PROFILE_FAILURES = Counter(
    "ragsite_search_profile_failures", "Searches for which the published profile could not be read."
)
BREAKER_OPEN = Gauge(
    "ragsite_breaker_open",
    "1 while a part that failed repeatedly is left alone, by one web process at least.",
    ["part"],
    multiprocess_mode="livemax",
)
PAGES_RECOGNISED = Counter(
    "ragsite_pages_recognised",
    "Pages of scans that were given to text recognition, by result: recognised, failed.",
    ["result"],
)
PAGES_NOT_DRAWN = Counter("ragsite_pages_not_drawn", "Pages of PDF files that were damaged or took too much.")
FILES_BEYOND_LIMITS = Counter(
    "ragsite_ingest_files_beyond_limits",
    "Files rejected for what reading them took: time, memory, output or crash.",
    ["limit"],
)
