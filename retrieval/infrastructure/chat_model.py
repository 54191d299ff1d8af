"""One short answer from a language model behind OpenAI's chat-completions protocol, within a deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import httpx2

from retrieval.exceptions import ImproperModel, ModelFailed
from retrieval.infrastructure import deadline
from retrieval.infrastructure.endpoint import ChatEndpoint
from retrieval.infrastructure.model_server import AnswerTooLong, ModelServer

LARGEST_RESPONSE_BYTES = 256 * 1024
MAX_TOKENS = 200


class ChatModel:
    """A model on a server. Instances may be shared by threads and survive a fork. Raises: ImproperModel.

    ``timeout_seconds`` bounds a whole request: a server that sends a byte a second is late all the same. Nothing is
    tried twice; who asks has something else to fall back on.
    """

    def __init__(self, base_url: str, api_key: str, model: str, timeout_seconds: float) -> None:
        self._endpoint = ChatEndpoint(base_url, api_key, model)
        if timeout_seconds <= 0:
            raise ImproperModel("The language model needs a positive timeout.")
        self.name = model
        self._timeout_seconds = timeout_seconds
        self._server = ModelServer(self._endpoint.url, api_key, "of the language model")

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, response_format: Mapping[str, Any] | None = None
    ) -> str:
        """What the model says, whole. Raises: ModelFailed, with a sentence for the operator."""
        body: dict[str, Any] = {
            "model": self.name,
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
            "stream": False,
        }
        if response_format is not None:
            body["response_format"] = response_format
        try:
            content = json.loads(self._post(body))["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            raise ModelFailed("The model server sent something that is not a chat completion.") from None
        if not isinstance(content, str) or not content.strip():
            raise ModelFailed("The model ended without a word.")
        return content

    def _post(self, body: dict[str, Any]) -> bytes:
        seconds = deadline.seconds_left(self._timeout_seconds)
        ends_at = time.monotonic() + seconds
        try:
            status, _headers, received = self._server.post(body, ends_at, LARGEST_RESPONSE_BYTES)
        except AnswerTooLong:
            raise ModelFailed("The model server sent more than an answer can be.") from None
        except httpx2.TimeoutException:
            raise ModelFailed(f"The model did not answer within {seconds:g} s.") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ModelFailed(f"The model server could not be reached ({type(error).__name__}).") from None
        if status != HTTPStatus.OK:
            raise ModelFailed(self._endpoint.refusal(status, received, body))
        return received
