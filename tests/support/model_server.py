"""A small OpenAI-compatible server over real HTTP, whose behaviour a test sets."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.serving import QuietHandler, serving


@dataclass
class ModelServer:
    """``pieces`` are streamed ``delay_seconds`` apart; ``statuses`` are answered first, one a request.

    Behind the ``thoughts``, which reasoning models send in a field of their own, comes the text, as a stream or, with
    ``whole``, as one JSON document. A request with one of the ``unknown_parameters`` gets a 400 that names it unless
    ``tight_lipped``. ``usage`` is counted where it is asked for. The answer to a request that offers functions is the
    first of ``rounds``: pieces of calls, one an event, behind the ``preamble``. ``raw`` is sent in place of a stream.
    ``refuses`` returns the reason for refusing a request (HTTP 400), or none. With ``always_streams``, what was asked
    for does not matter.
    """

    pieces: Sequence[str] = ("The pump weighs ", "3450 grams [", "1].")
    thoughts: Sequence[str] = ()
    delay_seconds: float = 0.0
    statuses: list[int] = field(default_factory=list)
    retry_after: str = ""
    said: str = "not now"
    unknown_parameters: Sequence[str] = ()
    tight_lipped: bool = False
    whole: bool = False
    finish_reason: str = "stop"
    usage: dict[str, int] | None = None
    break_after: int | None = None
    promised_bytes: int = 0
    garbage: bool = False
    rounds: list[Sequence[dict[str, Any]]] = field(default_factory=list)
    preamble: str = ""
    raw: bytes = b""
    always_streams: bool = False
    content_type: str = "text/event-stream"
    refuses: Callable[[dict[str, Any]], str] = lambda _request: ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closed_early: threading.Event = field(default_factory=threading.Event)
    url: str = ""


def call_pieces(arguments, *, name="ask_tables", index=0, size=7):
    """Return a call as OpenAI streams it: id and name first, then the arguments in pieces."""
    head = {"index": index, "id": f"call-{index}", "type": "function", "function": {"name": name, "arguments": ""}}
    cuts = range(0, len(arguments), size)
    return [head, *({"index": index, "function": {"arguments": arguments[at : at + size]}} for at in cuts)]


@contextmanager
def model_server():
    state = ModelServer()

    class Handler(QuietHandler):
        def do_POST(self):
            body = self.read_json()
            state.requests.append(body)
            # The event of the test that asked: one that ended in mid-answer is no news to the next.
            closed_early = state.closed_early
            state.headers.append(dict(self.headers))
            if state.statuses:
                self._refuse(state.statuses.pop(0), state.said)
                return
            if unknown := [name for name in state.unknown_parameters if name in body]:
                self._refuse(400, "Bad request" if state.tight_lipped else f"Unsupported parameter: '{unknown[0]}'")
                return
            if said := state.refuses(body):
                self._refuse(400, said)
                return
            if state.whole or (body.get("stream") is False and not state.always_streams):
                self._answer_whole()
                return
            self.send_response(200)
            self.send_header("Content-Type", state.content_type)
            if state.promised_bytes:
                # Ending before them is a broken line, where without a length it would be an early end.
                self.send_header("Content-Length", str(state.promised_bytes))
            self.end_headers()
            if state.raw:
                self.wfile.write(state.raw)
                return
            try:
                if state.rounds and "tools" in body:
                    self._call(state.rounds.pop(0), counted="stream_options" in body)
                else:
                    self._stream(counted="stream_options" in body)
            except (BrokenPipeError, ConnectionResetError):
                closed_early.set()

        def _refuse(self, status, said):
            headers = {"Retry_After": state.retry_after} if state.retry_after else {}
            self.send(json.dumps({"error": {"message": said}}).encode(), status, **headers)

        def _answer_whole(self):
            time.sleep(state.delay_seconds)
            message = {"role": "assistant", "content": "".join(state.pieces)}
            choice = {"index": 0, "message": message, "finish_reason": state.finish_reason}
            whole = json.dumps({"choices": [choice], "usage": state.usage}, indent=2)
            self.send(whole.encode(), Content_Type="application/json; charset=utf-8")

        def _call(self, pieces, *, counted):
            for delta in ({"content": state.preamble or None}, *({"tool_calls": [piece]} for piece in pieces)):
                self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
            if state.usage is not None and counted:
                self._send({"choices": [], "usage": state.usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _stream(self, *, counted):
            for thought in state.thoughts:
                time.sleep(state.delay_seconds)
                self._send({"choices": [{"index": 0, "delta": {"reasoning_content": thought}, "finish_reason": None}]})
            for number, piece in enumerate(state.pieces):
                if number == state.break_after:
                    return
                time.sleep(state.delay_seconds)
                self._send({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
            if state.garbage:
                self.wfile.write(b"data: <html>\n\n")
                return
            self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": state.finish_reason}]})
            if state.usage is not None and counted:
                self._send({"choices": [], "usage": state.usage})
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, chunk):
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

    with serving(Handler) as url:
        state.url = f"{url}/v1"
        yield state
