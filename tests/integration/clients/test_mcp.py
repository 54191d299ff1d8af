"""The official client of the Model Context Protocol against a running site, over HTTP and over a stdio bridge."""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import httpx
import pytest

from chat.models import Answer
from ragsite.models import ApiKey
from tests.integration.clients.conftest import DOCUMENTS, LONG, QUESTION
from tests.support.site import ROOT

# Elsewhere where they are used: every process of a run imports this module, and the client takes a second.


@asynccontextmanager
async def connected(site, key="", **options):
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    transport = streamable_http_client(f"{site.url}/mcp", http_client=create_mcp_http_client(headers))
    async with Client(transport, **options) as client:
        yield client


async def called(client, name, **arguments):
    """Return the result of a tool, whose text has the same as JSON."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    found = result.structured_content
    assert json.loads(result.content[0].text) == found
    return found


async def refusal(client, name, **arguments):
    result = await client.call_tool(name, arguments)
    assert result.is_error
    return str(result.content[0].text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_search_fetch_and_ask(site, mode):
    async with connected(site, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == ["search", "fetch", "ask"]
        assert tools["search"].input_schema["required"] == ["query"]
        found = (await called(client, "search", query="weight of the pump"))["results"]
        assert {"id", "title", "url"} <= set(found[0])
        assert found[0]["url"].startswith(f"{site.url}/documents/")
        document = await called(client, "fetch", id=found[0]["id"])
        assert list(document) == ["id", "title", "text", "url", "metadata"]
        assert (document["id"], document["title"]) == (found[0]["id"], "MX-9920-W")
        assert document["text"] == DOCUMENTS["pump.md"]
        answer = await called(client, "ask", question=QUESTION)
        assert "3450 grams" in answer["answer"]
        [citation] = answer["citations"]
        assert "3450 grams" in citation["quote"]
    for address in (found[0]["url"], citation["url"]):
        async with httpx.AsyncClient(timeout=60) as browser:
            page = await browser.get(address)
        assert (page.status_code, "<mark" in page.text) == (200, True)


async def test_a_long_document_is_read_in_parts(site):
    async with connected(site) as client:
        found = (await called(client, "search", query='"valve number 70"'))["results"]
        part = await called(client, "fetch", id=found[0]["id"])
        assert "valve number 70." in part["text"]
        assert len(part["text"]) == 20_000
        text, given = "", found[0]["id"].partition(":")[0]
        while given:
            part = await called(client, "fetch", id=given)
            text += part["text"]
            given = part["metadata"]["next"]
        assert text == LONG


def test_a_follow_up_goes_on_with_the_conversation(site, keys, rows):
    async def ask_twice():
        async with connected(site, keys["editor"]) as client:
            first = await called(client, "ask", question=QUESTION)
            follow_up = {"question": "what about its price?", "conversation": first["conversation"]}
            return first, await called(client, "ask", **follow_up)

    first, second = asyncio.run(ask_twice())
    assert "210 euros" in second["answer"]
    with rows():
        asked = Answer.objects.get(pk=second["answer_id"])
        assert (str(asked.conversation_id), asked.conversation.owner.username) == (first["conversation"], "editor")
        # The conversation names its key, as in the API.
        assert ApiKey.objects.get(public_id=asked.conversation.key).user.username == "editor"


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("search", {}, "required"),
        ("search", {"query": "a", "limit": 3}, "Unknown argument."),
        ("search", {"query": 7}, "must be a string"),
        ("ask", {"question": " "}, "Please type a question."),
        ("ask", {"question": "a", "conversation": "7"}, "UUID"),
        ("fetch", {"id": "9" * 5000}, "no document"),
        ("fetch", {"id": "x"}, "no document"),
        ("delete", {}, "There is no tool 'delete'"),
    ],
    ids=repr,
)
async def test_a_model_reads_why_a_call_is_refused(site, name, arguments, sentence):
    async with connected(site) as client:
        assert sentence in await refusal(client, name, **arguments)


def post(site, message, **headers):
    accepted = {"Accept": "application/json, text/event-stream", **headers}
    return httpx.post(f"{site.url}/mcp", json=message, headers=accepted, timeout=60)


def call_of(name, **arguments):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def test_scopes_and_wrong_keys_are_refused_as_by_the_api(site, keys):
    for key, name, status in (("search", "ask", 403), ("ask", "search", 403), ("ask", "fetch", 403)):
        response = post(site, call_of(name, query="a", question="a"), Authorization=f"Bearer {keys[key]}")
        assert (response.status_code, "scope" in response.json()["detail"]) == (status, True)
    assert post(site, call_of("search", query="a"), Authorization=f"Bearer {keys['search']}").status_code == 200
    response = post(site, call_of("search", query="a"), Authorization="Bearer rs_wrong")
    assert response.status_code == 401
    metadata = response.headers["WWW-Authenticate"].partition('resource_metadata="')[2].rstrip('"')
    assert httpx.get(metadata, timeout=60).json()["resource"] == f"{site.url}/mcp"


@pytest.mark.parametrize("message", [[call_of("search", query="a")], "a", 7, {"method": "tools/call", "params": []}])
def test_what_is_no_message_is_refused(site, message):
    assert post(site, message).status_code == 400
    assert httpx.get(f"{site.url}/mcp", timeout=60).status_code == 405
    assert httpx.post(f"{site.url}/mcp/", json=message, timeout=60).status_code == 400
    assert httpx.get(f"{site.url}/.well-known/oauth-protected-resource/mcp/", timeout=60).status_code == 200
    assert post(site, call_of("search", query="a"), Host="elsewhere.example").status_code == 400


async def test_the_bridge_serves_standard_input_and_output(site, keys, tmp_path):
    from mcp import Client, StdioServerParameters

    key = tmp_path / "key"
    key.write_text(keys["editor"] + "\n")
    arguments = [str(ROOT / "manage.py"), "mcp", "--url", f"{site.url}/mcp", "--key-file", str(key)]
    async with Client(StdioServerParameters(command=sys.executable, args=arguments)) as client:
        assert len((await client.list_tools()).tools) == 3
        assert "March" in (await called(client, "ask", question="When is the merger announced?"))["answer"]
