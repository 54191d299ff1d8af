"""OpenAI's protocol where its client does not look: every refusal's form, and what happens when an answer breaks."""

import json
import re

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from rest_framework.test import APIClient

from chat.answering import pipeline
from chat.api.completion_chunks import WITHDRAWN
from chat.models import Answer, StreamedEvent
from chat.streaming import readers, streams
from chat.types import AnswerState, AnswerToken, CompletedEvent, FailedEvent
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/v1/chat/completions"
QUESTION = "How many days of paid holiday does an employee have?"
MESSAGES = [{"role": "user", "content": QUESTION}]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def complete(client, **fields):
    return client.post(URL, json.dumps({"messages": MESSAGES, **fields}), content_type="application/json")


def told(response):
    """Return the refusal, which must be in OpenAI's form."""
    body = response.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert isinstance(body["error"]["message"], str)
    return body["error"]


@pytest.fixture
def answered(monkeypatch):
    """``answered(event, ...)``: what writing an answer brings from now on."""

    def set_events(*events):
        async def write(*args, **kwargs):
            for event in events:
                if isinstance(event, Exception):
                    raise event
                yield event

        monkeypatch.setattr(pipeline, "answer_question", write)

    return set_events


async def stream(**fields):
    """Return the chunks of a completion, read whole, and its end."""
    response = await complete(AsyncClient(), stream=True, **fields)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/event-stream")
    assert response["Cache-Control"] == "private, no-store, no-transform"
    raw = b"".join([part async for part in response.streaming_content]).decode()
    lines = [line.removeprefix("data: ") for line in raw.split("\n\n") if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def content(chunks):
    return "".join(
        chunk["choices"][0]["delta"].get("content", "")
        for chunk in chunks
        if isinstance(chunk, dict) and "choices" in chunk
    )


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": ["hello"]}, "messages[0]"),
        ({"messages": [{"content": "a"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 7}]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "  \n"}]}, "messages"),
        ({"messages": [*MESSAGES, {"role": "assistant", "content": "a", "tool_calls": [{}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 501}]}, "messages"),
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, "messages[0].content"),
        ({"messages": [*MESSAGES, {"role": "tool", "content": "5", "tool_call_id": "1"}]}, "messages"),
        ({"messages": [*MESSAGES, {"role": "robot", "content": "5"}]}, "messages[1].role"),
        ({"messages": MESSAGES, "tool_choice": "required"}, "tool_choice"),
        ({"messages": MESSAGES, "method": "best"}, "method"),
        ({"messages": MESSAGES, "model": 7}, "model"),
        ({"messages": MESSAGES, "model": "x" * 201}, "model"),
        ({"messages": MESSAGES, "temprature": 0.5}, "temprature"),
        ({"messages": [{**MESSAGES[0], "weight": 1}]}, "messages[0].weight"),
        ({"messages": MESSAGES, "stream_options": {"usage": True}}, "stream_options.usage"),
        ({"messages": MESSAGES, "stream": "perhaps"}, "stream"),
        ({"messages": MESSAGES, "stream_options": {"include_usage": 7}}, "stream_options.include_usage"),
    ],
)
def test_a_bad_request_names_what_is_wrong(api, collection, body, param):
    response = api.post(URL, json.dumps(body), content_type="application/json")
    assert response.status_code == 400, response.content
    error = told(response)
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert error["code"]
    # Programs show the message alone.
    assert param in error["message"]
    assert not Answer.objects.exists()


def test_a_body_that_is_too_large_and_an_address_that_is_not_offered(api, collection):
    large = api.post(URL, b" " * (6 * 2**20), content_type="application/json")
    assert (large.status_code, told(large)["type"]) == (413, "invalid_request_error")
    response = api.post("/v1/responses")
    assert (response.status_code, told(response)["type"]) == (404, "invalid_request_error")


@pytest.mark.parametrize("header", ["Basic YTpi", "Bearer nonsense", "Token nonsense", "Bearer two words", "Digest"])
def test_credentials_that_are_not_understood_are_not_passed_over(api, collection, header):
    response = api.get("/v1/models", HTTP_AUTHORIZATION=header)
    assert response.status_code == 401
    assert told(response)["code"] == "invalid_api_key"
    assert response["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer none", "bearer EMPTY", "Token sk-no-key"])
def test_a_key_that_is_a_placeholder_is_none(api, collection, header, settings):
    assert api.get("/v1/models", HTTP_AUTHORIZATION=header).status_code == 200
    settings.CHAT_REQUIRES_LOGIN = True
    response = api.get("/v1/models", HTTP_AUTHORIZATION=header)
    assert (response.status_code, told(response)["code"]) == (401, "invalid_api_key")


