"""An answer whose passages have changed says so, and shows the words of then and now to those who may read them."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.answering import quoted_words
from chat.conversations import sharing
from chat.models import Citation, Conversation
from chat.pages.changes import ChangeKind, find_changes
from core.database import fetch_rows
from retrieval.models import Collection, Document, DocumentText
from tests.support.asking import client_of, saved_answer
from tests.support.libraries import remembered

pytestmark = pytest.mark.django_db

PAY = "# Pay\n\nPay comes on the 24th."
LEAVE = f"# Leave\n\nEmployees have 25 days of leave a year. Days that are left lapse in July.\n\n{PAY}"
QUOTE = "Employees have 25 days of leave a year."


@pytest.fixture
@remembered
def document(collection, ingest):
    return ingest(collection, "leave.md", LEAVE)


@pytest.fixture
def conversation(owner):
    return Conversation.objects.create(owner=owner, title="Leave")


@pytest.fixture
def answer(conversation, document):
    answer = saved_answer(conversation, "How many days?", document, text="You have 25 days [1].")
    version = DocumentText.objects.get(document=document).version
    Citation.objects.update(quote=QUOTE, section="Leave", text_version=version)
    return answer


def the_change(answer):
    [change] = find_changes(answer.citations.all()).values()
    return change


def page_of(client, answer):
    return client.get(f"/c/{answer.conversation_id}/").content.decode()


def test_a_changed_passage_is_shown_beside_its_words_of_then(answer, document, ingest, mine):
    assert "changed-sign" not in page_of(mine, answer)
    ingest(document.collection, "leave.md", LEAVE.replace("25 days", "27 days"))
    change = the_change(answer)
    assert (change.kind, change.then) == (ChangeKind.CHANGED, QUOTE)
    assert change.now == "Employees have 27 days of leave a year."
    text = DocumentText.objects.get(document=document).text
    start = text.index("Employees")
    assert change.href == f"/documents/{document.pk}/?start={start}&end={start + len(change.now)}#passage"
    page = page_of(mine, answer)
    assert f'href="#{change.anchor}" data-change' in page
    assert f'<details class="change" id="{change.anchor}">' in page
    assert "Employees have <del>25</del> days" in page
    assert "Employees have <ins>27</ins> days" in page
    # The marker, its card and the comparison lead to the words of today.
    assert page.count(f'href="{change.href.replace("&", "&amp;")}"') == 4


def test_an_answer_whose_words_are_in_the_documents_says_that_it_is_current(answer, document, ingest, mine):
    Document.objects.filter(pk=document.pk).update(ingested_at="2026-03-05T12:00:00Z")
    page = page_of(mine, answer)
    assert "Still current: the documents contain these words today. They were last read on 5 March 2026." in page
    ingest(document.collection, "leave.md", LEAVE.replace("25 days", "27 days"))
    assert "Still current" not in page_of(mine, answer)
    document.delete()
    assert "Still current" not in page_of(mine, answer)


def test_a_passage_without_a_like_one_is_missing(answer, document, ingest, mine):
    ingest(document.collection, "leave.md", "# Pay\n\nEmployees get their pay on the 24th of a month.")
    assert (the_change(answer).kind, the_change(answer).now) == (ChangeKind.MISSING, "")
    assert "The document has no passage like it." in page_of(mine, answer)


def test_a_removed_document_is_said_to_be_removed(answer, document, mine):
    document.delete()
    assert (the_change(answer).kind, the_change(answer).href) == (ChangeKind.REMOVED, "")
    page = page_of(mine, answer)
    assert "The document has been removed." in page
    assert QUOTE in page
    assert f"/documents/{answer.sources[0]['document']['id']}/" not in page


@pytest.mark.parametrize(
    "text",
    [
        "# About us\n\nWe make pumps.\n\n" + LEAVE,
        LEAVE.replace("# Leave", "# Holidays"),
        LEAVE.replace("25 days of leave", "25 days\nof leave"),
        LEAVE.replace("25 days", "**25 days**"),
        LEAVE.replace("the 24th", "the 25th"),
    ],
    ids=["moved", "another section", "another line", "other markup", "elsewhere"],
)
def test_the_same_words_are_no_change(text, answer, document, ingest, mine):
    ingest(document.collection, "leave.md", text)
    assert find_changes(answer.citations.all()) == {}
    assert "changed-sign" not in page_of(mine, answer)


def test_answers_of_earlier_releases_are_compared_by_their_words(answer, document, ingest):
    Citation.objects.update(text_version="")
    assert find_changes(answer.citations.all()) == {}
    ingest(document.collection, "leave.md", LEAVE.replace("25", "27"))
    assert the_change(answer).kind == ChangeKind.CHANGED


def test_a_conversation_costs_two_queries_more_at_most(answer, document, conversation, ingest, mine, monkeypatch):
    asked = []

    def count(sql, parameters):
        asked.append(sql)
        return fetch_rows(sql, parameters)

    monkeypatch.setattr(quoted_words, "fetch_rows", count)
    for number in range(5):
        saved_answer(conversation, f"Question {number}?", document, text="You have 25 days [1].")
    Citation.objects.update(quote=QUOTE, section="Leave")
    page_of(mine, answer)
    assert len(asked) == 1
    ingest(document.collection, "leave.md", LEAVE.replace("25", "27"))
    assert page_of(mine, answer).count('<details class="change"') == 6
    assert len(asked) == 3
    with CaptureQueriesContext(connection) as with_changes:
        page_of(mine, answer)
    ingest(document.collection, "leave.md", LEAVE)
    with CaptureQueriesContext(connection) as without:
        page_of(mine, answer)
    assert len(with_changes) == len(without)


def test_new_words_are_for_those_who_may_read_them(answer, document, conversation, ingest, mine, owner):
    token = sharing.share_conversation(conversation)
    ingest(document.collection, "leave.md", LEAVE.replace("25 days", "27 days"))
    assert "<ins>27</ins>" in Client().get(f"/s/{token}/").content.decode()
    Collection.objects.filter(pk=document.collection_id).update(visibility="staff")
    for page in (page_of(mine, answer), Client().get(f"/s/{token}/").content.decode()):
        for words in ("27 ", "changed-sign", 'class="change"', "Employees"):
            assert words not in page
    Collection.objects.filter(pk=document.collection_id).update(visibility="public")
    Document.objects.filter(pk=document.pk).update(metadata={"groups": ["hr"]})
    assert "<ins>" not in page_of(client_of(owner), answer)
    # A deleted document takes its rights along: only its own asker still reads what was quoted.
    document.delete()
    assert "Employees" not in Client().get(f"/s/{token}/").content.decode()
