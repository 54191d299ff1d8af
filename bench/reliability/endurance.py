"""Ask for thousands of answers, and measure the growth of memory, open files, threads and database connections.

.venv/bin/python -m bench.reliability.endurance [--answers 2000] [--port 8233]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from statistics import fmean
from typing import NamedTuple

import psutil
from psycopg import connect

from bench.reliability.running_site import (
    BAR,
    RunningSite,
    format_seconds,
    generate_distinct_questions,
    percentile,
    running_site,
)
from bench.reporting import format_markdown_table

# The first answers load models and fill caches, so this share of them is not compared.
WARM_UP_SHARE = 0.2
SAMPLE_EVERY = 20
MOST_GROWTH_SHARE = 0.10
MOST_GROWTH_MIB = 20.0
ROLES = ("web", "worker", "worker child", "scheduler", "serve", "postgres")


class ProcessSample(NamedTuple):
    rss_mib: float
    files: int
    threads: int


def measure_processes(site: RunningSite, role: str) -> ProcessSample:
    """Return the memory, open files and threads of all processes with a ``role`` such as "worker".

    Shared memory of PostgreSQL is not counted.
    """
    found = site.find_processes(role)
    if role == "postgres":
        found += [child for process in found for child in process.children()]
    rss, files, threads = 0.0, 0, 0
    for process in found:
        try:
            memory = process.memory_info()
            rss += (memory.rss - (memory.shared if role == "postgres" else 0)) / 2**20
            files += process.num_fds()
            threads += process.num_threads()
        except psutil.Error:
            continue
    return ProcessSample(rss, files, threads)


def count_database_connections(site: RunningSite) -> int:
    with connect(site.postgres.url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
    return int(row[0]) - 1 if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--port", type=int, default=8233)
    given = parser.parse_args()
    samples: dict[str, list[ProcessSample]] = defaultdict(list)
    times: list[float] = []
    connections: list[int] = []
    errors: Counter[str] = Counter()
    questions = generate_distinct_questions("endurance ")
    with running_site(given.port) as site:
        for number in range(1, given.answers + 1):
            started = time.monotonic()
            reply = site.post("/api/v1/ask/", {"question": next(questions), "anew": True})
            times.append(time.monotonic() - started)
            if reply.status != 200:
                errors[f"status {reply.status}: {json.dumps(reply.body)[:100]}"] += 1
            if number % SAMPLE_EVERY == 0 or number == given.answers:
                for role in ROLES:
                    samples[role].append(measure_processes(site, role))
                connections.append(count_database_connections(site))
                told = f"web {samples['web'][-1].rss_mib:.0f} MiB, {connections[-1]} connections"
                BAR.show(told, number, given.answers, "answers")
    rows, has_grown = [], False
    for role, taken in samples.items():
        compared = taken[int(len(taken) * WARM_UP_SHARE) :]
        quarter = max(1, len(compared) // 4)
        first, last = (fmean(each.rss_mib for each in part) for part in (compared[:quarter], compared[-quarter:]))
        is_flat = last - first <= max(MOST_GROWTH_MIB, MOST_GROWTH_SHARE * first)
        has_grown = has_grown or not is_flat
        files, threads = (
            f"{getattr(compared[-1], name)} (at most {max(getattr(each, name) for each in compared)})"
            for name in ("files", "threads")
        )
        rows.append([role, f"{first:.0f} MiB", f"{last:.0f} MiB", files, threads, "yes" if is_flat else "**no**"])
    print(format_markdown_table(["process", "first quarter", "last quarter", "open files", "threads", "flat"], rows))
    quarter = max(1, len(times) // 4)
    early, late = (format_seconds(percentile(part, 95)) for part in (times[:quarter], times[-quarter:]))
    print(
        f"\n{len(times)} answers, {errors.total()} errors; {len(times) / sum(times):.1f} a second. p95 {early} in the "
        f"first quarter, {late} in the last; database connections at most {max(connections)}, at the end "
        f"{connections[-1]}."
    )
    for error, number in errors.most_common(10):
        print(f"- {number} x {error}")
    raise SystemExit(1 if errors or has_grown else 0)


if __name__ == "__main__":
    main()
