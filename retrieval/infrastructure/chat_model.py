"""A language model behind OpenAI's chat-completions protocol: where it is reached, one short answer from it, and the
marks that fence a document's text in its prompts.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx2

from retrieval.exceptions import ImproperModel, ModelFailed
from retrieval.infrastructure import deadline
from retrieval.infrastructure.model_server import ModelServer, Resolve, ServerFailed, ServerLate, parsed_url
from retrieval.text.sentences import split_sentences


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """A model on a server. ``resolve`` gives the addresses that may be connected to; None: any.

    Raises: ImproperModel for an address, a key or a name that no request can be made of.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    resolve: Resolve | None = None

    def __post_init__(self) -> None:
        if not self.url.host:
            raise ImproperModel('The base URL of the language model must look like "https://host/v1".')
        # The HTTP library would quote the header, and with it the key, in its complaint.
        if not re.fullmatch(r"[!-~]*", self.api_key.strip()):
            raise ImproperModel("The API key of the language model has characters that no header can carry.")
        if not self.model:
            raise ImproperModel("The language model needs a name.")

    @property
    def url(self) -> httpx2.URL:
        """Where completions are posted to; empty when the base URL is none."""
        return parsed_url(self.base_url.rstrip("/") + "/chat/completions")

    @property
    def headers(self) -> dict[str, str]:
        key = self.api_key.strip()
        return {"Authorization": f"Bearer {key}"} if key else {}


# Marks by which a model distinguishes a document's text from its instructions.
#
# Every sentence and every line of a quoted text begins with a mark that is made for the one request ("spotlighting",
# Hines et al. 2024): words that pretend to be the site's own lack it, and no document can know it.


def new_mark(texts: Iterable[str]) -> str:
    """A mark that stands in none of the texts."""
    written = "\n".join(texts)
    while (mark := f"^{secrets.token_hex(2)}^") in written:
        pass
    return mark


def mark_sentences(text: str, mark: str) -> str:
    """The text with the mark and a space before every sentence and every line that is not blank."""
    begins = [start for start, _end, _break in split_sentences(text, 0, len(text))]
    marked_lines = []
    at = 0
    for line in text.split("\n"):
        end = at + len(line)
        first = bisect_left(begins, at)
        # The first sentence of a line begins with the line: what indents it may mean something.
        own = [at, *begins[bisect_right(begins, end - len(line.lstrip())) : bisect_left(begins, end, first)]]
        cuts = [*own, end]
        marked_lines.append("".join(f"{mark} {text[a:b]}" for a, b in pairwise(cuts)) if line.strip() else line)
        at = end + 1
    return "\n".join(marked_lines)


LARGEST_RESPONSE_BYTES = 256 * 1024
MAX_TOKENS = 200


class ChatModel:
    """A model on a server. Instances may be shared by threads and survive a fork. Raises: ImproperModel.

    ``timeout_seconds`` bounds a whole request: a server that sends a byte a second is late all the same. Nothing is
    tried twice; who asks has something else to fall back on.
    """

    def __init__(self, base_url: str, api_key: str, model: str, timeout_seconds: float) -> None:
        endpoint = ChatEndpoint(base_url, api_key, model)
        if timeout_seconds <= 0:
            raise ImproperModel("The language model needs a positive timeout.")
        self.name = model
        self._timeout_seconds = timeout_seconds
        self._server = ModelServer(endpoint.url, api_key, "of the language model")

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
        try:
            return self._server.ask(body, time.monotonic() + seconds, LARGEST_RESPONSE_BYTES)
        except ServerLate:
            raise ModelFailed(f"The model did not answer within {seconds:g} s.") from None
        except ServerFailed as error:
            raise ModelFailed(f"The model server did not serve: {error}.") from None
