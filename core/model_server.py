"""Requests to model servers, bounded in time and size; no message contains the key."""

from __future__ import annotations

import logging
import math
import os
import random
import re
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import httpx2

from core import deadline
from core.http_client import bounded_client

logger = logging.getLogger(__name__)

# What a server says of a request, as it may be logged and shown: not what it was sent.

# So many words in a row are a quotation; fewer are the language's own.
QUOTED_WORDS = 4
LEFT_OUT = "(it quotes the request, which is left out here)"


def without_request(said: str, body: Any) -> str:
    """``said``, the server's message; LEFT_OUT if it repeats words of ``body``, the JSON sent, which contains users'
    texts.
    """
    sent = " ".join(_words(" ".join(_texts(body))))
    words = _words(said)
    runs = (" ".join(words[at : at + QUOTED_WORDS]) for at in range(len(words) - QUOTED_WORDS + 1))
    return LEFT_OUT if any(run in sent for run in runs) else said


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _texts(body: Any) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list | tuple):
        for each in body.values() if isinstance(body, dict) else body:
            yield from _texts(each)


QUOTED_CHARACTERS = 200


def refusal(status: int, content: bytes, body: Any, api_key: str) -> str:
    """The status and, unless it is about the key or quotes ``body``, what the server says; as part of a sentence."""
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"refused the API key (HTTP {status})"
    said = without_request(without_key(" ".join(content.decode("utf-8", "replace").split()), api_key), body)
    return f"answered HTTP {status}" + (f': "{said[:QUOTED_CHARACTERS]}"' if said else "")


def without_key(text: str, api_key: str) -> str:
    """``text`` as it may be logged: servers quote keys in their complaints."""
    return text.replace(api_key, "[API key]") if api_key else text


# What a server says that may answer in a moment.
RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class AnswerTooLong(Exception):
    """The server sent more than any answer can be; the text is for the operator."""


class ServerFailed(Exception):
    """The server gave no answer that can be used; the text says why, as part of a sentence for the operator. ``status``
    is that of a request that the server refused for good, else 0.
    """

    def __init__(self, problem: str, status: int = 0) -> None:
        super().__init__(problem)
        self.status = status


class ServerLate(ServerFailed):
    """The time was over before the server had answered."""


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

    def ask(
        self,
        body: dict[str, Any],
        ends_at: float,
        largest_bytes: int,
        *,
        attempts: int = 1,
        pause_seconds: float = 0.0,
        longest_pause_seconds: float = math.inf,
        attempt_seconds: float = math.inf,
    ) -> bytes:
        """The content of an answer with status 200.

        With several ``attempts``, a server that is away or busy is asked again while there is time, after pauses that
        double and are at least as long as it asks. Raises: ServerFailed, ServerLate.
        """
        for attempt in range(1, attempts + 1):
            pause = random.uniform(0.5, 1) * pause_seconds * 2 ** (attempt - 1)
            try:
                status, headers, content = self.post(
                    body, min(ends_at, time.monotonic() + attempt_seconds), largest_bytes
                )
            except AnswerTooLong as error:
                raise ServerFailed(str(error)) from None
            except httpx2.TransportError as error:
                if isinstance(error, httpx2.TimeoutException) and time.monotonic() >= ends_at:
                    raise ServerLate("it was late") from None
                problem = f"it could not be reached ({type(error).__name__})"
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ServerFailed(f"its answer could not be read ({type(error).__name__})") from None
            else:
                if status == HTTPStatus.OK:
                    return content
                problem = f"it {refusal(status, content, body, self._api_key)}"
                if status not in RETRIED_STATUSES:
                    raise ServerFailed(problem, status)
                pause = max(pause, retry_after_seconds(headers))
            pause = min(pause, longest_pause_seconds)
            if attempt == attempts or time.monotonic() + pause >= ends_at:
                break
            logger.warning("The server %s: %s; trying again in %.1f s.", self.url.host, problem, pause)
            time.sleep(pause)
        raise ServerFailed(problem if attempt == 1 else f"{problem}, {attempt} times in a row")

    def _opened(self) -> httpx2.Client:
        """This process's client: connections cannot be shared with the parent of a fork."""
        client = self._client
        if client is None or client[0] != os.getpid():
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            client = (os.getpid(), bounded_client(headers=headers))
            self._client = client
        return client[1]


def parsed_url(address: str) -> httpx2.URL:
    """The address as a URL; an empty URL if it is no http or https address with a host."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        return httpx2.URL("")
    return url if url.scheme in {"http", "https"} and url.host else httpx2.URL("")


def retry_after_seconds(headers: httpx2.Headers) -> float:
    """What the server asks to wait; 0 when it does not say, or says it as a date."""
    asked = headers.get("Retry-After", "")
    return float(asked) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", asked) else 0.0
