"""Where a language model is reached over OpenAI's chat-completions protocol, and what may be said of its refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx2

from retrieval.exceptions import ImproperModel
from retrieval.infrastructure.quoting import without_request

QUOTED_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """A model on a server. Raises: ImproperModel for an address, a key or a name that no request can be made of."""

    base_url: str
    api_key: str = field(repr=False)
    model: str

    def __post_init__(self) -> None:
        if self.url.scheme not in {"http", "https"} or not self.url.host:
            raise ImproperModel('The base URL of the language model must look like "https://host/v1".')
        # The HTTP library would quote the header, and with it the key, in its complaint.
        if not re.fullmatch(r"[!-~]*", self.api_key.strip()):
            raise ImproperModel("The API key of the language model has characters that no header can carry.")
        if not self.model:
            raise ImproperModel("The language model needs a name.")

    @property
    def url(self) -> httpx2.URL:
        """Where completions are posted to; without a scheme and a host when the base URL is none."""
        try:
            return httpx2.URL(self.base_url.rstrip("/") + "/chat/completions")
        except httpx2.InvalidURL:
            return httpx2.URL("")

    @property
    def headers(self) -> dict[str, str]:
        key = self.api_key.strip()
        return {"Authorization": f"Bearer {key}"} if key else {}

    def refusal(self, status: int, received: bytes, body: Any) -> str:
        """A sentence for the operator: the status and, unless it is about the key or quotes ``body``, what the server
        says."""
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return f"The model server refused the API key (HTTP {status})."
        said = without_request(self.without_key(" ".join(received.decode("utf-8", "replace").split())), body)
        return f"The model server answered HTTP {status}" + (f": {said[:QUOTED_CHARACTERS]}" if said else ".")

    def without_key(self, text: str) -> str:
        """``text`` as it may be logged: servers quote keys in their complaints."""
        key = self.api_key.strip()
        return text.replace(key, "[API key]") if key else text
