from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from core import deadline
from core.exceptions import LanguageModelMisconfigured, ModelFailed
from core.language_model.chat_endpoint import ChatEndpoint
from core.language_model.completion_client import CompletionClient, Request
from core.language_model.completion_stream import FILTERED, LENGTH
from core.language_model.machinery import remove_thoughts

MOST_TOKENS = 200


@dataclass(slots=True)
class WholeReply:
    """A whole reply of a language model.

    ``text`` lacks the text that the model thinks before its answer; ``characters`` counts it too. ``finish_reason`` is
    as in :class:`CompletionDelta`. Token counts are None if the server does not count.
    """

    text: str = ""
    characters: int = 0
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class ChatModel:
    """A language model on a server, safe for threads and forks. Raises: LanguageModelMisconfigured.

    ``timeout_seconds`` limits a whole request. By default, a failed request is not repeated.
    """

    def __init__(self, base_url: str, api_key: str, model: str, timeout_seconds: float, attempts: int = 1) -> None:
        if timeout_seconds <= 0:
            raise LanguageModelMisconfigured("The language model needs a positive timeout.")
        self.name = model
        self._timeout_seconds = timeout_seconds
        self._client = CompletionClient(ChatEndpoint(base_url, api_key, model), timeout_seconds, attempts=attempts)

    def complete(
        self, messages: Sequence[Mapping[str, str]], *, response_format: Mapping[str, object] | None = None
    ) -> str:
        """Return the text of the reply to ``messages``.

        Raises: ModelFailed, also if it is cut off, filtered or empty.
        """
        reply = self.reply(messages, MOST_TOKENS, response_format)
        if reply.finish_reason == LENGTH:
            raise ModelFailed(f"The model's reply was cut off after {MOST_TOKENS} tokens.")
        if reply.finish_reason == FILTERED:
            raise ModelFailed("The model server's content filter stopped the reply.")
        if not reply.text:
            raise ModelFailed("The model ended without a word.")
        return reply.text

    def reply(
        self,
        messages: Sequence[Mapping[str, str]],
        most_tokens: int,
        response_format: Mapping[str, object] | None = None,
    ) -> WholeReply:
        """Return the reply, even if it is cut off, filtered or empty. Raises: ModelFailed if no reply comes in time."""
        seconds = deadline.seconds_left(self._timeout_seconds)
        request = Request(
            messages,
            time.monotonic() + seconds,
            most_tokens,
            response_format=response_format,
            is_streamed=False,
        )
        return asyncio.run(self._collect_reply(request))

    async def _collect_reply(self, request: Request) -> WholeReply:
        reply = WholeReply()
        async with aclosing(self._client.stream_deltas(request)) as received:
            async for delta in received:
                reply.text += delta.text
                reply.finish_reason = delta.finish_reason or reply.finish_reason
                if delta.prompt_tokens is not None:
                    reply.prompt_tokens, reply.completion_tokens = delta.prompt_tokens, delta.completion_tokens
        reply.characters, reply.text = len(reply.text), remove_thoughts(reply.text)
        return reply
