"""A hub of models over real HTTP, as far as the Hugging Face client asks for one."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.serving import QuietHandler, serving

COMMIT = "c0ffee" + "0" * 34


@dataclass
class ModelHub:
    """``models`` are folders by name. ``fetched`` are the files that were sent."""

    models: dict[str, Path] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def hub(monkeypatch):
    """Yield a hub that the Hugging Face client asks."""
    state = ModelHub()

    class Request(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.partition("?")[0]
            for name, folder in state.models.items():
                if path.startswith((f"/api/models/{name}/revision/", f"/api/models/{name}/tree/")):
                    self._list(name, folder, tree="/tree/" in path)
                    return
                if path.startswith(f"/{name}/resolve/"):
                    self._send_file(folder, path.removeprefix(f"/{name}/resolve/").partition("/")[2])
                    return
            self.send(b"{}", 404, X_Error_Code="RepoNotFound")

        do_HEAD = do_GET  # noqa: N815

        def _list(self, name, folder, *, tree):
            files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
            names = [str(file.relative_to(folder)) for file in files]
            listed = (
                [
                    {"type": "file", "path": each, "size": file.stat().st_size, "oid": "0" * 40}
                    for each, file in zip(names, files, strict=True)
                ]
                if tree
                else {"id": name, "sha": COMMIT, "siblings": [{"rfilename": each} for each in names]}
            )
            self.send(json.dumps(listed).encode())

        def _send_file(self, folder, name):
            content = (folder / name).read_bytes()
            if self.command == "GET":
                state.fetched.append(name)
            etag = hashlib.sha1(content).hexdigest()
            self.send(content, ETag=f'"{etag}"', X_Repo_Commit=COMMIT)

    with serving(Request) as state.url:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", state.url)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            state.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        yield state
