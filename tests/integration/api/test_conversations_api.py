import uuid

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from chat.conversations import rights
from chat.models import Answer, Conversation
from tests.support.keys import key_of
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db

URL = "/api/v1/conversations/"


def url(conversation):
    return f"{URL}{getattr(conversation, 'pk', conversation)}/"


def conversation(*questions, **fields):
    """Return a conversation whose answers are the questions in capitals."""
    made = Conversation.objects.create(title=questions[0], **fields)
    for question in questions:
        Answer.objects.create(
            conversation=made, question=question, text=question.upper(), status=Answer.Status.COMPLETED
        )
    return made


@pytest.fixture
def reader():
    return make_reader("reader")


@pytest.fixture
def reader_api(reader):
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Token {key_of(reader)}")
    return client


@pytest.fixture
def browser():
    """Return a browser without an account, that has asked before under this name."""

    def browse(name):
        client = APIClient(raise_request_exception=False)
        session = client.session
        session[rights.VISITOR_KEY] = name
        session.save()
        return client

    return browse


def listed(client, **query):
    response = client.get(URL, query)
    assert response.status_code == 200, response.content
    return [found["title"] for found in response.json()["results"]]


def test_one_sees_ones_own_the_newest_first(reader, reader_api, api, staff_api, browser):
    conversation("the reader's first", owner=reader, updated_at=timezone.now() - timezone.timedelta(days=1))
    conversation("the reader's second", owner=reader)
    conversation("a visitor's", visitor="one")
    conversation("nobody's")
    assert listed(reader_api) == ["the reader's second", "the reader's first"]
    assert listed(browser("one")) == ["a visitor's"]
    assert listed(browser("two")) == []
    assert listed(api) == []
    assert listed(staff_api) == []


def test_the_list_is_paged(reader, reader_api):
    for number in range(5):
        conversation(f"question {number}", owner=reader)
    body = reader_api.get(URL, {"limit": 2, "offset": 4}).json()
    assert body["count"] == 5
    assert [found["title"] for found in body["results"]] == ["question 0"]
    assert body["next"] is None
    assert "offset=2" in body["previous"]


def test_a_conversation_comes_with_its_answers(reader, reader_api, collection):
    body = reader_api.get(url(conversation("first?", "second?", owner=reader, collection=collection))).json()
    assert body["title"] == "first?"
    assert body["collection"] == "library"
    told = [(answer["question"], answer["answer"], answer["status"]) for answer in body["answers"]]
    assert told == [("first?", "FIRST?", "completed"), ("second?", "SECOND?", "completed")]
    assert body["answers"][0] == reader_api.get(f"/api/v1/answers/{body['answers'][0]['answer_id']}/").json()
    schema = reader_api.get("/api/schema/?format=json").json()["components"]["schemas"]
    assert set(body) == set(schema["ConversationWithAnswers"]["properties"])


def test_reading_takes_the_same_number_of_queries_however_long_it_is(reader, reader_api, django_assert_max_num_queries):
    made = conversation(*(f"question {number}?" for number in range(20)), owner=reader)
    for first in conversation(*(f"question {number}?" for number in range(20))).answers.all():
        made.answers.filter(question=first.question).update(repeats=first)
    with django_assert_max_num_queries(11):
        assert len(reader_api.get(url(made)).json()["answers"]) == 20


def test_a_conversation_is_forgotten_with_its_answers(reader, reader_api):
    made, kept = conversation("first?", owner=reader), conversation("kept?", owner=reader)
    assert reader_api.delete(url(made)).status_code == 204
    assert reader_api.get(url(made)).status_code == 404
    assert list(Answer.objects.values_list("question", flat=True)) == ["kept?"]
    assert list(Conversation.objects.all()) == [kept]


@pytest.mark.parametrize("method", ["get", "delete"])
def test_somebody_elses_is_not_found(reader, api, staff_api, browser, method):
    users, visitors = conversation("a user's?", owner=reader), conversation("a visitor's?", visitor="one")

    def status(client, made):
        return getattr(client, method)(url(made)).status_code

    other = APIClient()
    other.force_authenticate(make_reader("other"))
    for stranger in (other, api, staff_api, browser("two")):
        for made in (users, visitors, uuid.uuid4()):
            assert status(stranger, made) == 404
    assert status(browser("one"), visitors) in (200, 204)


def test_what_a_program_without_cookies_asked_is_reached_by_its_id(api):
    made = conversation("first?")
    assert api.get(url(made)).status_code == 200
    assert api.delete(url(made)).status_code == 204


def test_looking_around_begins_no_session(api):
    assert not api.get(URL).cookies
