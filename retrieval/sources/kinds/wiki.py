"""What the wikis have in common: pages that come as JSON with HTML in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _t

from retrieval.sources.network.http import HttpConnector, check_listing
from retrieval.sources.protocol import Fetched, SourceUnavailable


class WikiConnector(HttpConnector):
    def _read_address(self) -> str:
        return super()._read_address().rstrip("/")

    def _ask(self, url: str, query: Mapping[str, str] | None = None, *, posted: Mapping[str, str] | None = None) -> Any:
        """What the server says. Raises: SourceRefused, SourceUnavailable."""
        address = f"{url}?{urlencode(query)}" if query else url
        if posted is None:
            response = self._client.get(address)
        else:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            response = self._client.request("POST", address, headers=headers, content=urlencode(posted).encode())
        check_listing(response)
        try:
            answer = json.loads(response.body)
        except ValueError as error:
            raise SourceUnavailable(_t("%s does not answer in JSON.") % url) from error
        if not isinstance(answer, dict):
            raise SourceUnavailable(_t("%s answers in a form that is not understood.") % url)
        return answer


def as_page(title: str, body: str) -> Fetched:
    page = (
        f'<html><head><meta charset="utf-8"><title>{escape(title)}</title></head>'
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return Fetched(page.encode(), media_type="text/html")
