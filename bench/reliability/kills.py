"""Kill processes of a site at random points, and check what is lost.

.venv/bin/python -m bench.reliability.kills [--kills 300] [--minutes 60] [--seed 1] [--port 8231]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import psutil
import psycopg

from bench.reliability.running_site import BAR, RunningSite, SiteFailed, format_seconds, percentile, running_site
from bench.reporting import format_markdown_table

if TYPE_CHECKING:
    from bench.reliability.load import SiteLoad

REEMBEDDING = "re-embedding"
# Weights of the random choice of a process. Processes whose death stops the site are killed less often.
CHOICES = {"worker child": 30, "worker": 20, "web": 20, "scheduler": 6, "postgres": 8, "serve": 5, REEMBEDDING: 8}
KINDS, WEIGHTS = tuple(CHOICES), tuple(CHOICES.values())
PAUSE_SECONDS = (0.2, 3.0)
# A process is killed only after a minimum age, so that it works between kills. This age is random, up to these limits.
MOST_AGE_SECONDS = {"worker child": 15.0, "scheduler": 15.0}
AGE_SECONDS = 40.0
RECOVERY_SECONDS = 240.0
REEMBED_SECONDS = 600.0
CHECK_EVERY = 25
CHECK_TRIES = 5
MEASURE_EVERY = 10


@dataclass(slots=True)
class KillResult:
    """The counts of a test. ``recoveries`` has the seconds until the site worked again, or None if it did not."""

    counts: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float | None]] = field(default_factory=lambda: defaultdict(list))
    violations: list[str] = field(default_factory=list)
    checks: int = 0
    seconds: float = 0.0

    @property
    def kill_count(self) -> int:
        return self.counts.total()


class ProcessKiller:
    def __init__(self, site: RunningSite, random: Random) -> None:
        self._site = site
        self._random = random
        self._reembedding: subprocess.Popen[str] | None = None
        self._other = False
        # The number of completed commands by exit status.
        self.reembeddings: Counter[int] = Counter()

    def kill(self, kind: str) -> float | None:
        if kind == REEMBEDDING:
            return self._kill_reembedding()
        before = time.time() - self._random.uniform(0, MOST_AGE_SECONDS.get(kind, AGE_SECONDS))
        victims = [process for process in self._site.find_processes(kind) if not _started_after(process, before)]
        if not victims:
            return None
        try:
            self._random.choice(victims).kill()
        except psutil.NoSuchProcess:
            return None
        return time.time()

    def restart_ended_server(self) -> bool:
        """Start `serve` again if it has ended, as a service manager would. Always return True."""
        if self._site.serve is not None and self._site.serve.poll() is not None:
            self._site.launch()
        return True

    def wait_for_recovery(self, kind: str, killed_at: float) -> float | None:
        def has_recovered() -> bool:
            return self.restart_ended_server() and self._has_recovered(kind, killed_at)

        return self._site.wait(has_recovered, RECOVERY_SECONDS)

    def _has_recovered(self, kind: str, killed_at: float) -> bool:
        if not any(_started_after(process, killed_at) for process in self._site.find_processes(kind)):
            return False
        match kind:
            case "web":
                return self._site.is_alive()
            case "worker" | "worker child":
                return self._has_document_heartbeat_since(killed_at)
            case "postgres" | "serve":
                return self._has_document_heartbeat_since(killed_at) and self._site.is_ready()
        return True

    def _has_document_heartbeat_since(self, moment: float) -> bool:
        try:
            with psycopg.connect(self._site.postgres.url, autocommit=True, connect_timeout=3) as connection:
                row = connection.execute(
                    "SELECT max(heartbeat_at) > to_timestamp(%s) FROM retrieval_document", [moment]
                ).fetchone()
        except psycopg.Error:
            return False
        return bool(row and row[0])

    def _kill_reembedding(self) -> float | None:
        """Kill the running re-embedding process, and return the moment of the kill (Unix time).

        If no process is running, start one that switches the site to the other of two embedders, and return None.
        """
        running, self._reembedding = self._reembedding, None
        if running is not None and running.poll() is None:
            running.kill()
            running.communicate()
            return time.time()
        if running is not None:
            self.reembeddings[running.returncode] += 1
            print(running.communicate()[0][-300:], file=sys.stderr)
        self._other = not self._other
        self._reembedding = self._site.start_manage_command(
            "reembed", **({"EMBEDDING_MODEL": "all-MiniLM-L6-v2"} if self._other else {})
        )
        return None

    def finish_reembedding(self) -> None:
        """Stop a running `reembed` command, and return to the site's usual embedder. Raises: SiteFailed."""
        if self._reembedding is not None:
            self._reembedding.kill()
            self._reembedding.communicate()
        back = self._site.start_manage_command("reembed")
        output, _ = back.communicate(timeout=REEMBED_SECONDS)
        if back.returncode != 0:
            raise SiteFailed(f"The command reembed failed: {output[-500:]}")


def _started_after(process: psutil.Process, moment: float) -> bool:
    try:
        return bool(process.create_time() > moment - 0.05)
    except psutil.Error:
        return False


