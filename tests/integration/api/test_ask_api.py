import json
import time
import uuid

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient
from rest_framework.test import APIClient

from chat.answering import pipeline
from chat.conversations.rights import Rights
from chat.models import Answer, Conversation, Feedback
from chat.streaming import readers
from tests.integration.api.conftest import QUESTION, read_events
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/api/v1/ask/"


def ask(client, question=QUESTION, **fields):
    return client.post(URL, {"question": question, **fields}, format="json")


def rate(client, answer_id, body):
    return client.post(f"/api/v1/answers/{answer_id}/feedback/", body, format="json")


@pytest.fixture
def visitor():
    """Return the client of a browser without an account, and another one."""

    def browser():
        client = APIClient(raise_request_exception=False)
        client.session.save()  # sets the cookie
        return client

    return browser


def test_an_answer_cites_what_it_says(api, handbook):
    response = ask(api)
    assert response.status_code == 200
    body = response.json()
    assert set(body) >= {"answer", "refused", "citations", "search_method", "answer_id", "conversation"}
    assert {"statements", "confidence", "completed_question", "usage", "repeats"} <= set(body)
    assert "25 days" in body["answer"]
    assert body["refused"] is False
    assert body["search_method"] == "zscore"
    assert body["degraded"] == []
    citation = body["citations"][0]
    assert set(citation) >= {"marker", "chunk_id", "document", "section", "page", "quote", "start", "end", "support"}
    assert f"[{citation['marker']}]" in body["answer"]
    assert citation["document"]["title"] == "Holidays"
    assert citation["end"] - citation["start"] == len(citation["quote"])
    assert Answer.objects.get(pk=body["answer_id"]).status == Answer.Status.COMPLETED


def test_everything_in_the_answer_is_in_the_schema(api, handbook):
    body = ask(api).json()
    schemas = api.get("/api/schema/?format=json").json()["components"]["schemas"]
    # Only these fields may be absent.
    assert set(body) == set(schemas["Answer"]["properties"]) - {"computed", "table"}
    saved = api.get(f"/api/v1/answers/{body['answer_id']}/").json()
    assert set(saved) == set(schemas["SavedAnswer"]["properties"]) - {"computed", "table"}


def test_a_question_may_be_asked_anew(api, handbook):
    first = ask(api).json()
    assert (first["repeats"], first["repeated_from"]) == (False, None)
    again = ask(api).json()
    assert again["repeats"] is True
    assert again["repeated_from"] == Answer.objects.get(pk=first["answer_id"]).completed_at.isoformat()
    assert ask(api, anew=True).json()["repeats"] is False


def test_a_repeated_answer_does_not_lead_to_the_stranger_who_asked_first(api, handbook):
    first = ask(api).json()
    again = ask(api)
    url = f"/api/v1/answers/{again.json()['answer_id']}/"
    for told in (again, api.get(url), api.get(f"/api/v1/conversations/{again.json()['conversation']}/")):
        assert told.status_code == 200
        assert first["answer_id"] not in told.content.decode()
        assert first["conversation"] not in told.content.decode()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        ({"question": ""}, "question"),
        ({"question": " \n"}, "question"),
        ({"question": None}, "question"),
        ({"question": 7}, "question"),
        ({"question": ["a"]}, "question"),
        ({"question": "a\x00b"}, "question"),
        ({"question": "\udfff"}, "question"),
        ({"question": "x" * 501}, "question"),
        ({"question": "a", "conversation": "mine"}, "conversation"),
        ({"question": "a", "conversation": 3.5}, "conversation"),
        ({"question": "a", "conversation": str(uuid.uuid4())}, "conversation"),
        ({"question": "a", "collection": "nowhere"}, "collection"),
        ({"question": "a", "collection": {}}, "collection"),
        ({"question": "a", "method": "best"}, "method"),
        ({"question": "a", "stream": "perhaps"}, "stream"),
        ({"question": "a", "anew": "perhaps"}, "anew"),
    ],
)
def test_bad_input_is_refused_with_the_name_of_the_field(api, collection, body, field):
    response = api.post(URL, json.dumps(body), content_type="application/json")
    assert response.status_code == 400, response.content
    assert list(response.json()) == [field]
    assert not Answer.objects.exists()


@pytest.mark.parametrize("hyphen", ["-", "\u2010", "\u2011", "\u2013"])
def test_a_code_is_found_whichever_hyphen_the_question_has(api, collection, ingest, hyphen):
    ingest(collection, "pump.md", "# Pumps\n\nThe pump MX-9920-W weighs 3450 grams.")
    ingest(collection, "canteen.md", "# Canteen\n\nThe canteen opens at noon.")
    answer = ask(api, f"How much does the MX{hyphen}9920{hyphen}W weigh?").json()["answer"]
    assert answer.startswith("The pump MX-9920-W weighs 3450 grams.")


def test_an_address_without_its_slash_leads_to_the_same_request(api, handbook):
    body = json.dumps({"question": QUESTION})
    response = api.post(URL.rstrip("/"), body, content_type="application/json", follow=True)
    assert response.redirect_chain == [(URL, 308)]
    assert response.json()["answer"] == ask(api).json()["answer"]


def test_a_byte_order_mark_before_the_body_is_passed_over(api, handbook):
    body = b"\xef\xbb\xbf" + json.dumps({"question": QUESTION}).encode()
    assert api.post(URL, body, content_type="application/json").status_code == 200


