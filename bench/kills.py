"""kill -9 at random points of reading, re-embedding, answering, judging and publishing, and what is lost by it.

.venv/bin/python -m bench.kills [--kills 300] [--seed 1] [--port 8000]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import psutil
import psycopg

from bench.running_site import RunningSite, running_site
from bench.tables import percentile, progress, seconds, table

if TYPE_CHECKING:
    from bench.load import Load

REEMBEDDING = "re-embedding"
KINDS = ("worker child", "worker", "web", "scheduler", "postgres", "serve", REEMBEDDING)
RECOVERY_SECONDS = 180.0
REST_SECONDS = 1200.0
CHECK_EVERY = 25
# A passage of the command's life: from before it has connected to after its first batches.
REEMBEDDING_SECONDS = (2.0, 20.0)


class Killer:
    """Ends processes of a site, and waits until their work goes on."""

    def __init__(self, site: RunningSite, random: Random) -> None:
        self._site = site
        self._random = random

    def kill(self, kind: str) -> float | None:
        """Seconds until the site had recovered; None when it did not."""
        if kind == REEMBEDDING:
            return self._kill_reembedding()
        victims = self._site.find(kind)
        if not victims:
            return None
        victim = self._random.choice(victims)
        killed_at = time.time()
        started = time.monotonic()
        victim.kill()
        if kind == "serve":
            if not self._restart():
                return None
        elif self._site.wait(lambda: self._is_back(kind, victim, killed_at), RECOVERY_SECONDS) is None:
            return None
        return time.monotonic() - started

    def _restart(self) -> bool:
        """`serve` again, as a supervisor of the machine would start it; what it left behind has to go by itself."""
        if self._site.serve is not None:
            self._site.serve.wait(10)
        ended = self._site.wait(lambda: not self._site.find("web") and not self._site.find("worker"), 60)
        if ended is None:
            # It counts against the site; the rest of the run goes on without what it left.
            self._site.kill_everything()
        self._site.start()
        return ended is not None

    def _is_back(self, kind: str, victim: psutil.Process, killed_at: float) -> bool:
        if all(process.pid == victim.pid for process in self._site.find(kind)):
            return False
        match kind:
            case "web":
                return self._site.is_alive()
            case "worker" | "worker child":
                return self._read_since(killed_at)
            case "postgres":
                return self._read_since(killed_at) and self._site.is_ready()
        return True

    def _read_since(self, moment: float) -> bool:
        """Whether a document was read to its end since then."""
        try:
            with psycopg.connect(self._site.postgres.url, autocommit=True, connect_timeout=3) as connection:
                row = connection.execute(
                    "SELECT max(ingested_at) > to_timestamp(%s) FROM retrieval_document", [moment]
                ).fetchone()
        except psycopg.Error:
            return False
        return bool(row and row[0])

    def _kill_reembedding(self) -> float | None:
        """A switch to another embedder, killed on its way; one that was quicker is taken back."""
        command = self._site.manage("reembed", EMBEDDING_PRECISION="fp32")
        try:
            command.communicate(timeout=self._random.uniform(*REEMBEDDING_SECONDS))
        except subprocess.TimeoutExpired:
            command.kill()
            command.communicate()
            return 0.0
        started = time.monotonic()
        back = self._site.manage("reembed")
        back.communicate(timeout=300)
        return time.monotonic() - started if back.returncode == 0 else None


def kinds(random: Random) -> Iterator[str]:
    """Without end: every kind as often as any other, in random order, so that none is killed again at once."""
    while True:
        yield from random.sample(KINDS, len(KINDS))


def run(site: RunningSite, load: Load, kills: int, random: Random) -> tuple[dict[str, list[float | None]], list[str]]:
    """The seconds to recovery of each kill, and what did not hold meanwhile."""
    from bench.invariants import violations

    recoveries: dict[str, list[float | None]] = defaultdict(list)
    found: list[str] = []
    killer = Killer(site, random)
    for number, kind in zip(range(1, kills + 1), kinds(random), strict=False):
        time.sleep(random.uniform(0.2, 4.0))
        recovery = killer.kill(kind)
        recoveries[kind].append(recovery)
        if recovery is None:
            found.append(f"Kill {number}: {kind} did not recover in {RECOVERY_SECONDS:g} s.")
        if number % CHECK_EVERY == 0:
            found += [f"After kill {number}: {one}" for one in violations(load.ledger, at_rest=False)]
        progress(number, kills, f"{kind}: {seconds(recovery)}, {len(found)} violations")
    return recoveries, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=8231)
    parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
    given = parser.parse_args()
    with running_site(given.port) as site:
        from bench.invariants import files_left_behind, totals, violations
        from bench.load import Load, open_work

        key = site.manage("drf_create_token", "admin").communicate(timeout=120)[0].split()[2]
        load = Load(site, key, given.seed)
        load.start()
        recoveries, found = run(site, load, given.kills, Random(given.seed))
        load.stop()
        rest = site.wait(lambda: site.is_ready() and not open_work(), REST_SECONDS)
        found += [*load.ledger.violations, *violations(load.ledger, at_rest=True)]
        left_behind, left_after = files_left_behind()
        if left_after:
            found.append(f"{left_after} files without a document are left after a repair.")
        at_stake = {**totals(), "uploads acknowledged": len(load.ledger.acknowledged)}
        at_stake["answers given"] = len(load.ledger.answers)
    if given.json:
        result = {"recoveries": recoveries, "violations": found, "rest_seconds": rest, "at_stake": at_stake}
        print(json.dumps({**result, "files_left_behind": left_behind}))
    else:
        print(_table(recoveries))
        print(f"\nAt rest {seconds(rest)} after the load ended. At stake: ", end="")
        print(", ".join(f"{number} {what}" for what, number in at_stake.items()), end=".\n")
        print(f"Files without a document: {left_behind}, after a repair {left_after}.")
        print(f"Violations: {len(found)}.")
        for sentence, number in Counter(found).most_common(40):
            print(f"- {sentence}{f' ({number} times)' if number > 1 else ''}")
    raise SystemExit(1 if found else 0)


def _table(recoveries: dict[str, list[float | None]]) -> str:
    rows = []
    for kind in KINDS:
        times = [each for each in recoveries[kind] if each is not None]
        lost = len(recoveries[kind]) - len(times)
        rows.append([kind, len(recoveries[kind]), lost, seconds(percentile(times, 50)), seconds(percentile(times, 95))])
    return table(["killed", "kills", "not recovered", "recovery p50", "recovery p95"], rows)


if __name__ == "__main__":
    main()
