"""Measure how long the pages of a running site take while many searches arrive at once.

``python -m bench.rush http://127.0.0.1:8000 FOLDER`` sends questions of a test set in BEIR's format. The site must
allow all these searches in one minute (``ASK_RATE=10000/min``).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from bench.beir import read_queries
from evaluation.statistics import percentiles

SEARCHES = 80
ROUNDS = 5
PAUSE_SECONDS = 3.0
PAGE_EVERY_SECONDS = 0.1
PAGES = ("/", "/healthz")


@dataclass(slots=True)
class RushRun:
    """The durations of searches, by HTTP status, and of page loads during the searches, by path; in seconds."""

    searches: dict[int, list[float]] = field(default_factory=dict)
    pages: dict[str, list[float]] = field(default_factory=dict)
    failed_pages: Counter[int] = field(default_factory=Counter)


async def search_all_at_once(client: httpx2.AsyncClient, questions: list[str], measured: RushRun) -> None:
    """Send all questions at once, and measure page loads until the last question is answered."""

    async def search(question: str) -> None:
        started = time.perf_counter()
        response = await client.post("/api/v1/search/", json={"query": question})
        measured.searches.setdefault(response.status_code, []).append(time.perf_counter() - started)

    async def open_page(path: str) -> None:
        started = time.perf_counter()
        response = await client.get(path)
        measured.pages.setdefault(path, []).append(time.perf_counter() - started)
        if not response.is_success:
            measured.failed_pages[response.status_code] += 1

    searching = [asyncio.create_task(search(question)) for question in questions]
    opened = []
    while not all(task.done() for task in searching):
        opened += [asyncio.create_task(open_page(path)) for path in PAGES]
        await asyncio.sleep(PAGE_EVERY_SECONDS)
    await asyncio.gather(*searching, *opened)


async def measure_durations(address: str, queries: list[str]) -> RushRun:
    measured = RushRun()
    limits = httpx2.Limits(max_connections=SEARCHES + 100)
    async with httpx2.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        for number in range(ROUNDS + 1):
            # The first round only brings the data into memory, so its times are dropped.
            of_round = RushRun() if number == 0 else measured
            await search_all_at_once(client, queries[number * SEARCHES : (number + 1) * SEARCHES], of_round)
            await asyncio.sleep(PAUSE_SECONDS)
    return measured


def describe_durations(seconds: list[float]) -> str:
    times = percentiles(seconds)
    return f"{len(seconds)}, p50 {times.p50:.2f} s, p95 {times.p95:.2f}, at most {max(seconds):.2f}"


def main(address: str, folder: str) -> None:
    measured = asyncio.run(measure_durations(address, [text for _, text in read_queries(Path(folder))]))
    for status, seconds in sorted(measured.searches.items()):
        print(f"searches, {status}: {describe_durations(seconds)}")
    for path, seconds in measured.pages.items():
        print(f"{path}: {describe_durations(seconds)}")
    print(f"failed pages: {dict(measured.failed_pages)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