def test_a_conversation_goes_on(visitor, handbook):
    browser = visitor()
    first = ask(browser).json()
    second = ask(browser, conversation=first["conversation"])
    assert second.status_code == 200
    assert second.json()["conversation"] == first["conversation"]
    assert ask(visitor(), conversation=first["conversation"]).status_code == 400


def test_an_answer_is_its_askers(visitor, staff_api, handbook):
    browser = visitor()
    body = ask(browser).json()
    url = f"/api/v1/answers/{body['answer_id']}/"
    own = browser.get(url)
    assert own.status_code == 200
    assert {name: own.json()[name] for name in body} == body
    assert own.json()["status"] == "completed"
    assert own.json()["question"] == QUESTION
    assert visitor().get(url).status_code == 404
    assert APIClient().get(url).status_code == 404
    stranger = APIClient()
    stranger.force_authenticate(make_reader("stranger"))
    assert stranger.get(url).status_code == 404
    assert rate(stranger, body["answer_id"], {"helpful": False}).status_code == 404
    assert staff_api.get(url).status_code == 200
    assert not Feedback.objects.exists()


def test_a_program_without_cookies_leaves_no_session_and_is_known_by_its_answers_id(api, handbook):
    from django.contrib.sessions.models import Session

    response = ask(api)
    assert not response.cookies
    assert not Session.objects.exists()
    assert rate(APIClient(), response.json()["answer_id"], {"helpful": True}).status_code == 201


def test_feedback_is_kept_and_replaced(visitor, handbook):
    browser = visitor()
    answer_id = ask(browser).json()["answer_id"]
    first = rate(browser, answer_id, {"helpful": False, "reason": "outdated", "comment": "That was last year."})
    assert first.status_code == 201
    assert first.json()["reason"] == "outdated"
    feedback = Feedback.objects.get(answer=answer_id)
    assert (feedback.helpful, feedback.reason, feedback.comment) == (False, "outdated", "That was last year.")
    told = browser.get(f"/api/v1/answers/{answer_id}/").json()["feedback"]
    assert told == {name: first.json()[name] for name in told}
    assert rate(browser, answer_id, {"helpful": True}).status_code == 200
    feedback = Feedback.objects.get(answer=answer_id)
    assert (feedback.helpful, feedback.reason, feedback.comment) == (True, "", "")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "helpful"),
        ({"helpful": None}, "helpful"),
        ({"helpful": "perhaps"}, "helpful"),
        ({"helpful": True, "comment": "\x00"}, "comment"),
        ({"helpful": True, "comment": "x" * 2001}, "comment"),
        ({"helpful": True, "comment": 4}, "comment"),
        ({"helpful": False, "reason": "boring"}, "reason"),
        ({"helpful": False, "reason": 4}, "reason"),
        ({"helpful": True, "reason": "wrong"}, "reason"),
    ],
)
def test_bad_feedback_is_refused_by_name(api, collection, body, field):
    answer = Answer.objects.create(
        conversation=Conversation.objects.create(), question="Why?", status=Answer.Status.COMPLETED
    )
    response = rate(api, answer.pk, body)
    assert response.status_code == 400
    assert list(response.json()) == [field]


def test_feedback_waits_for_the_answer_and_needs_one(api, collection):
    answer = Answer.objects.create(conversation=Conversation.objects.create(), question="Why?")
    assert rate(api, answer.pk, {"helpful": True}).status_code == 409
    assert rate(api, uuid.uuid4(), {"helpful": True}).status_code == 404
    assert rate(api, "not-an-id", {"helpful": True}).status_code == 404


async def stream(client, **fields):
    body = json.dumps({"question": QUESTION, "stream": True, **fields})
    response = await client.post(URL, body, content_type="application/json")
    assert response.status_code == 200
    return response, b"".join([part async for part in response.streaming_content])


async def test_a_stream_ends_with_the_whole_answer(handbook):
    client = AsyncClient()
    response, raw = await stream(client)
    assert response["Content-Type"].startswith("text/event-stream")
    assert response["Cache-Control"] == "private, no-store, no-transform"
    events = read_events(raw)
    names = [name for _, name, _ in events]
    assert (names[0], names[-1]) == ("searched", "completed"), events
    assert set(names[1:-1]) == {"token"}
    ids = [event_id for event_id, _, _ in events]
    assert len(set(ids)) == len(ids)
    completed = events[-1][2]
    assert "text" not in completed
    assert "".join(payload["text"] for _, name, payload in events if name == "token").strip() == completed["answer"]
    saved = await client.get(f"/api/v1/answers/{completed['answer_id']}/")
    assert {name: saved.json()[name] for name in completed} == completed


async def test_a_right_given_a_moment_ago_counts(handbook, monkeypatch):
    before = Rights(frozenset(), (), reads_all=False, reads_deleted=False)
    monkeypatch.setitem(readers._RIGHTS, (None, None, ""), (time.monotonic() + 60, before))
    _, raw = await stream(AsyncClient())
    assert read_events(raw)[-1][1] == "completed"


async def test_a_stream_holds_no_database_connection_while_it_waits(handbook, monkeypatch):
    client = AsyncClient()
    held = []
    whole = pipeline.answer_question

    async def watched(*args, **kwargs):
        async for event in whole(*args, **kwargs):
            held.append(await sync_to_async(lambda: connections["default"].connection is not None)())
            yield event

    monkeypatch.setattr(pipeline, "answer_question", watched)
    await stream(client)
    assert held
    assert not any(held)
