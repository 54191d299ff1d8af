"""Searches a second with several askers at once, in one or several processes of the site's code.

Each asker searches one question after the other. A process warms up before the clock starts, and all start together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from django.conf import settings

from evaluation.statistics import Percentiles, percentiles

SECONDS = 8.0
WARM_UP = 5
# Different questions, so that few are answered from memory.
QUESTIONS = 2000


@dataclass(frozen=True, slots=True)
class Throughput:
    """``times`` are the milliseconds of a search as its asker saw them."""

    askers: int
    processes: int
    per_second: float
    times: Percentiles


def measure(collection: int, corpus: tuple[int, int], askers: int, processes: int) -> Throughput:
    """``corpus`` is the synthetic one's size and seed. The askers are spread over the processes."""
    shares = [askers // processes + (number < askers % processes) for number in range(processes)]
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.speed.askers", json.dumps([collection, *corpus, share, number])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=settings.BASE_DIR,
        )
        for number, share in enumerate(shares)
        if share
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    milliseconds: list[float] = []
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        told, _ = child.communicate()
        if child.returncode:
            raise RuntimeError("An asker of the benchmark failed; its error is above.")
        milliseconds += json.loads(told)
    return Throughput(askers, len(children), len(milliseconds) / SECONDS, percentiles(milliseconds))


def _ask(collection: int, size: int, seed: int, askers: int, number: int) -> None:
    """What one process does: searches until the time is over, and prints the milliseconds of each."""
    from django.contrib.auth.models import AnonymousUser

    from bench.speed.texts import SyntheticCorpus
    from retrieval.rights import readers_in
    from retrieval.search.pipeline import search
    from retrieval.types import SearchFilters

    questions = SyntheticCorpus(size, seed).questions(QUESTIONS)
    filters = SearchFilters(collections=(collection,), readers=readers_in((collection,), AnonymousUser()))
    milliseconds: list[float] = []

    def warm_up(asker: int) -> None:
        for place in range(WARM_UP):
            search(questions[-1 - asker - place * askers], filters)

    def ask(asker: int) -> None:
        place = (number * askers + asker) * QUESTIONS // 50
        while (started := time.perf_counter()) < ends_at:
            search(questions[place % QUESTIONS], filters)
            milliseconds.append((time.perf_counter() - started) * 1000)
            place += 1

    with ThreadPoolExecutor(askers) as threads:
        list(threads.map(warm_up, range(askers)))
        print("ready", flush=True)
        sys.stdin.readline()
        ends_at = time.perf_counter() + SECONDS
        list(threads.map(ask, range(askers)))
    print(json.dumps(milliseconds))


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup()
    _ask(*json.loads(sys.argv[1]))
