from __future__ import annotations

import re
from dataclasses import dataclass, field

import httpx2

from core.exceptions import LanguageModelMisconfigured
from core.http_client import Resolve
from core.model_server import parse_url


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """The address, API key and name of a language model on a server.

    ``resolve`` returns the allowed IP addresses of a host name; None allows all.
    Raises: LanguageModelMisconfigured for invalid values.
    """

    base_url: str
    api_key: str = field(repr=False)
    model: str
    resolve: Resolve | None = None

    def __post_init__(self) -> None:
        if not self.url.host:
            raise LanguageModelMisconfigured('The base URL of the language model must look like "https://host/v1".')
        if not re.fullmatch(r"[!-~]*", self.api_key.strip()):
            raise LanguageModelMisconfigured(
                "The API key of the language model has characters that no header can carry."
            )
        if not self.model:
            raise LanguageModelMisconfigured("The language model needs a name.")

    @property
    def url(self) -> httpx2.URL:
        return parse_url(self.base_url.rstrip("/") + "/chat/completions")

    @property
    def headers(self) -> dict[str, str]:
        key = self.api_key.strip()
        return {"Authorization": f"Bearer {key}"} if key else {}
