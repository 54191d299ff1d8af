"""Behaviour that the API, OpenAI's protocol and the Model Context Protocol share."""

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from rest_framework.test import APIClient
from rest_framework.throttling import ScopedRateThrottle

from chat.answering import pipeline
from chat.models import Answer, QuestionBudget
from chat.streaming import asking
from chat.types import FailedEvent
from retrieval.models import Collection
from tests.support.keys import key_of
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "When is the merger with Initech announced?"
FAILED = "The model does not answer. Please try again."


def over_mcp(client, tool, **arguments):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return client.post("/mcp", message, format="json", HTTP_ACCEPT="application/json, text/event-stream")


ASKING = {
    "ask": lambda client, question=QUESTION: client.post("/api/v1/ask/", {"question": question}, format="json"),
    "completions": lambda client, question=QUESTION: client.post(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": question}]}, format="json"
    ),
    "mcp": lambda client, question=QUESTION: over_mcp(client, "ask", question=question),
}
SEARCHING = {
    "search": lambda client, query=QUESTION: client.post("/api/v1/search/", {"query": query}, format="json"),
    "mcp": lambda client, query=QUESTION: over_mcp(client, "search", query=query),
}
READING = ["/api/v1/conversations/", "/api/v1/collections/", "/api/v1/documents/", "/v1/models"]

asking_doors = pytest.mark.parametrize("door", ASKING.values(), ids=ASKING)
all_doors = pytest.mark.parametrize(
    "door", [*ASKING.values(), *SEARCHING.values()], ids=[*ASKING, "search", "mcp search"]
)


@pytest.fixture
def secret(collection, ingest):
    closed = Collection.objects.create(slug="secret", name="Secret", visibility="staff")
    ingest(closed, "plans.md", "# Plans\n\nThe merger with Initech is announced in March.")
    return closed


@all_doors
def test_private_documents_are_told_to_staff_alone(door, api, secret):
    editor = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(User.objects.create_user('editor', is_staff=True))}")
    assert "March" in door(editor).content.decode()
    assert "March" not in door(api).content.decode()


@all_doors
def test_a_site_that_requires_login_refuses_strangers(door, api, collection, settings):
    answer = asking.create_answer(QUESTION, user=make_reader("reader"), visitor="")
    settings.CHAT_REQUIRES_LOGIN = True
    assert door(api).status_code == 401
    addresses = [*READING, f"/api/v1/conversations/{answer.conversation_id}/", f"/api/v1/answers/{answer.pk}/stream/"]
    assert {api.get(address).status_code for address in addresses} == {401}
    assert api.post(f"/api/v1/answers/{answer.pk}/stop/").status_code == 401
    assert Answer.objects.count() == 1


@asking_doors
@pytest.mark.parametrize("limit", ["rate", "budget"])
def test_questions_are_counted_together(door, limit, collection, monkeypatch):
    reader = make_reader("reader")
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(reader)}")
    if limit == "rate":
        monkeypatch.setattr(ScopedRateThrottle, "THROTTLE_RATES", {"ask": "1/min", "search": "2/min"})
    else:
        QuestionBudget.objects.create(user=reader, questions_a_day=1)
    assert ASKING["ask"](client).status_code == 200
    refused = door(client)
    if limit == "budget" and door is ASKING["mcp"]:
        assert "all the questions that you may ask today" in refused.content.decode()
        return
    assert (refused.status_code, int(refused["Retry-After"]) > 0) == (429, True)
    if door is ASKING["completions"]:
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("door", SEARCHING.values(), ids=SEARCHING)
def test_searches_are_counted_together(door, api, collection, monkeypatch):
    monkeypatch.setattr(ScopedRateThrottle, "THROTTLE_RATES", {"ask": "1/min", "search": "1/min"})
    assert [SEARCHING["search"](api).status_code, door(api).status_code] == [200, 429]


@asking_doors
def test_a_failed_answer_says_why(door, api, collection, monkeypatch):
    async def fail(*_args, **_options):
        yield FailedEvent(FAILED)

    monkeypatch.setattr(pipeline, "answer_question", fail)
    response = door(api)
    assert FAILED in response.content.decode()
    # A refusal of a tool is a result of the protocol.
    assert response.status_code == (200 if door is ASKING["mcp"] else 503)


@all_doors
@pytest.mark.parametrize("fault", [OperationalError("server at 10.1.2.3 is gone"), KeyError("10.1.2.3")])
def test_a_fault_is_told_without_its_words(door, fault, api, collection, monkeypatch):
    def break_down(*_args, **_options):
        raise fault

    monkeypatch.setattr(asking, "create_answer", break_down)
    monkeypatch.setattr("retrieval.api.endpoints.build_filters", break_down)
    told = door(api).content.decode()
    assert "10.1.2.3" not in told
    assert ("cannot answer at the moment" in told) == isinstance(fault, OperationalError)


@pytest.mark.parametrize("address", ["/api/v1/search/", "/api/v1/ask/", "/v1/chat/completions", "/v1/embeddings"])
@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"[]", b"3", b'"text"', b"null", b"[" * 200_000, b"\xff\xfe{\x00}\x00"),
        *(b'{"query": NaN}', b'{"query": "\xff"}', b'{"query": 1e999}', b'{"query": ' + b"9" * 5000 + b"}"),
        b'{"query": "a", "filters": {"metadata": ' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}}",
    ],
    ids=lambda raw: raw[:12],
)
def test_a_body_that_is_no_request_is_refused(api, collection, address, raw):
    response = api.post(address, raw, content_type="application/json")
    assert (response.status_code, len(response.json())) == (400, 1)
    assert ("error" in response.json()) == address.startswith("/v1/")
    assert not Answer.objects.exists()


@all_doors
@pytest.mark.parametrize("question", ["-lasagne", '-"two words"', "-lasagne, -pizza!", " -lasagne?"])
def test_a_question_of_exclusions_alone_is_refused(door, question, api, collection):
    response = door(api, question)
    assert response.status_code == (200 if "mcp" in response.wsgi_request.path else 400)
    assert "only says what to leave out" in response.content.decode()
    assert not Answer.objects.exists()
