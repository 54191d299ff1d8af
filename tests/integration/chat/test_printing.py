"""An answer on paper and as a file: footnotes, quotes, versions, dates, and only what the reader may see."""

import re

import pytest
from django.test import Client

from chat.conversations import sharing
from chat.models import ApprovedAnswer, Citation, Conversation
from chat.pages.answer_files import build_file_name
from retrieval.models import Collection, DocumentText
from tests.support.asking import answered as ask_and_wait
from tests.support.asking import client_of, saved_answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation(owner):
    return Conversation.objects.create(owner=owner, title="Weights")


@pytest.fixture
def document(collection, ingest):
    return ingest(collection, "sheet.txt", "The pump weighs 3450 grams.")


@pytest.fixture
def private(ingest):
    closed = Collection.objects.create(slug="closed", name="Closed", visibility="staff")
    return ingest(closed, "secret.txt", "The secret pump weighs 1 gram.")


def saved(client, answer, **query):
    response = client.get(f"/c/{answer.conversation_id}/save/", {"answer": answer.pk, **query})
    assert response.status_code == 200
    return response


def test_the_file_has_all_that_a_reader_of_paper_needs(conversation, document, mine, owner):
    approved = ApprovedAnswer.objects.create(
        question="x", text="x", collection=document.collection, approved_by=owner, approved_at="2026-11-01T12:00Z"
    )
    answer = saved_answer(
        conversation, "How heavy is it?", document, completed_at="2026-11-02T12:00Z", approved=approved,
        collection=document.collection,
    )  # fmt: skip
    version = DocumentText.objects.get(document=document).version
    Citation.objects.update(text_version=version, section="Measures", page=3)
    response = saved(mine, answer)
    assert response["Content-Type"] == "text/markdown; charset=utf-8"
    assert response["Content-Disposition"] == 'attachment; filename="how-heavy-is-it.md"'
    text = response.content.decode()
    assert text.startswith("# How heavy is it?\n")
    assert "It weighs 3450 grams[^1]." in text
    note = text[text.index("\n[^1]: ") :]
    assert "Sheet" in note
    assert "Measures" in note
    assert "page\u00a03" in note
    assert "    > 3450 grams" in note
    assert f"Version {version[:12]}, read on " in note
    assert f"http://testserver/documents/{document.pk}/?start=16&end=26#passage" in note
    for fact in (
        "2 November 2026",
        f"the collection “{document.collection.name}”",
        "http://testserver/",
        "Approved by owner",
    ):
        assert fact in text


def test_the_page_has_the_same_and_no_controls_on_paper(conversation, document, mine):
    answer = saved_answer(conversation, "How heavy is it?", document)
    page = mine.get(f"/c/{conversation.pk}/print/", {"answer": answer.pk}).content.decode()
    assert f'href="#note-{answer.pk}-1"' in page
    assert f'<li id="note-{answer.pk}-1" value="1">' in page
    for words in (
        "How heavy is it?",
        "<blockquote>3450 grams</blockquote>",
        "http://testserver/documents/",
        "all collections",
    ):
        assert words in page
    assert "<textarea" not in page
    assert "hx-post" not in page


@pytest.mark.django_db(transaction=True)
def test_a_citation_keeps_the_version_that_it_quotes(collection, ingest, owner):
    document = ingest(collection, "pump.md", "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor pump. It weighs 3450 grams.")
    answer = ask_and_wait(user=owner, visitor="")
    was = DocumentText.objects.get(document=document).version
    assert {each.text_version for each in answer.citations.all()} == {was}
    ingest(collection, "pump.md", "# MX-9920-W\n\nThe MX-9920-W is a wet-rotor pump. It weighs 3600 grams.")
    now = DocumentText.objects.get(document=document).version
    text = saved(client_of(owner), answer).content.decode()
    assert f"Version {was[:12]}; version {now[:12]} has replaced it" in text
    assert "3450 grams" in text
    document.delete()
    text = saved(client_of(owner), answer).content.decode()
    assert f"Version {was[:12]}. The document has been removed since." in text


def test_several_answers_have_footnotes_of_their_own(conversation, document, mine):
    for question in ("One?", "Two?"):
        saved_answer(conversation, question, document)
    text = mine.get(f"/c/{conversation.pk}/save/").content.decode()
    assert re.findall(r"^\[\^\S+\]:", text, re.MULTILINE) == ["[^1-1]:", "[^2-1]:"]
    assert mine.get(f"/c/{conversation.pk}/print/").content.decode().count("<blockquote>") == 2


def test_nobody_prints_what_he_may_not_read(conversation, document, private, mine):
    open_answer = saved_answer(conversation, "Open?", document)
    closed_answer = saved_answer(conversation, "Closed?", private, text="It weighs 1 gram [1].")
    for path in ("print", "save"):
        own = mine.get(f"/c/{conversation.pk}/{path}/").content.decode()
        assert "3450 grams" in own
        assert "documents that you may no longer read" in own
        for words in ("1 gram", "secret"):
            assert words not in own
        assert Client().get(f"/c/{conversation.pk}/{path}/").status_code == 404
        # Nobody finds out whose answer an id is.
        stranger = Client().get(f"/c/{conversation.pk}/{path}/", {"answer": open_answer.pk})
        assert stranger.status_code == 404

    token = sharing.share_conversation(conversation)
    for path in ("print", "save"):
        response = Client().get(f"/s/{token}/{path}/")
        theirs = response.content.decode()
        assert response["X-Robots-Tag"] == "noindex, nofollow"
        assert "3450 grams" in theirs
        assert "documents that you may not read" in theirs
        for words in ("1 gram", "secret", "Closed?", str(closed_answer.pk)):
            assert words not in theirs
    sharing.share_conversation(conversation, Conversation.ShareScope.ANSWER, answer=open_answer)
    assert "Closed" not in Client().get(f"/s/{token}/save/").content.decode()
    sharing.stop_sharing(conversation)
    assert Client().get(f"/s/{token}/save/").status_code == 404


def test_the_name_of_a_collection_is_said_to_its_readers_alone(conversation, document, mine):
    closed = Collection.objects.create(slug="board", name="Board minutes", visibility="staff")
    refused = saved_answer(conversation, "x", document, collection=closed, refused=True, state="nothing", sources=[])
    Citation.objects.all().delete()
    assert "Board" not in saved(mine, refused).content.decode()


def test_signs_of_markdown_in_a_title_are_words(conversation, document, mine):
    answer = saved_answer(conversation, "What is *x* in [y](z)?", document)
    Citation.objects.update(document_title="[a](http://evil) _b_")
    text = saved(mine, answer).content.decode()
    assert r"# What is \*x\* in \[y\](z)?" in text
    assert r"[^1]: \[a\](http://evil) \_b\_" in text


@pytest.mark.parametrize(
    ("heading", "name"), [("Wat is één?", "wat-is-een.md"), ("什么", "answer.md"), ("x" * 90, "x" * 60 + ".md")]
)
def test_a_file_is_named_for_its_question(heading, name):
    assert build_file_name(heading) == name
