"""A small rerank server over real HTTP that speaks as TEI and as Cohere do, and misbehaves as a test sets."""

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.serving import QuietHandler, serving

Answer = tuple[int, dict[str, str], Any]


def overlap(query, text):
    """Return the share of the question's words that the text has."""
    words = set(query.lower().split())
    return len(words & set(text.lower().replace(".", " ").split())) / len(words)


def judged(body):
    """Index and score of each text, best first, as servers send them."""
    texts = body["texts"] if "texts" in body else body["documents"]
    scores = [(index, overlap(body["query"], text)) for index, text in enumerate(texts)]
    return sorted(scores, key=lambda pair: -pair[1])


def answered(body):
    if "texts" in body:
        return [{"index": index, "score": score} for index, score in judged(body)]
    results = [{"index": index, "relevance_score": score} for index, score in judged(body)]
    return {"id": "1", "model": body.get("model"), "results": results, "usage": {"total_tokens": 1}}


@dataclass
class RerankServer:
    """``answers`` are given first, one a request: (status, headers, JSON or bytes), or a function of the request.

    ``callers`` are the ports the requests came from: one for each connection.
    """

    delay_seconds: float = 0.0
    drip_seconds: float = 0.0
    answers: list[Answer | Callable[[dict[str, Any]], Answer]] = field(default_factory=list)
    dropped_connections: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    callers: list[int] = field(default_factory=list)
    url: str = ""


@contextmanager
def rerank_server():
    state = RerankServer()

    class Request(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.read_json()
            state.requests.append(body)
            state.paths.append(self.path)
            state.headers.append(dict(self.headers))
            state.callers.append(self.client_address[1])
            if state.dropped_connections:
                state.dropped_connections -= 1
                self.close_connection = True
                return
            time.sleep(state.delay_seconds)
            answer = state.answers.pop(0) if state.answers else (200, {}, answered(body))
            status, headers, content = answer(body) if callable(answer) else answer
            payload = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send(payload, status, state.drip_seconds, **headers)

    with serving(Request) as state.url:
        yield state
