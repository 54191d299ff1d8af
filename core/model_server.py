"""Send requests to model servers, limited in time and size. No error message contains the API key."""

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
from core.http_client import build_bounded_client

logger = logging.getLogger(__name__)


QUOTED_WORDS = 4
LEFT_OUT = "(it quotes the request, which is left out here)"


def hide_texts_of_request(said: str, body: Any) -> str:
    """Return the server's error message, or LEFT_OUT if it repeats words of ``body``, which may be users' texts."""
    sent = " ".join(_split_words(" ".join(_iterate_texts(body))))
    words = _split_words(said)
    runs = (" ".join(words[at : at + QUOTED_WORDS]) for at in range(len(words) - QUOTED_WORDS + 1))
    return LEFT_OUT if any(run in sent for run in runs) else said


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _iterate_texts(body: Any) -> Iterator[str]:
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict | list | tuple):
        for each in body.values() if isinstance(body, dict) else body:
            yield from _iterate_texts(each)


QUOTED_CHARACTERS = 200


def describe_refusal(status: int, content: bytes, body: Any, api_key: str) -> str:
    """Return a verb phrase that describes a refusal, such as "answered HTTP 500", followed by the server's message.

    The phrase contains neither the API key nor words of the request ``body``.
    """
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"refused the API key (HTTP {status})"
    said = hide_texts_of_request(hide_key(" ".join(content.decode("utf-8", "replace").split()), api_key), body)
    return f"answered HTTP {status}" + (f': "{said[:QUOTED_CHARACTERS]}"' if said else "")


def hide_key(text: str, api_key: str) -> str:
    return text.replace(api_key, "[API key]") if api_key else text


RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class AnswerTooLong(Exception):
    """An error: the response is too long. The message is for the operator."""


class ServerFailed(Exception):
    """An error: the server gave no usable response. The message is part of a sentence for the operator.

    ``status`` is the HTTP status if the same request would be refused again, otherwise 0.
    """

    def __init__(self, problem: str, status: int = 0) -> None:
        super().__init__(problem)
        self.status = status


class ServerTimedOut(ServerFailed):
    """An error: the server did not respond in time."""


class ModelServer:
    """An HTTP client of one server that runs a model, safe for threads and forks.

    Raises: ValueError if the API key cannot be in an HTTP header.
    """

    def __init__(self, url: httpx2.URL, api_key: str, name: str) -> None:
        self.url = url
        self._api_key = api_key.strip()
        # The error message of the HTTP library would contain the key.
        if not re.fullmatch(r"[!-~]*", self._api_key):
            raise ValueError(f"The API key {name} has characters that no header can carry: copy it again.")
        self._client: tuple[int, httpx2.Client] | None = None

    def post(self, body: dict[str, object], ends_at: float, largest_bytes: int) -> tuple[int, httpx2.Headers, bytes]:
        """Send JSON, and return status, headers and content of the response. ``ends_at`` is a time of `time.monotonic`.

        Raises: httpx2.TimeoutException, AnswerTooLong, httpx2.HTTPError and httpx2.InvalidURL.
        """
        content = bytearray()
        remaining = max(0.0, ends_at - time.monotonic())
        with (
            deadline.limit_time(remaining),
            self._open_client().stream("POST", self.url, json=body, timeout=remaining) as response,
        ):
            for piece in response.iter_bytes():
                content += piece
                if len(content) > largest_bytes:
                    raise AnswerTooLong(f"its answer is longer than {largest_bytes} bytes")
        return response.status_code, response.headers, bytes(content)

    def ask(
        self,
        body: dict[str, object],
        ends_at: float,
        largest_bytes: int,
        *,
        attempts: int = 1,
        pause_seconds: float = 0.0,
        longest_pause_seconds: float = math.inf,
        attempt_seconds: float = math.inf,
    ) -> bytes:
        """Send JSON, and return the content of a response with status 200. Raises: ServerFailed, ServerTimedOut.

        A busy or unreachable server gets several ``attempts``. The pause doubles each time, or is the server's
        Retry-After if that is longer.
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
                    raise ServerTimedOut("it was late") from None
                problem = f"it could not be reached ({type(error).__name__})"
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ServerFailed(f"its answer could not be read ({type(error).__name__})") from None
            else:
                if status == HTTPStatus.OK:
                    return content
                problem = f"it {describe_refusal(status, content, body, self._api_key)}"
                if status not in RETRIED_STATUSES:
                    raise ServerFailed(problem, status)
                pause = max(pause, read_retry_after(headers))
            pause = min(pause, longest_pause_seconds)
            if attempt == attempts or time.monotonic() + pause >= ends_at:
                break
            logger.warning("The server %s: %s; trying again in %.1f s.", self.url.host, problem, pause)
            time.sleep(pause)
        raise ServerFailed(problem if attempt == 1 else f"{problem}, {attempt} times in a row")

    def _open_client(self) -> httpx2.Client:
        """Return this process's client. After a fork, the connections belong to the parent."""
        client = self._client
        if client is None or client[0] != os.getpid():
            headers = {"Authorization": f"Bearer {self._api_key}"} if self._api_key else {}
            client = (os.getpid(), build_bounded_client(headers=headers))
            self._client = client
        return client[1]


def parse_url(address: str) -> httpx2.URL:
    """Return the URL; an empty URL if the text is not an http(s) address with a host."""
    try:
        url = httpx2.URL(address)
    except httpx2.InvalidURL:
        return httpx2.URL("")
    return url if url.scheme in {"http", "https"} and url.host else httpx2.URL("")


def read_retry_after(headers: httpx2.Headers) -> float:
    """Return the seconds of the header Retry-After; 0 if it is missing or is a date."""
    asked = headers.get("Retry-After", "")
    return float(asked) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", asked) else 0.0
