from __future__ import annotations

from prometheus_client import Counter, Histogram

from core.metrics import get_counter
from retrieval.types import Retriever

SEARCH_SECONDS = Histogram(
    "ragsite_search_seconds",
    "Time of one search, by the method that ranked.",
    ["method"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
REFUSED_SEARCHES = Counter("ragsite_refused_searches", "Searches that were refused because too many ran.")
QUERY_ENCODINGS = get_counter(
    "ragsite_query_encodings",
    "Questions turned into vectors: by the embedder, or from memory.",
    source=("embedder", "memory"),
)
RETRIEVER_FAILURES = get_counter(
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
PAGES_RECOGNISED = get_counter(
    "ragsite_pages_recognised",
    "Pages of scans that were given to text recognition, by result.",
    result=("recognised", "failed"),
)
PAGES_NOT_DRAWN = Counter("ragsite_pages_not_drawn", "Pages of PDF files that were damaged or took too much.")
FILES_BEYOND_LIMITS = get_counter(
    "ragsite_ingest_files_beyond_limits",
    "Files rejected for what reading them took.",
    limit=("time", "memory", "output", "crash"),
)
