from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from prometheus_client import Counter, Gauge


def build_latest_value_gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    return Gauge(name, documentation, labels, multiprocess_mode="mostrecent")


def start_at_zero(counter: Counter, *values: Iterable[str]) -> None:
    """Create the counter's time series for all label values, so that ``increase()`` counts each first event."""
    for labels in product(*values):
        counter.labels(*labels)


def get_counter(name: str, documentation: str, **labels: Iterable[str]) -> Counter:
    made = Counter(name, documentation, list(labels))
    start_at_zero(made, *labels.values())
    return made


BREAKER_OPEN = Gauge(
    "ragsite_breaker_open",
    "1 while a part that failed repeatedly is left alone, by one web process at least.",
    ["part"],
    multiprocess_mode="livemax",
)
