"""A small server of whole chat completions over real HTTP, whose behaviour a test sets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.serving import QuietHandler, serving


@dataclass
class CompletionServer:
    """``content`` is what the model says, or a function of the request; ``raw`` is sent in place of a completion.

    ``drip_seconds`` is waited between any two bytes.
    """

    content: str | Callable[[dict[str, Any]], str] = "pump"
    status: int = 200
    raw: bytes | None = None
    drip_seconds: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""


@contextmanager
def completion_server() -> Iterator[CompletionServer]:
    state = CompletionServer()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = self.read_json()
            state.requests.append(body)
            state.headers.append(dict(self.headers))
            content = state.content(body) if callable(state.content) else state.content
            completion = {"choices": [{"message": {"role": "assistant", "content": content}}]}
            raw = json.dumps(completion).encode() if state.raw is None else state.raw
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            try:
                if not state.drip_seconds:
                    self.wfile.write(raw)
                    return
                for byte in raw:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(state.drip_seconds)
            except (BrokenPipeError, ConnectionResetError):
                pass

    with serving(Handler) as url:
        state.url = f"{url}/v1"
        yield state
