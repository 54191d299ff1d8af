"""A small server of whole chat completions over real HTTP, whose behaviour a test sets."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.serving import QuietHandler, serving


def _opened():
    event = threading.Event()
    event.set()
    return event


@dataclass
class CompletionServer:
    """``content`` is the model's text, or a function of the request; ``raw`` is sent in place of a completion.

    ``status`` other than 200 refuses. ``wait_seconds`` pass before each answer, ``drip_seconds`` between any two of its
    bytes; while ``is_open`` is cleared, answers wait, except the first ``free_requests``. With ``breaks_off`` the
    connection ends in the middle of an answer.
    """

    content: str | Callable[[dict[str, Any]], str] | None = "pump"
    finish_reason: str | None = "stop"
    usage: dict[str, int] | None = None
    status: int = 200
    raw: bytes | None = None
    wait_seconds: float = 0.0
    drip_seconds: float = 0.0
    breaks_off: bool = False
    free_requests: int = 0
    is_open: threading.Event = field(default_factory=_opened)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def said(self, request):
        return self.content(request) if callable(self.content) else self.content


@contextmanager
def serving_completions(state):
    class Handler(QuietHandler):
        def do_POST(self):
            request = self.read_json()
            state.requests.append(request)
            state.headers.append(dict(self.headers))
            if len(state.requests) > state.free_requests:
                state.is_open.wait(60)
            time.sleep(state.wait_seconds)
            raw = state.raw
            if raw is None and state.status != 200:
                raw = json.dumps({"error": {"message": "not now"}}).encode()
            if raw is None:
                message = {"role": "assistant", "content": state.said(request)}
                choices = [{"message": message, "finish_reason": state.finish_reason}]
                usage = {"usage": state.usage} if state.usage else {}
                raw = json.dumps({"choices": choices, **usage}).encode()
            sent = raw[: len(raw) // 2] if state.breaks_off else raw
            self.send(sent, state.status, state.drip_seconds, Content_Length=str(len(raw)))

    with serving(Handler) as url:
        state.url = f"{url}/v1"
        try:
            yield state
        finally:
            state.is_open.set()


def completion_server():
    return serving_completions(CompletionServer())