def run(site: RunningSite, load: SiteLoad, kills: int, random: Random, seconds_limit: float) -> KillResult:
    result = KillResult()
    killer = ProcessKiller(site, random)
    is_check_due = False
    began = time.monotonic()
    while result.kill_count < kills and time.monotonic() - began < seconds_limit:
        time.sleep(random.uniform(*PAUSE_SECONDS))
        killer.restart_ended_server()
        kind = random.choices(KINDS, WEIGHTS)[0]
        killed_at = killer.kill(kind)
        if killed_at is None:
            continue
        result.counts[kind] += 1
        what = kind
        if result.kill_count % MEASURE_EVERY == 0 and kind != REEMBEDDING:
            recovery = killer.wait_for_recovery(kind, killed_at)
            result.recoveries[kind].append(recovery)
            what = f"{kind}: {format_seconds(recovery)}"
            if recovery is None:
                result.violations.append(f"Kill {result.kill_count}: {kind} did not recover in {RECOVERY_SECONDS:g} s.")
        is_check_due = is_check_due or result.kill_count % CHECK_EVERY == 0
        if is_check_due and (found := check_invariants(site, killer, load)) is not None:
            is_check_due = False
            result.checks += 1
            result.violations += [f"After kill {result.kill_count}: {one}" for one in found]
        BAR.show(f"{what}, {len(result.violations)} violations; kill", result.kill_count, kills, "kills")
    result.seconds = time.monotonic() - began
    killer.restart_ended_server()
    if site.wait(lambda: _is_ready(site, killer), RECOVERY_SECONDS) is None:
        result.violations.append(f"The site was not ready {RECOVERY_SECONDS:g} s after the last kill.")
    killer.finish_reembedding()
    return result


def _is_ready(site: RunningSite, killer: ProcessKiller) -> bool:
    killer.restart_ended_server()
    return site.is_ready()


def check_invariants(site: RunningSite, killer: ProcessKiller, load: SiteLoad) -> list[str] | None:
    """Return the violated invariants; None if they cannot be checked now.

    This process cannot check them while the site uses another embedder than this process.
    """
    from django.db import Error

    from bench.reliability.invariants import find_invariant_violations
    from retrieval.exceptions import EmbedderMisconfigured

    for _ in range(CHECK_TRIES):
        try:
            return find_invariant_violations(load.ledger, at_rest=False)
        except EmbedderMisconfigured:
            return None
        except Error:
            site.wait(lambda: _is_ready(site, killer), RECOVERY_SECONDS)
    return ["The database could not be asked."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="After which no more are begun.")
    parser.add_argument("--rest", type=float, default=20.0, help="Minutes in which all work has to be finished.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8231)
    given = parser.parse_args()
    with running_site(given.port) as site:
        from bench.reliability.invariants import (
            count_files_left_behind,
            count_stored_rows,
            find_invariant_violations,
            requeue_interrupted_documents,
        )
        from bench.reliability.load import SiteLoad, count_unfinished_rows

        key = site.administrators_key()
        load = SiteLoad(site, key, given.seed)
        load.start()
        result = run(site, load, given.kills, Random(given.seed), given.minutes * 60)
        load.stop()
        rest = site.wait(lambda: site.is_ready() and not count_unfinished_rows(), given.rest * 60)
        if given_up := requeue_interrupted_documents():
            rest = site.wait(lambda: site.is_ready() and not count_unfinished_rows(), given.rest * 60)
        if rest is None:
            result.violations.append(
                f"Not finished {given.rest:g} minutes after the load ended: {count_unfinished_rows()}."
            )
        result.violations += [
            *load.ledger.violations,
            *find_invariant_violations(load.ledger, at_rest=rest is not None),
        ]
        left_behind, left_after = count_files_left_behind()
        if left_after:
            result.violations.append(f"{left_after} files without a document are left after a repair.")
        at_stake = {**count_stored_rows(), "uploads acknowledged": len(load.ledger.acknowledged)}
        at_stake["answers given"] = len(load.ledger.answers)
    print(_format_table(result))
    print(f"\n{result.kill_count} kills in {result.seconds / 60:.1f} minutes, seed {given.seed}; ", end="")
    print(f"looked at {result.checks} times meanwhile. At rest {format_seconds(rest)} after the load ended.")
    print("At stake:", ", ".join(f"{number} {what}" for what, number in at_stake.items()), end=".\n")
    print(f"Documents that were interrupted too often, and were read again: {given_up}.")
    print(f"Files without a document: {left_behind}, after a repair {left_after}.")
    print(f"What the load met: {dict(load.met.most_common(8))}.")
    print(f"Violations: {len(result.violations)}.")
    for sentence, number in Counter(result.violations).most_common(40):
        print(f"- {sentence}{f' ({number} times)' if number > 1 else ''}")
    raise SystemExit(1 if result.violations else 0)


def _format_table(result: KillResult) -> str:
    rows = []
    for kind in KINDS:
        measured = result.recoveries[kind]
        times = [each for each in measured if each is not None]
        row = [kind, result.counts[kind], len(measured), len(measured) - len(times)]
        rows.append([*row, format_seconds(percentile(times, 50)), format_seconds(max(times, default=None))])
    return format_markdown_table(["killed", "kills", "waited for", "not recovered", "recovery p50", "longest"], rows)


if __name__ == "__main__":
    main()
