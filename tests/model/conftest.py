"""A real language model, as the site serves it, for the tests of this folder. `make test-model` fetches its file; the
ordinary suite leaves the folder out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from django.conf import LazySettings

from bench import with_constants
from ragsite import local_model
from retrieval.models import Collection, Document
from tests.support.local_model_file import fetch
from tests.support.site import SiteProcess, free_port, wait_until

FOLDER = os.environ.get("TEST_MODEL_CACHE", "")
if not FOLDER:
    collect_ignore_glob = ["test_*.py"]

PUMP = """# MX-9920-W

The MX-9920-W is a circulation pump for warm water. It weighs 3450 grams and fits pipes of 32 millimetres.

## Installation

Close both valves before the pump is taken out. Two persons are needed, because the motor must stay level. The screws
are tightened with 14 newton metres. After the first week they are tightened again.

## Maintenance

The filter is cleaned every three months and replaced once a year. A filter that is clogged shows the code E-041. When
the code E-041 is shown, switch the pump off, wait for ten minutes, clean the filter and switch the pump on again. If
the code comes back, call the service desk on working days between 8 and 17 o'clock.

## Warranty

The warranty lasts five years from the day of delivery. It ends when another filter than the original one is used.
"""


@pytest.fixture(scope="session")
def model_file() -> Path:
    return fetch(Path(FOLDER))


@pytest.fixture
def manual(collection: Collection, ingest: Callable[..., Document]) -> Document:
    return ingest(collection, "pump.md", PUMP)


Serve = Callable[..., AbstractContextManager[SiteProcess]]


@pytest.fixture
def serve_model(model_file: Path, tmp_path: Path, settings: LazySettings) -> Serve:
    """Starts the model's process as the Procfile does, and has this process ask it."""

    @contextmanager
    def serve(context_tokens: int = 4096, **others: object) -> Iterator[SiteProcess]:
        port = free_port()
        environment = {
            "LOCAL_MODEL": str(model_file),
            **with_constants(LOCAL_MODEL_PORT=port),
            "OPENAI_CONTEXT_TOKENS": str(context_tokens),
        }
        process = SiteProcess(["ragsite.local_model"], tmp_path / "model.log", **environment)
        try:
            settings.LOCAL_MODEL, settings.LOCAL_MODEL_PORT = str(model_file), port
            settings.OPENAI_CONTEXT_TOKENS = context_tokens
            for name, value in others.items():
                setattr(settings, name, value)
            wait_until(local_model.is_ready, 60, f"the model\n{process.log.read_text()}")
            settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = f"http://127.0.0.1:{port}/v1", "qwen"
            yield process
        finally:
            process.stop()

    return serve
