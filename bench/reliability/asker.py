"""One question over HTTP, plain or streamed, and when what came back. Imports no Django."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

# Answers of a site that is asked too much: come back later.
REFUSALS = (429, 503)


@dataclass(slots=True)
class AskOutcome:
    """``status`` is 0 when the line broke, ``error`` says why there is no answer; times are in seconds."""

    status: int = 0
    seconds: float = 0.0
    first_event_seconds: float | None = None
    retry_after_seconds: float | None = None
    timed_out: bool = False
    error: str = ""

    @property
    def answered(self) -> bool:
        return self.status == 200 and not self.error

    @property
    def refused(self) -> bool:
        return self.status in REFUSALS


async def ask(port: int, question: str, *, stream: bool, limit_seconds: float) -> AskOutcome:
    """What became of a question; it is given up after ``limit_seconds``."""
    body = json.dumps({"question": question, "stream": stream, "anew": True}).encode()
    return await _exchange(port, "POST", "/api/v1/ask/", body, stream=stream, limit_seconds=limit_seconds)


async def get(port: int, path: str, *, limit_seconds: float) -> AskOutcome:
    return await _exchange(port, "GET", path, b"", stream=False, limit_seconds=limit_seconds)


async def _exchange(
    port: int, method: str, path: str, body: bytes, *, stream: bool, limit_seconds: float
) -> AskOutcome:
    outcome = AskOutcome()
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
    """Until `completed` or `failed`; the first event is the first that tells the reader something."""
    while line := await reader.readline():
        name = line.strip().removeprefix(b"event:").strip() if line.startswith(b"event:") else b""
        if name and outcome.first_event_seconds is None:
            outcome.first_event_seconds = time.monotonic() - started
        if name == b"completed":
            return
        if name == b"failed":
            outcome.error = (await reader.readline()).decode(errors="replace").strip()
            return
    outcome.error = "The stream ended without an outcome."
