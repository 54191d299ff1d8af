"""Questions over HTTP, plain or streamed, and when what came back. Imports no Django."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# Answers of a site that is asked too much: come back later.
REFUSALS = (429, 503)
# Events that a reader sees, and the first byte of the body, which is the first sign of life.
FIRST_BYTE = "first_byte"


@dataclass(slots=True)
class AskOutcome:
    """``status`` is 0 when the line broke, ``error`` says why there is no answer; times are in seconds.

    ``first`` has the seconds until the first byte of a stream, and until the first event of each name.
    """

    status: int = 0
    seconds: float = 0.0
    first: dict[str, float] = field(default_factory=dict)
    retry_after_seconds: float | None = None
    timed_out: bool = False
    error: str = ""

    @property
    def answered(self) -> bool:
        return self.status == 200 and not self.error

    @property
    def refused(self) -> bool:
        return self.status in REFUSALS

    @property
    def first_event_seconds(self) -> float | None:
        return min((seconds for name, seconds in self.first.items() if name != FIRST_BYTE), default=None)


async def ask(
    port: int,
    question: str,
    *,
    stream: bool,
    limit_seconds: float,
    collection: str = "",
    outcome: AskOutcome | None = None,
) -> AskOutcome:
    """What became of a question; it is given up after ``limit_seconds``. ``outcome`` is filled while it is answered."""
    asked = {"question": question, "stream": stream, "anew": True, **({"collection": collection} if collection else {})}
    body = json.dumps(asked).encode()
    return await _exchange(port, "POST", "/api/v1/ask/", body, stream, limit_seconds, outcome or AskOutcome())


async def get(port: int, path: str, *, limit_seconds: float) -> AskOutcome:
    return await _exchange(port, "GET", path, b"", False, limit_seconds, AskOutcome())


async def read_all(
    port: int,
    questions: Sequence[str],
    collection: str,
    *,
    over_seconds: float = 0.0,
    limit_seconds: float = 600.0,
    enough: Callable[[Sequence[AskOutcome]], bool] = lambda outcomes: False,
) -> list[AskOutcome]:
    """One stream a question, begun one after the other in ``over_seconds``.

    All hang up at once, without a word, when there has been ``enough``, or after ``limit_seconds``.
    """
    outcomes = [AskOutcome() for _ in questions]
    pause_seconds = over_seconds / max(1, len(questions))

    async def read(number: int) -> None:
        await asyncio.sleep(number * pause_seconds)
        limit = {"limit_seconds": limit_seconds, "outcome": outcomes[number]}
        await ask(port, questions[number], stream=True, collection=collection, **limit)  # type: ignore[arg-type]

    tasks = [asyncio.create_task(read(number)) for number in range(len(questions))]
    deadline = time.monotonic() + limit_seconds
    while not all(task.done() for task in tasks) and not enough(outcomes) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return outcomes


async def _exchange(
    port: int, method: str, path: str, body: bytes, stream: bool, limit_seconds: float, outcome: AskOutcome
) -> AskOutcome:
    started = time.monotonic()
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(limit_seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            await _read_head(reader, outcome)
            if stream and outcome.status == 200:
                await _read_events(reader, outcome, started)
            else:
                await reader.read()
    except TimeoutError:
        outcome.timed_out = True
        outcome.error = f"Nothing after {limit_seconds:g} s."
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        outcome.error = f"{type(error).__name__}: {error}"
    finally:
        if writer is not None:
            # At once: an orderly end would first send and receive what is under way.
            writer.transport.abort()
    outcome.seconds = time.monotonic() - started
    return outcome


async def _read_head(reader: asyncio.StreamReader, outcome: AskOutcome) -> None:
    first = (await reader.readline()).split()
    if len(first) < 2:
        raise ValueError("The line was closed without an answer.")
    outcome.status = int(first[1])
    while line := (await reader.readline()).strip():
        name, _colon, value = line.decode("latin-1").partition(":")
        if name.lower() == "retry-after" and value.strip().isdigit():
            outcome.retry_after_seconds = float(value)
    if outcome.status != 200:
        outcome.error = f"status {outcome.status}"


async def _read_events(reader: asyncio.StreamReader, outcome: AskOutcome, started: float) -> None:
    """Until `completed` or `failed`."""
    while line := await reader.readline():
        outcome.first.setdefault(FIRST_BYTE, time.monotonic() - started)
        if not line.startswith(b"event:"):
            continue
        name = line.removeprefix(b"event:").strip().decode()
        outcome.first.setdefault(name, time.monotonic() - started)
        if name == "completed":
            return
        if name == "failed":
            outcome.error = (await reader.readline()).decode(errors="replace").strip()
            return
    outcome.error = "The stream ended without an outcome."
