"""A real language model, as the site serves it, for the tests of this folder.

`make test-model` fetches its file; the ordinary suite leaves the folder out.
"""

import os
from pathlib import Path

import pytest
from django.test import override_settings

from bench import build_site_environment
from ragsite.processes import local_model
from tests.support.local_model_file import fetch
from tests.support.site import SiteProcess, free_port, wait_until

FOLDER = os.environ.get("TEST_MODEL_CACHE", "")
if not FOLDER:
    collect_ignore_glob = ["test_*.py"]

# Little, so that prompts have to be fitted; it is read faster, too.
CONTEXT_TOKENS = 1024
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
def model_file():
    return fetch(Path(FOLDER))


@pytest.fixture
def manual(collection, ingest):
    return ingest(collection, "pump.md", PUMP)


@pytest.fixture(scope="session")
def model_port(model_file, django_db_setup, tmp_path_factory):
    """Return the port of the model's process, started as the Procfile does, with room for CONTEXT_TOKENS."""
    port = free_port()
    process = SiteProcess(
        ["ragsite.processes.local_model"],
        tmp_path_factory.mktemp("model") / "model.log",
        LOCAL_MODEL=str(model_file),
        OPENAI_CONTEXT_TOKENS=str(CONTEXT_TOKENS),
        **build_site_environment(LOCAL_MODEL_PORT=port),
    )
    try:
        with override_settings(LOCAL_MODEL=str(model_file), LOCAL_MODEL_PORT=port):
            wait_until(local_model.is_ready, 60, f"the model\n{process.log.read_text()}")
        yield port
    finally:
        process.stop()


@pytest.fixture
def model(model_file, model_port, settings):
    """Return the settings of a site that asks the model, with short answers."""
    settings.LOCAL_MODEL, settings.LOCAL_MODEL_PORT = str(model_file), model_port
    settings.OPENAI_BASE_URL, settings.OPENAI_MODEL = f"http://127.0.0.1:{model_port}/v1", "qwen"
    settings.OPENAI_CONTEXT_TOKENS, settings.OPENAI_MAX_TOKENS = CONTEXT_TOKENS, 200
    return settings
