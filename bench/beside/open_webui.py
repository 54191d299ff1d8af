"""Search with a running Open WebUI server that uses hybrid search and the site's embedder."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

TOP = 3
WAIT_SECONDS = 600.0


class OpenWebUI:
    """A client of a server of Open WebUI 0.12.

    It signs up, or signs in if the account exists. The first account becomes the server's administrator.
    """

    def __init__(self, address: str) -> None:
        self._client = httpx2.Client(base_url=address, timeout=WAIT_SECONDS, trust_env=False)
        account = {"name": "Bench", "email": "bench@example.org", "password": "bench-password-1"}
        response = self._client.post("/api/v1/auths/signup", json=account)
        if response.status_code != httpx2.codes.OK:
            response = self._client.post("/api/v1/auths/signin", json=account)
        self._client.headers["Authorization"] = f"Bearer {response.raise_for_status().json()['token']}"

    def index(self, documents: Mapping[str, str]) -> str:
        """Put the documents into a new collection of the server, and return its id.

        Documents that the server refuses are reported on standard error.
        """
        made = self._post("/api/v1/knowledge/create", {"name": "bench", "description": "bench"})
        for name, text in documents.items():
            files = {"file": (name.replace("/", "_"), text.encode(), "text/markdown")}
            response = self._client.post("/api/v1/files/", files=files, params={"process_in_background": "false"})
            file = response.raise_for_status().json()
            added = self._client.post(f"/api/v1/knowledge/{made['id']}/file/add", json={"file_id": file["id"]})
            if added.status_code != httpx2.codes.OK:
                print(f"Open WebUI does not take {name}: {added.text[:200]}", file=sys.stderr)
        return str(made["id"])

    def search(self, collection: str, question: str) -> tuple[Sequence[str], float]:
        started = time.perf_counter()
        body = {"collection_names": [collection], "query": question, "k": TOP, "hybrid": True}
        found = self._post("/api/v1/retrieval/query/collection", body)
        return found["documents"][0][:TOP], (time.perf_counter() - started) * 1000

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._client.post(path, json=body).raise_for_status().json()
