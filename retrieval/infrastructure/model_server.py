"""Requests to a server that runs a model: bounded in time and size, and without a word about the key."""

from __future__ import annotations

import os
import re
import time
from http import HTTPStatus
from typing import Any

import httpx2

from retrieval.infrastructure import deadline
from retrieval.infrastructure.bounded_http import bounded_client
from retrieval.infrastructure.quoting import without_request

QUOTED_CHARACTERS = 200


class AnswerTooLong(Exception):
    """The server sent more than any answer can be; the text is for the operator."""


class ModelServer:
    """A server under one address. Instances may be shared by threads and survive a fork.

    Raises: ValueError, with a sentence about ``name``'s key, for one that no header can carry.
    """

    def __init__(self, url: httpx2.URL, api_key: str, name: str) -> None:
        self.url = url
        self._api_key = api_key.strip()
        # The HTTP library would quote the header, and with it the key, in its complaint.
        if not re.fullmatch(r"[!-~]*", self._api_key):
            raise ValueError(f"The API key {name} has characters that no header can carry: copy it again.")
        self._client: tuple[int, httpx2.Client] | None = None

    def post(self, body: dict[str, Any], ends_at: float, largest_bytes: int) -> tuple[int, httpx2.Headers, bytes]:
        """Status, headers and content of one answer. ``ends_at`` is in the seconds of ``time.monotonic()``.

        Raises: httpx2.TimeoutException when it is late, AnswerTooLong, httpx2.HTTPError and httpx2.InvalidURL.
        """
        content = bytearray()
        remaining = max(0.0, ends_at - time.monotonic())
        with (
            deadline.limit(remaining),
            self._opened().stream("POST", self.url, json=body, timeout=remaining) as response,
        ):
            for piece in response.iter_bytes():
                content += piece
                if len(content) > largest_bytes:
                    raise AnswerTooLong(f"its answer is longer than {largest_bytes} bytes")
        return response.status_code, response.headers, bytes(content)

    def refusal(self, status: int, content: bytes, body: Any) -> str:
        """The status and, unless it is about the key or quotes ``body``, what the server says."""
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return f"it refused the API key (HTTP {status})"
        said = " ".join(content.decode("utf-8", "replace").split())
        if self._api_key:
            said = said.replace(self._api_key, "[API key]")
        said = without_request(said, body)
        return f"it answered HTTP {status}" + (f': "{said[:QUOTED_CHARACTERS]}"' if said else "")

    def _opened(self) -> httpx2.Client:
        """This process's client: connections cannot be shared with the parent of a fork."""
        client = self._client
        if client is None or client[0] != os.getpid():
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            client = (os.getpid(), bounded_client(headers=headers))
            self._client = client
        return client[1]


def parsed_url(address: str) -> httpx2.URL:
    """The address, or an empty one where it is none, or has no server to speak HTTP with."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        return httpx2.URL("")
    return url if url.scheme in {"http", "https"} and url.host else httpx2.URL("")


def retry_after_seconds(headers: httpx2.Headers) -> float:
    """What the server asks to wait; 0 when it does not say, or says it as a date."""
    asked = headers.get("Retry-After", "")
    return float(asked) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", asked) else 0.0
