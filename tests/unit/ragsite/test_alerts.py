"""`docs/alerts.yml` names metrics and labels that exist, and calls late what the site itself calls so."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from django.conf import settings
from prometheus_client import REGISTRY

import ragsite.urls  # noqa: F401  (imports all that counts)
from ragsite.operations.queues import LATE_AFTER

RULES = [
    rule
    for group in yaml.safe_load((settings.BASE_DIR / "docs/alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
# Prometheus itself adds these, and the buckets of a histogram.
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


SHOWN = """
import django, sys
django.setup()
import ragsite.urls
from pathlib import Path
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.metrics import Counter
from ragsite.operations import shared_metrics
if sys.argv[1] == "shared":
    shared_metrics.share_metrics_between_processes(Path(sys.argv[2]))
print(*(each._name for each in set(REGISTRY._names_to_collectors.values()) if isinstance(each, Counter)))
print(generate_latest(shared_metrics.build_registry()).decode())
shared_metrics.remove_shared_metrics()
"""


@pytest.mark.parametrize("how", ["shared", "alone"])
def test_every_counter_is_shown_at_zero_before_its_first_event(how, tmp_path):
    """Otherwise `increase()` misses the first event: the counter has no earlier value to compare with."""
    command = [sys.executable, "-c", SHOWN, how, str(tmp_path)]
    environment = {**os.environ, "RERANK_URL": "http://127.0.0.1:9/rerank"}
    said = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, cwd=settings.BASE_DIR, env=environment, timeout=60, check=True
    )
    names, shown = said.stdout.split("\n", 1)
    counters = [name for name in names.split() if name.startswith("ragsite_")]
    assert len(counters) > 15
    for name in counters:
        values = re.findall(rf"^{name}_total(?:{{.*}})? (\S+)$", shown, re.M)
        assert values, f"{name} is not shown"
        assert set(values) == {"0.0"}
    for sample in (
        'ragsite_disk_full_total{reason="error"}',
        'ragsite_sign_in_refusals_total{reason="busy"}',
        'ragsite_answers_total{refused="false",status="failed"}',
        'ragsite_answers_out_of_time_total{stage="writing"}',
        'ragsite_search_leg_failures_total{leg="vector"}',
    ):
        assert f"{sample} 0.0" in shown


PROMTOOL_TEST = {
    "rule_files": [str(settings.BASE_DIR / "docs" / "alerts.yml")],
    "evaluation_interval": "1m",
    "tests": [
        {
            "interval": "1m",
            "input_series": [
                {"series": 'ragsite_disk_full_total{reason="error"}', "values": "0x10 1x30"},
                {"series": 'ragsite_queue_age_seconds{queue="deliveries"}', "values": "0x10 4000x30"},
            ],
            "alert_rule_test": [
                {"eval_time": "5m", "alertname": "RagsiteDiskFull", "exp_alerts": []},
                {
                    "eval_time": "12m",
                    "alertname": "RagsiteDiskFull",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "critical"},
                            "exp_annotations": {"summary": "Something was not saved, because the disk is full."},
                        }
                    ],
                },
                {
                    "eval_time": "12m",
                    "alertname": "RagsiteQueueLate",
                    "exp_alerts": [
                        {
                            "exp_labels": {"severity": "warning", "queue": "deliveries"},
                            "exp_annotations": {
                                "summary": "The oldest of the queue deliveries has waited for 1h 6m 40s; "
                                "look for its worker."
                            },
                        }
                    ],
                },
            ],
        }
    ],
}


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_takes_the_rules_and_they_fire_at_the_first_event(tmp_path):
    (tmp_path / "test.yml").write_text(yaml.safe_dump(PROMTOOL_TEST))
    for command in (["check", "rules", str(settings.BASE_DIR / "docs/alerts.yml")], ["test", "rules", "test.yml"]):
        ran = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_queues_are_late_when_the_site_says_so():
    [expression] = [rule["expr"] for rule in RULES if rule["alert"] == "RagsiteQueueLate"]
    said = {queue: float(seconds) for queue, seconds in re.findall(r'queue="(\w+)"\}\) > (\d+)', expression)}
    assert said == {queue: late.total_seconds() for queue, late in LATE_AFTER.items()}
