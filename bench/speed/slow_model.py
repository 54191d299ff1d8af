"""A small server that imitates a language model and writes slowly, for many readers at once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.serving import QuietHandler, serving


@dataclass(slots=True)
class SlowModel:
    """The running server. ``writing`` is the number of answers that it is writing now."""

    url: str = ""
    writing: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def run_slow_model(tokens: int, token_seconds: float) -> Iterator[SlowModel]:
    """Run a server that writes ``tokens`` words, one every ``token_seconds``.

    If the client disconnects, at most two more words of its answer are written.
    """
    model = SlowModel()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - its name in http.server
            self.read_body()
            with model.lock:
                model.writing += 1
            try:
                with suppress(BrokenPipeError, ConnectionResetError):
                    self._write()
            finally:
                with model.lock:
                    model.writing -= 1

        def _write(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for number in range(tokens):
                # The text contains markers (``[1]``), so the site also finds citations and checks the cited sentences.
                text = f"The pump {number} weighs 3450 grams [1]. " if number % 20 == 19 else f"word{number} "
                self._send_choice({"delta": {"content": text}, "finish_reason": None})
                time.sleep(token_seconds)
            self._send_choice({"delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

        def _send_choice(self, choice: dict[str, object]) -> None:
            self.wfile.write(f"data: {json.dumps({'choices': [{'index': 0, **choice}]})}\n\n".encode())

    with serving(Handler) as url:
        model.url = f"{url}/v1"
        yield model
