"""`docs/alerts.yml` names metrics and labels that exist, and calls late what the site itself calls so."""

import re

import pytest
import yaml
from django.conf import settings
from prometheus_client import REGISTRY

import ragsite.urls  # noqa: F401  (imports all that counts)
from ragsite.operations.readiness import LATE_AFTER

RULES = [
    rule
    for group in yaml.safe_load((settings.BASE_DIR / "docs/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
# What Prometheus itself adds, and the buckets of a histogram.
OTHER_LABELS = {"instance", "job", "le"}
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}


def labels_by_metric():
    return {
        collector._name + suffix: set(collector._labelnames)
        for collector in list(REGISTRY._collector_to_names)
        if hasattr(collector, "_labelnames")
        for suffix in SUFFIXES.get(collector._type, [])
    }


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_metrics_and_labels_exist(rule):
    existing = labels_by_metric()
    used = re.findall(r"\b(ragsite_\w+)(?:\{([^}]*)\})?", rule["expr"])
    assert used
    labels = set()
    for name, matchers in used:
        assert name in existing, name
        assert set(re.findall(r"(\w+)\s*=", matchers)) <= existing[name]
        labels |= existing[name]
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in group.split(",")}
    assert grouped <= labels | OTHER_LABELS
    # A sentence that names a label has it: aggregation keeps those that it groups by alone.
    told = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    is_aggregated = re.search(r"\b(sum|max)\b", rule["expr"])
    assert told <= (grouped if is_aggregated else labels | OTHER_LABELS)
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}


def test_queues_are_late_when_the_site_says_so():
    [expression] = [rule["expr"] for rule in RULES if rule["alert"] == "RagsiteQueueLate"]
    said = {queue: float(seconds) for queue, seconds in re.findall(r'queue="(\w+)"\}\) > (\d+)', expression)}
    assert said == {queue: late.total_seconds() for queue, late in LATE_AFTER.items()}
