"""Many readers of answers at once, over HTTP: each asks a question and reads its stream. Imports no Django."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CONNECT_SECONDS = 30.0


@dataclass(slots=True)
class Reading:
    """When what came, in seconds after the question was sent; None for what never came.

    ``first_byte_seconds`` is the first sign of life, ``error`` why the stream did not come to its end.
    """

    first_byte_seconds: float | None = None
    searched_seconds: float | None = None
    first_token_seconds: float | None = None
    completed_seconds: float | None = None
    error: str = ""


async def read_all(
    port: int,
    questions: Sequence[str],
    collection: str,
    *,
    over_seconds: float = 0.0,
    limit_seconds: float = 600.0,
    enough: Callable[[Sequence[Reading]], bool] = lambda readings: False,
) -> list[Reading]:
    """One reading a question, begun one after the other in ``over_seconds``.

    All hang up at once, without a word, when there has been ``enough``, or after ``limit_seconds``.
    """
    readings = [Reading() for _ in questions]
    pause_seconds = over_seconds / max(1, len(questions))
    tasks = [
        asyncio.create_task(_read(port, question, collection, reading, number * pause_seconds))
        for number, (question, reading) in enumerate(zip(questions, readings, strict=True))
    ]
    deadline = time.monotonic() + limit_seconds
    while not all(task.done() for task in tasks) and not enough(readings) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return readings


async def _read(port: int, question: str, collection: str, reading: Reading, pause_seconds: float) -> None:
    await asyncio.sleep(pause_seconds)
    started = time.monotonic()
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            body = json.dumps({"question": question, "collection": collection, "stream": True, "anew": True}).encode()
            head = (
                f"POST /api/v1/ask/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            status = await reader.readline()
            if b" 200 " not in status:
                reading.error = f"answered {status.decode(errors='replace').strip()}"
                return
            await _note_events(reader, reading, started)
        finally:
            # At once: an orderly end would first send and receive what is under way.
            writer.transport.abort()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        reading.error = f"{type(error).__name__}: {error}"


async def _note_events(reader: asyncio.StreamReader, reading: Reading, started: float) -> None:
    in_body = False
    while line := await reader.readline():
        now = time.monotonic() - started
        if not in_body:
            in_body = not line.strip()
            continue
        if reading.first_byte_seconds is None:
            reading.first_byte_seconds = now
        match line.strip():
            case b"event: searched":
                reading.searched_seconds = now
            case b"event: token":
                reading.first_token_seconds = reading.first_token_seconds or now
            case b"event: completed":
                reading.completed_seconds = now
                return
            case b"event: failed":
                reading.error = (await reader.readline()).decode(errors="replace").strip()
                return
    reading.error = "The stream ended without an outcome."