def test_a_browsers_session_is_no_key(collection, settings):
    settings.CHAT_REQUIRES_LOGIN = True
    browser = APIClient()
    browser.force_login(make_reader("reader"))
    assert complete(browser).status_code == 401


async def test_a_failed_stream_ends_with_the_error(collection, answered):
    answered(AnswerToken("The pump"), FailedEvent("The model does not answer. Please try again."))
    *_, failed, done = await stream()
    message = "The model does not answer. Please try again."
    assert failed == {"error": {"message": message, "type": "server_error", "param": None, "code": None}}
    assert done == "[DONE]"


async def test_a_refusal_that_was_not_streamed_is_said_at_the_end(collection, answered):
    answered(CompletedEvent("The documents do not say.", (), generator="tiny", state=AnswerState.NOTHING))
    chunks = await stream()
    assert content(chunks) == "The documents do not say."
    assert chunks[-2]["refused"] is True


async def test_what_a_failing_model_said_is_parted_from_the_answer_that_replaces_it(collection, answered):
    answered(
        AnswerToken("The pump weighs "),
        CompletedEvent("3450 grams.", (), generator="extractive", notice="The model broke off."),
    )
    chunks = await stream()
    assert content(chunks) == f"The pump weighs {WITHDRAWN}3450 grams.\n\nThe model broke off."
    assert (chunks[-2]["answer"], chunks[-2]["notice"]) == ("3450 grams.", "The model broke off.")


async def test_space_around_the_answer_is_no_replacement(collection, answered):
    answered(AnswerToken("\n 3450 "), AnswerToken("grams. \n"), CompletedEvent("3450 grams.", (), generator="tiny"))
    assert content(await stream()) == "\n 3450 grams. \n"


async def test_what_an_interrupted_attempt_said_is_parted_from_the_next(collection, monkeypatch):
    completed = {
        "answer": "Twenty-five.",
        "notice": "",
        "citations": [],
        "alternatives": [],
        "choices": [],
        "usage": {},
        "cut_off": False,
    }
    completed |= {"refused": False, "repeats": False, "statements": []}

    async def interrupted(answer_id, after="", **_options):
        for name, payload in (("token", {"text": "Twen"}), ("reset", {}), ("token", {"text": "Twenty-five."})):
            yield StreamedEvent(name=name, payload=payload)
        yield streams.build_unstored_event("ping")
        yield StreamedEvent(answer=Answer(pk=answer_id), name="completed", payload=completed)

    monkeypatch.setattr(streams, "follow_answer_stream", interrupted)
    chunks = await stream()
    assert content(chunks) == f"Twen{WITHDRAWN}Twenty-five."
    assert chunks[-2]["answer"] == "Twenty-five."


@pytest.mark.parametrize("are_placed", [True, False])
async def test_a_stream_numbers_its_sources_in_order_of_appearance(collection, monkeypatch, are_placed):
    at = re.compile(r"(?<![xyz])\[(\d+)\]")

    def source(marker):
        return {"marker": marker, "content": f"source {marker}", "document": {"id": marker, "title": f"D{marker}"}}

    def cited(marker, start, end):
        offsets = {"marker_start": start, "marker_end": end, "marked_start": None, "marked_end": None}
        place = {"start": 1, "end": 2, "section": "", "page": None, "page_unit": "page"}
        return {**source(marker), **offsets, **place}

    text = "A [12] b [1] c [12]. `x[1]`\n\n```\ny[1]\nz[1]\n```"
    completed = {
        "answer": text,
        "notice": "Cut off.",
        "cut_off": True,
        "alternatives": [],
        "choices": [],
        "usage": {},
        "refused": False,
    }
    completed |= {"citations": [cited(12, 2, 6), cited(1, 9, 12), cited(12, 15, 19)], "statements": []}

    async def told(answer_id, after="", **_options):
        yield StreamedEvent(name="searched", payload={"sources": [source(marker) for marker in (1, 2, 12)]})
        for piece in ("A [12] ", "b [1]", " c [12]. ", "`x[1]`\n\n```\ny[1]\n", "z[1]\n```"):
            found = [{"marker": int(each[1]), "start": each.start(), "end": each.end()} for each in at.finditer(piece)]
            yield StreamedEvent(
                name="token", payload={"text": piece, "markers": found} if are_placed else {"text": piece}
            )
        yield StreamedEvent(answer=Answer(pk=answer_id), name="completed", payload=completed)

    monkeypatch.setattr(streams, "follow_answer_stream", told)
    monkeypatch.setattr(readers._Reader, "may_begin_reading", lambda *_: True)
    monkeypatch.setattr(readers._Reader, "may_read_sources", lambda *_: True)
    chunks = await stream(list_sources=True)
    said = content(chunks)
    assert said.startswith(
        "A [1] b [2] c [1]. `x[1]`\n\n```\ny[1]\nz[1]\n```\n\nCut off.\n\n[1] D12: http://testserver/documents/12/"
    )
    assert said.count("\n[2] D1: ") == 1
    # Open WebUI has meanings of its own for these.
    names = {name for chunk in chunks if isinstance(chunk, dict) for name in chunk}
    assert not names & {"sources", "output", "selected_model_id", "event", "error"}
    first, last = (chunk for chunk in chunks if "passages" in chunk)
    assert last["choices"][0]["finish_reason"] == "length"
    assert [each["marker"] for each in first["passages"]] == [None, None, None]
    assert [(each["marker"], each["content"]) for each in last["passages"]] == [
        (1, "source 12"), (2, "source 1"), (3, "source 2"),
    ]  # fmt: skip
    annotations = [each["url_citation"] for each in last["choices"][0]["delta"]["annotations"]]
    assert [(each["title"], said[each["start_index"] : each["end_index"]]) for each in annotations] == [
        ("D12", "[1]"), ("D1", "[2]"),
    ]  # fmt: skip
    assert [each["marker"] for each in last["citations"]] == [1, 2, 1]


