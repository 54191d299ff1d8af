"""A small OpenAI-compatible server over real HTTP, whose behaviour a test sets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ModelServer:
    """``pieces`` are streamed ``delay_seconds`` apart; ``statuses`` are answered first, one a request."""

    pieces: Sequence[str] = ("The pump weighs ", "3450 grams [", "1].")
    delay_seconds: float = 0.0
    statuses: list[int] = field(default_factory=list)
    break_after: int | None = None
    promised_bytes: int = 0
    garbage: bool = False
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closed_early: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    state = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(body)
            state.headers.append(dict(self.headers))
            if state.statuses:
                self._refuse(state.statuses.pop(0))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            if state.promised_bytes:
                # Ending before them is a broken line, where without a length it would be an early end.
                self.send_header("Content-Length", str(state.promised_bytes))
            self.end_headers()
            try:
                self._stream()
            except (BrokenPipeError, ConnectionResetError):
                state.closed_early.set()

        def _refuse(self, status: int) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "not now"}}')

        def _stream(self) -> None:
            for number, piece in enumerate(state.pieces):
                if number == state.break_after:
                    return
                time.sleep(state.delay_seconds)
                self._send({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
            if state.garbage:
                self.wfile.write(b"data: <html>\n\n")
                return
            self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, chunk: dict[str, Any]) -> None:
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
