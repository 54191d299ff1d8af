"""A server of chat completions that refuses a request: why, for how long, and what it would take instead."""

from __future__ import annotations

import re
import time
from typing import Any

import httpx2
from django.utils.http import parse_http_date_safe

from retrieval.infrastructure.endpoint import ChatEndpoint

LONGEST_REFUSAL_BYTES = 16 * 1024
# What servers say when prompt and answer do not fit: they name max_tokens, and know it well.
_TOO_LONG = re.compile(r"context[ _](?:length|window|size)|too (?:large|long)|reduce the length", re.IGNORECASE)
# How servers say that they, or their model, know no functions: vLLM and Ollama with 400, OpenRouter with 404, llama.cpp
# with 500.
_NAMES_TOOLS = re.compile(r"\btools?\b|\bfunction[ _-]?call", re.IGNORECASE)
_REFUSING_TOOLS = frozenset({400, 404, 422, 500, 501})


class Refused(Exception):
    """The server answered with another status than 200. ``pause_seconds`` is what it asks for, if it does."""

    def __init__(
        self, response: httpx2.Response, received: bytes, endpoint: ChatEndpoint, body: dict[str, Any]
    ) -> None:
        super().__init__(endpoint.refusal(response.status_code, received, body))
        self.status = response.status_code
        self.pause_seconds = _retry_after(response.headers.get("retry-after", ""))
        self._said = received.decode("utf-8", "replace")

    def blamed(self, body: dict[str, Any]) -> str:
        """The parameter of the request that the server does not take; empty when it complains of something else."""
        if _TOO_LONG.search(self._said):
            return ""
        if "tools" in body and self.status in _REFUSING_TOOLS and _NAMES_TOOLS.search(self._said):
            return "tools"
        if self.status not in (400, 422):
            return ""
        for name in ("max_completion_tokens", "stream_options", "max_tokens", "temperature"):
            if name in body and name in self._said:
                return name
        # Servers that name nothing mostly stumble over the newest of the parameters.
        return next((name for name in ("tools", "stream_options") if name in body), "")


async def read_beginning(response: httpx2.Response) -> bytes:
    """The first bytes of what the server says of its refusal."""
    received = b""
    async for piece in response.aiter_bytes():
        received += piece
        if len(received) > LONGEST_REFUSAL_BYTES:
            break
    return received


def _retry_after(value: str) -> float | None:
    """Seconds, at least 0, from a Retry-After header (RFC 9110, 10.2.3); None for none."""
    try:
        return max(0.0, float(value))
    except ValueError:
        at = parse_http_date_safe(value)
        return None if at is None else max(0.0, at - time.time())