async def test_a_models_markers_are_numbered_alike_in_a_stream_and_whole(collection, ingest, model):
    for name, fact in (("pump", "weighs 3450 grams"), ("pool", "closes at eight in winter"), ("gate", "opens at noon")):
        await sync_to_async(ingest)(collection, f"{name}.md", f"# The {name}\n\nThe {name} {fact}.")
    question = "How heavy is the pump?"
    found = (await complete(AsyncClient(), messages=[{"role": "user", "content": question}])).json()["passages"]
    markers = {each["document"]["title"]: each["marker"] for each in found}
    assert len(markers) == 3
    wanted = ["The gate", "The pump", "The gate", "The pool"]
    facts = {"The gate": "opens at noon", "The pump": "weighs 3450 grams", "The pool": "closes at eight in winter"}
    written = "".join(f"{title} {facts[title]} [{markers[title]}]. " for title in wanted)
    model.pieces = [written[start : start + 7] for start in range(0, len(written), 7)]
    body = {"messages": [{"role": "user", "content": question}], "anew": True}
    chunks = await stream(**body)
    whole = (await complete(AsyncClient(), **body)).json()
    message = whole["choices"][0]["message"]
    assert content(chunks) == message["content"]
    numbers = [int(each) for each in re.findall(r"\[(\d+)\]", message["content"])]
    assert list(dict.fromkeys(numbers)) == list(range(1, max(numbers) + 1))
    for told in (message, chunks[-2]["choices"][0]["delta"]):
        titles = [each["url_citation"]["title"] for each in told["annotations"]]
        assert [titles[number - 1] for number in numbers] == wanted


async def test_a_stopped_answer_has_the_numbers_that_were_streamed(collection, monkeypatch):
    completed = {
        "answer": "A [3] b [1] c",
        "notice": "Stopped.",
        "cut_off": True,
        "alternatives": [],
        "choices": [],
        "usage": {},
    }
    completed |= {"citations": [], "statements": [], "refused": False}

    async def told(answer_id, after="", **_options):
        yield StreamedEvent(name="searched", payload={"sources": [{"marker": at, "content": ""} for at in (1, 2, 3)]})
        for piece in ("A [3] ", "b [1] c"):
            yield StreamedEvent(name="token", payload={"text": piece})
        yield StreamedEvent(answer=Answer(pk=answer_id), name="completed", payload=completed)

    monkeypatch.setattr(streams, "follow_answer_stream", told)
    monkeypatch.setattr(readers._Reader, "may_begin_reading", lambda *_: True)
    monkeypatch.setattr(readers._Reader, "may_read_sources", lambda *_: True)
    assert content(await stream()) == "A [1] b [2] c\n\nStopped."


def test_the_schema_describes_the_protocol(api, collection, answered):
    answered(CompletedEvent("Yes.", (), generator="tiny"))
    schema = api.get("/api/schema/?format=json").json()
    assert {URL, "/v1/embeddings", "/v1/models", "/v1/models/{model}"} <= set(schema["paths"])
    assert "/v1/{rest}" not in schema["paths"]
    assert schema["paths"][URL]["post"]["security"] == [{"apiKey": []}, {}]
    described = set(schema["components"]["schemas"]["Completion"]["properties"])
    # The answer has no computed value, and shows no table.
    assert set(complete(api).json()) == described - {"computed", "table"}
