"""Counters that /metrics shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from prometheus_client import Counter, Gauge, Histogram

from retrieval.types import Retriever


def latest_gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """What is the same whichever process of the site looks: the value that was set last counts for all of them."""
    return Gauge(name, documentation, labels, multiprocess_mode="mostrecent")


def begin_at_zero(counter: Counter, *values: Iterable[str]) -> None:
    """Show the counter from the start for these values of its labels: ``increase()`` does not see a first event that
    also is the first sample.
    """
    for labels in product(*values):
        counter.labels(*labels)


def counter(name: str, documentation: str, **labels: Iterable[str]) -> Counter:
    """A counter whose labels have these values, and no others."""
    made = Counter(name, documentation, list(labels))
    begin_at_zero(made, *labels.values())
    return made


SEARCH_SECONDS = Histogram(
    "ragsite_search_seconds",
    "Time of one search, by the method that ranked.",
    ["method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REFUSED_SEARCHES = Counter("ragsite_refused_searches", "Searches that were refused because too many ran.")
QUERY_ENCODINGS = counter(
    "ragsite_query_encodings",
    "Questions turned into vectors: by the embedder, or from memory.",
    source=("embedder", "memory"),
)
RETRIEVER_FAILURES = counter(
    "ragsite_search_leg_failures", "Retrievers that failed or were late; the other one answered.", leg=Retriever
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
PAGES_RECOGNISED = counter(
    "ragsite_pages_recognised",
    "Pages of scans that were given to text recognition, by result.",
    result=("recognised", "failed"),
)
PAGES_NOT_DRAWN = Counter("ragsite_pages_not_drawn", "Pages of PDF files that were damaged or took too much.")
FILES_BEYOND_LIMITS = counter(
    "ragsite_ingest_files_beyond_limits",
    "Files rejected for what reading them took.",
    limit=("time", "memory", "output", "crash"),
)
