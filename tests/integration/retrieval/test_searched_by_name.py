"""A collection that is searched only when it is chosen, and the questions that a collection suggests."""

import pytest
from django.contrib.auth.models import AnonymousUser

from chat.pages.suggestions import list_suggestions
from ragsite.processes.first_run import COLLECTIONS, SUGGESTED
from retrieval.models import Collection
from retrieval.rights.search_filters import build_filters, build_unrestricted_filters
from tests.support.asking import answered

pytestmark = pytest.mark.django_db(transaction=True)

GUIDE = "# Backups\n\n## How do I make a backup of the whole site?\n\nRun the backup command every night.\n"
PUMPS = "# Pumps\n\n## How often is the wet-rotor pump cleaned?\n\nThe wet-rotor pump is cleaned every year.\n"
PARTS = "# Parts\n\n## 12 Seal kit\n\nThe seal kit comes with two rings.\n"


@pytest.fixture
def collections(ingest):
    guide = Collection.objects.create(slug="guide", name="Guide", is_searched_by_name=True)
    pumps = Collection.objects.create(slug="pumps", name="Pumps")
    ingest(guide, "guide.md", GUIDE)
    ingest(pumps, "pumps.md", PUMPS)
    ingest(pumps, "parts.md", PARTS)
    return guide, pumps


def test_questions_of_all_documents_leave_it_out(collections):
    guide, pumps = collections
    visitor = AnonymousUser()
    assert build_filters(visitor).collections == build_unrestricted_filters().collections == (pumps.pk,)
    assert build_filters(visitor, "guide").collections == (guide.pk,)
    # A caller that names documents of a collection has chosen it.
    assert guide.pk in build_filters(visitor, documents=(guide.documents.get().pk,)).collections
    question = "How do I make a backup of the whole site?"
    everywhere, chosen = answered(question), answered(question, collection="guide")
    assert {source["document"]["title"] for source in everywhere.sources} <= {"Pumps", "Parts"}
    assert chosen.sources[0]["document"]["title"] == "Backups"


def test_no_program_finds_it_without_its_name(collections, client):
    ask = {"messages": [{"role": "user", "content": "How do I make a backup of the whole site?"}], "model": "ragsite"}
    assert "every night" not in client.post("/v1/chat/completions", ask, "application/json").content.decode()
    ask["model"] = "ragsite/guide"
    assert "every night" in client.post("/v1/chat/completions", ask, "application/json").content.decode()
    call = {"name": "search", "arguments": {"query": "backup"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    assert "every night" not in client.post("/mcp", message, "application/json", headers=accept).content.decode()
    found = client.get("/api/v1/search/", {"q": "backup"}).content.decode()
    assert "every night" not in found


def test_it_is_searched_where_there_is_no_other(collections):
    guide, pumps = collections
    pumps.delete()
    assert build_filters(AnonymousUser()).collections == (guide.pk,)


def test_the_front_page_suggests_three_questions_of_a_collection(collections, client):
    guide, pumps = collections
    # The site found this question itself, because the search is sure of its answer.
    assert [question for question, _ in list_suggestions(AnonymousUser())] == [
        "How often is the wet-rotor pump cleaned?"
    ]
    pumps.suggested_questions = "Which rings?\n\n  What   is cleaned? \nWhat is a seal kit?\nAnd a fourth?\n"
    pumps.save()
    assert [question for question, _ in list_suggestions(AnonymousUser())] == [
        "Which rings?",
        "What is cleaned?",
        "What is a seal kit?",
    ]
    assert [collection for _, collection in list_suggestions(AnonymousUser(), "guide")] == [guide]
    assert "Which rings?" in client.get("/").content.decode()
    chosen = client.get("/?collection=guide").content.decode()
    assert "How do I make a backup of the whole site?" in chosen
    assert "Which rings?" not in chosen


def test_the_demo_has_its_own():
    assert SUGGESTED.keys() == COLLECTIONS.keys()
    assert all(len(questions) == 3 for questions in SUGGESTED.values())


def test_a_page_of_one_document_suggests_that_documents_questions(collections, client):
    _guide, pumps = collections
    document = pumps.documents.get(title="Pumps")
    page = client.get(f"/?document={document.pk}").content.decode()
    suggested = page.partition('id="suggestions"')[2]
    assert suggested.count('name="question"') == 1
    assert "How often is the wet-rotor pump cleaned?" in suggested
    assert f'name="document" value="{document.pk}"' in suggested
