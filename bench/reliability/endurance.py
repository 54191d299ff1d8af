"""Thousands of answers in a row, and what grows meanwhile: memory, open files, threads, database connections.

.venv/bin/python -m bench.reliability.endurance [--answers 2000] [--minutes 120] [--port 8233]
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass

import psutil
from psycopg import connect

from bench.reliability.running_site import RunningSite, distinct_questions, percentile, progress, running_site, seconds
from bench.reporting import table

# The first answers load models and fill caches; they are not among what is compared.
WARM_UP_SHARE = 0.2
SAMPLE_EVERY = 20
MOST_GROWTH_SHARE = 0.10
MOST_GROWTH_MIB = 20.0
ROLES = ("web", "worker", "worker child", "scheduler", "serve", "postgres")


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """A moment of all the processes in a role, after so many answers."""

    answers: int
    rss_mib: float
    files: int
    threads: int


@dataclass(frozen=True, slots=True)
class Growth:
    """How one role's memory went, from the first to the last quarter of what was sampled behind the warm-up."""

    role: str
    first_mib: float
    last_mib: float
    mib_per_thousand: float
    most_files: int
    last_files: int
    most_threads: int
    last_threads: int

    @property
    def is_flat(self) -> bool:
        return self.last_mib - self.first_mib <= max(MOST_GROWTH_MIB, MOST_GROWTH_SHARE * self.first_mib)


def sample(site: RunningSite, role: str, answers: int) -> ProcessSample | None:
    """None while there is no process in the role. Of PostgreSQL's processes, what they do not share is counted."""
    rss, files, threads, found = 0.0, 0, 0, 0
    for process in _with_servers(site, role):
        try:
            memory = process.memory_info()
            rss += (memory.rss - (memory.shared if role == "postgres" else 0)) / 2**20
            files += process.num_fds()
            threads += process.num_threads()
            found += 1
        except psutil.Error:
            continue
    return ProcessSample(answers, rss, files, threads) if found else None


def _with_servers(site: RunningSite, role: str) -> list[psutil.Process]:
    found = site.find(role)
    return found + [child for process in found for child in process.children()] if role == "postgres" else found


def growth(role: str, samples: list[ProcessSample], answers: int) -> Growth:
    compared = [each for each in samples if each.answers >= answers * WARM_UP_SHARE] or samples
    quarter = max(1, len(compared) // 4)
    first, last = compared[:quarter], compared[-quarter:]
    return Growth(
        role,
        sum(each.rss_mib for each in first) / quarter,
        sum(each.rss_mib for each in last) / quarter,
        _slope([(each.answers, each.rss_mib) for each in compared]) * 1000,
        max(each.files for each in compared),
        compared[-1].files,
        max(each.threads for each in compared),
        compared[-1].threads,
    )


def _slope(points: list[tuple[int, float]]) -> float:
    """By least squares; 0 of fewer than two points."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def endure(
    site: RunningSite, answers: int, seconds_limit: float
) -> tuple[list[Growth], list[float], list[int], Counter[str]]:
    """The growth of each role, the seconds of each answer, the database's connections, and what went wrong."""
    samples: dict[str, list[ProcessSample]] = defaultdict(list)
    times: list[float] = []
    connections: list[int] = []
    errors: Counter[str] = Counter()
    questions = distinct_questions("endurance ")
    began = time.monotonic()
    for number in range(1, answers + 1):
        started = time.monotonic()
        if started - began > seconds_limit:
            break
        reply = site.post("/api/v1/ask/", {"question": next(questions), "anew": True})
        times.append(time.monotonic() - started)
        if reply.status != 200:
            errors[f"status {reply.status}: {json.dumps(reply.body)[:100]}"] += 1
        if number % SAMPLE_EVERY == 0 or number == answers:
            for role in ROLES:
                if (found := sample(site, role, number)) is not None:
                    samples[role].append(found)
            connections.append(_connections(site))
            progress(number, answers, f"web {samples['web'][-1].rss_mib:.0f} MiB, {connections[-1]} connections")
    return [growth(role, samples[role], len(times)) for role in ROLES if samples[role]], times, connections, errors


def _connections(site: RunningSite) -> int:
    with connect(site.postgres.url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        ).fetchone()
    return int(row[0]) - 1 if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=120.0, help="After which no more are asked.")
    parser.add_argument("--port", type=int, default=8233)
    parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
    given = parser.parse_args()
    with running_site(given.port) as site:
        roles, times, connections, errors = endure(site, given.answers, given.minutes * 60)
    quarter = max(1, len(times) // 4)
    early, late = times[:quarter], times[-quarter:]
    if given.json:
        result = {"roles": [asdict(role) for role in roles], "seconds": times, "connections": connections}
        print(json.dumps({**result, "errors": errors}))
    else:
        head = ["process", "first quarter", "last quarter", "per 1,000 answers", "open files", "threads", "flat"]
        print(
            table(
                head,
                [
                    [
                        role.role,
                        f"{role.first_mib:.0f} MiB",
                        f"{role.last_mib:.0f} MiB",
                        f"{role.mib_per_thousand:+.1f} MiB",
                        f"{role.last_files} (at most {role.most_files})",
                        f"{role.last_threads} (at most {role.most_threads})",
                        "yes" if role.is_flat else "**no**",
                    ]
                    for role in roles
                ],
            )
        )
        print(f"\n{len(times)} answers, {sum(errors.values())} errors; {len(times) / sum(times):.1f} a second.")
        print(
            f"p95 {seconds(percentile(early, 95))} in the first quarter, {seconds(percentile(late, 95))} in the last;",
            end=" ",
        )
        print(f"database connections at most {max(connections)}, at the end {connections[-1]}.")
        for error, number in errors.most_common(10):
            print(f"- {number} x {error}")
    raise SystemExit(1 if errors or not all(role.is_flat for role in roles) else 0)


if __name__ == "__main__":
    main()
