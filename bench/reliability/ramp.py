"""More and more askers at once: what each gets, what the site refuses, and how soon it is itself again.

.venv/bin/python -m bench.reliability.ramp [--most 128] [--questions 4] [--port 8000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from bench.asker import AskOutcome, ask, get
from bench.reliability.running_site import distinct_questions, percentile, progress, running_site, seconds
from bench.reporting import table

LONGEST_WAIT_SECONDS = 5.0
PROBE_SECONDS = 0.5
RECOVERY_SECONDS = 300.0
# The site is itself again when a single question takes no longer than the slowest of these before the ramp did.
SINGLE_QUESTIONS = 10
PROBES = ("/healthz", "/readyz", "/")


@dataclass(slots=True)
class Level:
    """What so many askers got, and what beside them somebody else did."""

    askers: int
    streamed: bool
    outcomes: list[AskOutcome] = field(default_factory=list)
    elapsed_seconds: float = 0.0
    probes: dict[str, list[AskOutcome]] = field(default_factory=lambda: {path: [] for path in PROBES})


async def run_level(port: int, level: Level, each: int, limit_seconds: float, questions: Iterator[str]) -> None:
    """Every asker asks ``each`` questions, one after the other; who is refused waits as told before the next."""
    done = asyncio.Event()
    probing = [asyncio.create_task(_probe(port, path, level, done, limit_seconds)) for path in PROBES]
    started = time.monotonic()

    async def asker() -> None:
        for _ in range(each):
            outcome = await ask(port, next(questions), stream=level.streamed, limit_seconds=limit_seconds)
            level.outcomes.append(outcome)
            if outcome.refused:
                await asyncio.sleep(min(outcome.retry_after_seconds or 1.0, LONGEST_WAIT_SECONDS))

    await asyncio.gather(*(asker() for _ in range(level.askers)))
    level.elapsed_seconds = time.monotonic() - started
    done.set()
    await asyncio.gather(*probing)


async def _probe(port: int, path: str, level: Level, done: asyncio.Event, limit_seconds: float) -> None:
    while not done.is_set():
        level.probes[path].append(await get(port, path, limit_seconds=limit_seconds))
        await asyncio.sleep(PROBE_SECONDS)


async def single_question_seconds(port: int, limit_seconds: float, questions: Iterator[str]) -> float:
    """Infinite when it was not answered."""
    outcome = await ask(port, next(questions), stream=False, limit_seconds=limit_seconds)
    return outcome.seconds if outcome.answered else float("inf")


async def ramp(port: int, most: int, each: int, limit_seconds: float) -> tuple[list[Level], float, float | None]:
    """The levels, the slowest single question before them, and the seconds until one was as fast again afterwards."""
    questions = distinct_questions("ramp ")
    await single_question_seconds(port, limit_seconds, questions)
    usual = max([await single_question_seconds(port, limit_seconds, questions) for _ in range(SINGLE_QUESTIONS)])
    levels = [Level(2**power, streamed) for power in range(most.bit_length()) for streamed in (False, True)]
    for number, level in enumerate(levels, start=1):
        await run_level(port, level, each, limit_seconds, questions)
        progress(number, len(levels), f"{level.askers} askers: {dict(_counts(level))}")
    ended = time.monotonic()
    while await single_question_seconds(port, limit_seconds, questions) > usual:
        if time.monotonic() - ended > RECOVERY_SECONDS:
            return levels, usual, None
    return levels, usual, time.monotonic() - ended


def _counts(level: Level) -> Counter[str]:
    return Counter(_kind(outcome) for outcome in level.outcomes)


def _kind(outcome: AskOutcome) -> str:
    if outcome.answered:
        return "answered"
    if outcome.refused:
        return "refused" if outcome.retry_after_seconds is not None else "refused without Retry-After"
    return "timed out" if outcome.timed_out else "failed"


def levels_table(levels: list[Level]) -> str:
    head = ["askers", "", "answered", "refused", "timed out", "failed", "answers/s", "p50", "p95", "first event p95"]
    head += [f"`{path}` p95" for path in PROBES]
    return table(head, map(_row, levels))


def _row(level: Level) -> list[object]:
    counts = _counts(level)
    answered = [outcome for outcome in level.outcomes if outcome.answered]
    times = [outcome.seconds for outcome in answered]
    first = [outcome.first_event_seconds for outcome in answered if outcome.first_event_seconds is not None]
    without = counts["refused without Retry-After"]
    return [
        level.askers,
        "streamed" if level.streamed else "plain",
        counts["answered"],
        f"{counts['refused']}{f' + {without} without Retry-After' if without else ''}",
        counts["timed out"],
        counts["failed"],
        f"{len(answered) / level.elapsed_seconds:.1f}",
        seconds(percentile(times, 50)),
        seconds(percentile(times, 95)),
        seconds(percentile(first, 95)),
        *(seconds(percentile([probe.seconds for probe in level.probes[path]], 95)) for path in PROBES),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=128, help="Askers at the last level; each level has twice as many.")
    parser.add_argument("--questions", type=int, default=4, help="That each asker asks, one after the other.")
    parser.add_argument("--limit", type=float, default=60.0, help="Seconds after which an asker gives up.")
    parser.add_argument("--port", type=int, default=8232)
    parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")
    given = parser.parse_args()
    with running_site(given.port) as site:
        levels, usual, recovery = asyncio.run(ramp(site.port, given.most, given.questions, given.limit))
    errors = Counter(
        outcome.error for level in levels for outcome in level.outcomes if _kind(outcome) in ("failed", "timed out")
    )
    if given.json:
        result = {"levels": [asdict(level) for level in levels], "usual_seconds": usual, "recovery_seconds": recovery}
        print(json.dumps({**result, "errors": errors}))
    else:
        print(levels_table(levels))
        print(f"\nA single question took at most {usual:.2f} s before the ramp, ", end="")
        print(f"and again {recovery:.1f} s after it." if recovery is not None else "and did not again afterwards.")
        for error, number in errors.most_common(10):
            print(f"- {number} x {error}")
    probes_failed = any(probe.status not in (200, 503) for level in levels for probe in level.probes["/healthz"])
    raise SystemExit(1 if recovery is None or errors or probes_failed else 0)


if __name__ == "__main__":
    main()
