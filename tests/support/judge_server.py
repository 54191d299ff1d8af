"""A judge over real HTTP: an OpenAI-compatible server that answers DeepEval's questions, and can be told to fail."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.serving import QuietHandler, serving

Judged = dict[str, Any]
# By the name of the form that is asked for; of verdicts, by what they are verdicts on.
GOOD: dict[str, Judged] = {
    "Truths": {"truths": ["The pump weighs 3450 grams."]},
    "Claims": {"claims": ["The pump weighs 3450 grams.", "The pump is light."]},
    "Statements": {"statements": ["The pump weighs 3450 grams."]},
    "FaithfulnessVerdict": {
        "verdicts": [{"verdict": "yes", "reason": None}, {"verdict": "no", "reason": "Nothing says that it is light."}]
    },
    "AnswerRelevancyVerdict": {"verdicts": [{"verdict": "yes", "reason": None}]},
    "ContextualRelevancyVerdict": {"verdicts": [{"statement": "It weighs 3450 g.", "verdict": "yes", "reason": None}]},
    "ContextualPrecisionVerdict": {"verdicts": [{"verdict": "yes", "reason": "It names the weight."}]},
    "ContextualRecallVerdict": {"verdicts": [{"verdict": "yes", "reason": "The first passage says so."}]},
}


@dataclass
class JudgeServer:
    """``judged`` overrides the good answers by form; ``content`` is said in place of any of them.

    ``status`` other than 200 refuses; ``wait_seconds`` passes before each answer; ``is_open`` holds answers back while
    it is cleared, but for the first ``free_requests``. ``without_usage`` leaves the tokens uncounted. ``garbage`` is
    sent in place of a completion; with ``breaks_off`` the connection ends in the middle of one.
    """

    judged: dict[str, Judged] = field(default_factory=dict)
    content: str | None = None
    finish_reason: str | None = "stop"
    status: int = 200
    wait_seconds: float = 0.0
    without_usage: bool = False
    garbage: bytes | None = None
    breaks_off: bool = False
    free_requests: int = 0
    is_open: threading.Event = field(default_factory=threading.Event)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    @property
    def forms(self) -> list[str]:
        """What was asked for, in order."""
        return [form_of(request) for request in self.requests]


def form_of(request: dict[str, Any]) -> str:
    asked = request["response_format"]["json_schema"]
    verdicts = [name for name in asked["schema"].get("$defs", {}) if name.endswith("Verdict")]
    return str(verdicts[0] if verdicts else asked["name"])


@contextmanager
def judge_server() -> Iterator[JudgeServer]:
    state = JudgeServer()
    state.is_open.set()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            request = self.read_json()
            state.requests.append(request)
            state.headers.append(dict(self.headers))
            if len(state.requests) > state.free_requests:
                state.is_open.wait(60)
            time.sleep(state.wait_seconds)
            content = state.content
            if content is None and state.status == 200:
                form = form_of(request)
                known = {**GOOD, **state.judged}
                content = json.dumps(known.get(form, {"reason": f"Because of {form}."}))
            completion: dict[str, Any] = {
                "choices": [
                    {"message": {"role": "assistant", "content": content}, "finish_reason": state.finish_reason}
                ]
            }
            if not state.without_usage:
                completion["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
            raw = json.dumps(completion if state.status == 200 else {"error": {"message": "not now"}}).encode()
            if state.garbage is not None:
                raw = state.garbage
            if state.breaks_off:
                self.send(raw[: len(raw) // 2], state.status, Content_Length=str(len(raw)))
            else:
                self.send(raw, state.status)

    with serving(Handler) as url:
        state.url = f"{url}/v1"
        try:
            yield state
        finally:
            state.is_open.set()
