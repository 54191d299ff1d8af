"""A small embedding server over real HTTP whose vectors are counts of words, and which fails as a test sets."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from tests.support.serving import QuietHandler, serving

DIMENSION = 64


def vector_of(text: str) -> list[float]:
    """Texts that share words have vectors that are close."""
    vector = [0.01] * DIMENSION
    for word in re.findall(r"\w+", text.lower()):
        vector[crc32(word.encode()) % DIMENSION] += 1.0
    return vector


@dataclass
class EmbeddingServer:
    """``fault`` is one of error, hang, slow, garbage, dies; empty for none. What hangs goes on after ``released``."""

    fault: str = ""
    slow_seconds: float = 0.05
    requests: list[dict[str, Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    state = EmbeddingServer()

    class Request(QuietHandler):
        def do_POST(self) -> None:
            body = self.read_json()
            state.requests.append(body)
            rows = [{"index": number, "embedding": vector_of(text)} for number, text in enumerate(body["input"])]
            payload = json.dumps({"data": rows}).encode()
            if state.fault == "hang":
                state.released.wait(60)
            elif state.fault == "slow":
                threading.Event().wait(state.slow_seconds)
            elif state.fault == "garbage":
                payload = b"<html>Bad gateway</html>"
            sent = payload[: len(payload) // 2] if state.fault == "dies" else payload
            self.send(sent, 500 if state.fault == "error" else 200, Content_Length=str(len(payload)))

    with serving(Request) as url:
        state.url = f"{url}/v1"
        try:
            yield state
        finally:
            state.released.set()
