"""A client that is generated from the schema asks the running site."""

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from uuid import UUID

import httpx2
import pytest

from tests.integration.clients.conftest import QUESTION


@pytest.fixture(scope="module")
def generated(site, tmp_path_factory):
    """Yield the package, all of whose modules were imported."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "schema.json").write_text(httpx2.get(f"{site.url}/api/schema/?format=json").text)
    programs = Path(sys.executable).parent
    made = subprocess.run(
        [programs / "openapi-python-client", "generate", "--path", "schema.json", "--output-path", "ragsite_client",
         "--meta", "none", "--fail-on-warning"],
        cwd=folder, env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    package = importlib.import_module("ragsite_client")
    for module in pkgutil.walk_packages(package.__path__, "ragsite_client."):
        importlib.import_module(module.name)
    yield package
    sys.path.remove(str(folder))


def test_it_asks_searches_and_reads_what_is_wrong(generated, site, keys):
    from ragsite_client.api.answers import api_v1_answers_retrieve, api_v1_ask_create
    from ragsite_client.api.conversations import api_v1_conversations_list
    from ragsite_client.api.open_ai import chat_completions_create, models_list
    from ragsite_client.api.search import api_v1_search_create
    from ragsite_client.models import AskRequest, CompletionRequest, SearchRequest

    client = generated.AuthenticatedClient(base_url=site.url, token=keys["reader"])
    answer = api_v1_ask_create.sync(client=client, body=AskRequest(question=QUESTION, collection="library"))
    assert "3450 grams" in answer.citations[0].quote
    assert isinstance(answer.answer_id, UUID)
    assert api_v1_answers_retrieve.sync(answer.answer_id, client=client).question == QUESTION
    assert api_v1_conversations_list.sync(client=client).results[0].id == answer.conversation
    found = api_v1_search_create.sync(client=client, body=SearchRequest(query="pump"))
    assert "3450 grams" in found.results[0].content
    assert models_list.sync(client=client).data[0].id == "ragsite"
    asked = CompletionRequest.from_dict({"messages": [{"role": "user", "content": QUESTION}]})
    assert "3450 grams" in chat_completions_create.sync(client=client, body=asked).answer
    refused = api_v1_ask_create.sync_detailed(client=client, body=AskRequest(question="-pump"))
    assert (refused.status_code, list(refused.parsed.to_dict())) == (400, ["question"])
