"""Answers written by a language model behind OpenAI's chat-completions protocol (OpenAI, Ollama, vLLM, LM Studio,
...)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2

from chat.citations import MarkerStream
from chat.exceptions import GenerationFailed, NoAnswer
from chat.prompts import NO_ANSWER, messages
from chat.types import Source

RETRIED_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})
ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5


class OpenAICompatibleGenerator:
    """An AnswerGenerator. ``timeout_seconds`` bounds the wait for each next piece, not the whole answer."""

    def __init__(self, base_url: str, api_key: str, model: str, timeout_seconds: float = 60.0) -> None:
        self.name = model
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._model = model
        self._timeout = httpx2.Timeout(timeout_seconds, connect=min(10.0, timeout_seconds))

    async def stream(self, question: str, sources: Sequence[Source]) -> AsyncIterator[str]:
        """The model's text, markers whole and only of sources given. Raises: NoAnswer, GenerationFailed."""
        markers = MarkerStream({source.marker for source in sources})
        head = ""
        declined = True
        async for piece in self._pieces(messages(question, sources)):
            if declined:
                # Until it is clear that the model does not decline, nothing is shown.
                head += piece
                if NO_ANSWER.startswith(head.strip()[: len(NO_ANSWER)]):
                    continue
                declined = False
                piece = head.lstrip()
            if shown := markers.feed(piece):
                yield shown
        if declined:
            if not head.strip():
                raise GenerationFailed("The model ended without a word.")
            if head.strip().startswith(NO_ANSWER):
                raise NoAnswer
            yield markers.feed(head)
        if rest := markers.close():
            yield rest

    async def _pieces(self, prompt: list[dict[str, str]]) -> AsyncIterator[str]:
        """The text as it comes. A failure before the first piece is retried; after it, it is the end."""
        body = {"model": self._model, "messages": prompt, "stream": True, "temperature": 0}
        for attempt in range(1, ATTEMPTS + 1):
            begun = False
            try:
                async with httpx2.AsyncClient(timeout=self._timeout) as client:
                    async with client.stream("POST", self._url, json=body, headers=self._headers) as response:
                        if response.status_code != httpx2.codes.OK:
                            await response.aread()
                            raise _Refused(response.status_code, response.text)
                        async for piece in _contents(response):
                            begun = True
                            yield piece
                return
            except _Refused as error:
                if error.status not in RETRIED_STATUSES or attempt == ATTEMPTS:
                    raise GenerationFailed(str(error)) from error
            except httpx2.TimeoutException as error:
                raise GenerationFailed("The model did not answer in time.") from error
            except httpx2.HTTPError as error:
                if begun or attempt == ATTEMPTS:
                    raise GenerationFailed(f"The line to the model broke: {type(error).__name__}.") from error
            await asyncio.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"The model server answered {status}: {' '.join(text.split())[:200]}")
        self.status = status


async def _contents(response: httpx2.Response) -> AsyncIterator[str]:
    """The pieces of text in a stream of chat-completion chunks. Raises: GenerationFailed for anything else."""
    ended = False
    async for line in response.aiter_lines():
        if not line.startswith("data:"):
            continue
        payload = line[len("data:") :].strip()
        if payload == "[DONE]":
            return
        try:
            chunk: dict[str, Any] = json.loads(payload)
            if "error" in chunk:
                raise GenerationFailed(f"The model server broke off: {str(chunk['error'])[:200]}")
            choices = chunk.get("choices") or []
            for choice in choices:
                if content := (choice.get("delta") or {}).get("content"):
                    yield content
                if choice.get("finish_reason"):
                    ended = True
        except (ValueError, AttributeError, TypeError) as error:
            raise GenerationFailed("The model server sent something that is not a chat completion.") from error
    if not ended:
        raise GenerationFailed("The model's answer broke off.")
