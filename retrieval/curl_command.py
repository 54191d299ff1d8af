from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

LONGEST_QUERY = 2000


def build_curl_command(
    request: HttpRequest,
    query: str,
    *,
    collection: str = "",
    method: str = "",
    top_k: int | None = None,
    filters: Mapping[str, Any] | None = None,
) -> str:
    """Return a curl command that sends this search to the API, with the API key from $API_KEY."""
    body: dict[str, object] = {"query": query[:LONGEST_QUERY], "method": method or "default", "explain": True}
    if collection:
        body["collection"] = collection
    if top_k:
        body["top_k"] = min(top_k, settings.RETRIEVAL_DEPTH)
    if filters:
        body["filters"] = dict(filters)
    address = request.build_absolute_uri(reverse("retrieval_api:search"))
    return " \\\n  ".join(
        [
            f"curl -s {shlex.quote(address)}",
            '-H "Authorization: Bearer $API_KEY"',
            "-H 'Content-Type: application/json'",
            f"--data {shlex.quote(json.dumps(body, ensure_ascii=False))}",
        ]
    )
