"""The scope of a question, changed within a conversation, and questions that are edited into a branch."""

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.conversations import rights
from chat.conversations.history import find_earlier_sources, list_turns_before
from chat.models import Answer
from chat.streaming import asking, streams
from retrieval.models import Collection, Document
from tests.support.asking import VISITOR, answered, client_of
from tests.support.libraries import remembered
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
@remembered
def library(collection, ingest):
    """Two collections, each with a pump; the first also with a valve."""
    other = Collection.objects.create(slug="archive", name="Archive", text_search_configuration="english")
    ingest(collection, "pump.md", "# New pump\n\nThe new pump weighs 3450 grams. It is made of steel.")
    ingest(collection, "valve.md", "# Valve\n\nThe ball valve weighs 300 grams. It is made of brass.")
    ingest(other, "old.md", "# Old pump\n\nThe old pump weighs 9900 grams. It is made of cast iron.")
    return collection


@pytest.fixture
def browser(library):
    return client_of(visitor=VISITOR)


def found(answer):
    return {source["document"]["title"] for source in answer.sources}


def test_later_questions_search_the_collection_that_was_chosen_last(library):
    first = answered("How heavy is the pump?", collection="library")
    moved = answered("How heavy is the pump?", conversation_id=first.conversation_id, collection="archive")
    follow_up = answered("what is it made of?", conversation_id=first.conversation_id)
    everywhere = answered("How heavy is the pump?", conversation_id=first.conversation_id, collection="")
    assert (found(moved), found(follow_up)) == ({"Old pump"}, {"Old pump"})
    assert "Old pump" not in found(first)
    assert {"Old pump", "New pump"} <= found(everywhere)
    # Each answer keeps the scope that was searched.
    assert [answer.collection and answer.collection.slug for answer in first.conversation.answers.all()] == [
        "library",
        "archive",
        "archive",
        None,
    ]
    with pytest.raises(asking.InvalidQuestion):
        answered("How heavy?", conversation_id=first.conversation_id, collection="nowhere")


def test_a_document_alone_is_searched_until_that_is_taken_back(library, browser):
    valve = Document.objects.get(source="valve.md")
    page = browser.get(f"/?document={valve.pk}").content.decode()
    assert "Only “Valve”" in page
    browser.post("/ask/", {"question": "What is made of steel?", "document": valve.pk, "collection": ""})
    refused = Answer.objects.get()
    assert found(refused) <= {"Valve"}
    page = browser.get(f"/c/{refused.conversation_id}/").content.decode()
    assert "Only “Valve”" in page
    assert found(answered("How heavy is it?", conversation_id=refused.conversation_id)) == {"Valve"}
    # If the document's box is off, the form names the collection alone.
    browser.post(
        "/ask/", {"question": "How heavy is the pump?", "conversation": refused.conversation_id, "collection": ""}
    )
    assert "New pump" in found(Answer.objects.latest("created_at"))
    assert "Only “Valve”" not in browser.get(f"/c/{refused.conversation_id}/").content.decode()


def test_what_came_in_a_document_is_searched_with_it(library):
    letter = Document.objects.get(source="pump.md")
    Document.objects.filter(source="valve.md").update(parent=letter)
    assert found(answered("How heavy is the valve?", document=letter.pk)) == {"New pump", "Valve"}


def test_a_document_that_may_not_be_read_is_no_scope(library, browser):
    pump = Document.objects.get(source="pump.md")
    Collection.objects.filter(pk=library.pk).update(visibility="staff")
    for wanted in (str(pump.pk), "9" * 30, "x"):
        assert "Only “" not in browser.get(f"/?document={wanted}").content.decode()
    sent = {"question": "How heavy?", "document": pump.pk, "collection": ""}
    assert "There is no such document." in browser.post("/ask/", sent, **HTMX).content.decode()


def test_an_edited_question_begins_a_branch_that_remembers_what_came_before(library, browser):
    first = answered("How heavy is the ball valve?", collection="library")
    for stranger, edits in ((Client(), first.pk), (browser, "no id")):
        assert stranger.post("/ask/", {"question": "x y z?", "edits": edits}, **HTMX).status_code == 404
    second = answered("what is it made of?", conversation_id=first.conversation_id)
    third = answered("How heavy is the new pump?", conversation_id=first.conversation_id)
    response = browser.post("/ask/", {"question": "and what is its weight?", "edits": second.pk}, **HTMX)
    branched = Answer.objects.latest("created_at")
    assert response.headers["HX-Redirect"] == f"/c/{branched.conversation_id}/"
    assert branched.conversation_id != first.conversation_id
    assert branched.collection == library
    assert [turn.question for turn in list_turns_before(branched)] == [first.question]
    async_to_sync(streams.complete_answer)(branched.pk)
    page = browser.get(f"/c/{branched.conversation_id}/").content.decode()
    assert f'href="/c/{first.conversation_id}/#answer-{second.pk}"' in page
    assert first.question in page
    assert third.question not in page.partition('id="turns"')[2]
    assert page.count('name="edits"') == 1  # Earlier answers are there to read.
    assert first.conversation.answers.count() == 3
    # A branch of the branch remembers both.
    later = answered("and in pounds?", conversation_id=branched.conversation_id)
    browser.post("/ask/", {"question": "and its price?", "edits": later.pk}, **HTMX)
    again = Answer.objects.latest("created_at")
    assert [turn.question for turn in list_turns_before(again)] == [first.question, branched.question]
    # Deleted means deleted: the branch stays without what came before it.
    first.conversation.delete()
    again.refresh_from_db()
    assert [turn.question for turn in list_turns_before(Answer.objects.get(pk=again.pk))] == [branched.question]


def test_the_earlier_answers_of_a_conversation_are_read_at_once(library):
    last = answered("How heavy is the ball valve?", collection="library")
    queries = []
    for question in ("How heavy is the new pump?", "what is it made of?", "And the ball valve?"):
        last = answered(question, conversation_id=last.conversation_id)
        with CaptureQueriesContext(connection) as taken:
            list_turns_before(last)
            find_earlier_sources(last)
        queries.append(len(taken))
    assert len(list_turns_before(last)) == 3
    assert queries[0] == queries[-1]


def test_a_branch_shows_nothing_that_was_lost_since(library):
    owner = make_reader("owner")
    client = client_of(owner)
    begun = answered("How heavy is the old pump?", user=owner, visitor="", collection="archive")
    client.post("/ask/", {"question": "and the valve?", "conversation": begun.conversation_id, "collection": "library"})
    client.post("/ask/", {"question": "and the ball valve?", "edits": Answer.objects.latest("created_at").pk})
    branch = Answer.objects.latest("created_at").conversation
    assert "9900" in client.get(f"/c/{branch.pk}/").content.decode()
    Collection.objects.filter(slug="archive").update(visibility="staff")
    assert rights.is_withheld(owner, Answer.objects.get(pk=begun.pk))
    assert "9900" not in client.get(f"/c/{branch.pk}/").content.decode()
