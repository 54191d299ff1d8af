"""A language model that writes slowly, for many readers at once: a small server of streamed chat completions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class SlowModel:
    """A word every ``token_seconds``, ``tokens`` of them. ``writing`` is how many answers it is writing now."""

    tokens: int
    token_seconds: float
    url: str = ""
    writing: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request. A reader that hangs up is noticed at the next word, at the latest."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                ),
                0,
            )
            await reader.readexactly(length)
            self.writing += 1
            try:
                await self._write(reader, writer)
            finally:
                self.writing -= 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # Whoever hangs up wants no more.
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _write(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number in range(self.tokens):
            if reader.at_eof():
                return
            # With a marker, so that the answer is cited and checked as any other.
            text = f"The pump {number} weighs 3450 grams [1]. " if number % 20 == 19 else f"word{number} "
            await _send(writer, {"delta": {"content": text}, "finish_reason": None})
            await asyncio.sleep(self.token_seconds)
        await _send(writer, {"delta": {}, "finish_reason": "stop"})
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()


async def _send(writer: asyncio.StreamWriter, choice: dict[str, object]) -> None:
    writer.write(f"data: {json.dumps({'choices': [{'index': 0, **choice}]})}\n\n".encode())
    await writer.drain()


@contextmanager
def slow_model(tokens: int, token_seconds: float) -> Iterator[SlowModel]:
    """A running model, in a thread of its own, at ``url``."""
    model = SlowModel(tokens, token_seconds)
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(model.answer, "127.0.0.1", 0, backlog=1024)
        model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await server.serve_forever()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(task)

    task = loop.create_task(serve())
    thread = threading.Thread(target=run, name="slow model", daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield model
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
