"""A curator mends an answer in the browser."""

import pytest
from playwright.sync_api import FilePayload, expect

from tests.browser.conftest import PHONE
from tests.browser.pages import ask, is_too_wide, violations

QUESTION = "Who waters the plants of the ground floor?"


@pytest.fixture
def asked(site, page):
    """Ask a question that no document answers, and yield the address of its mend page."""
    from chat.models import Answer
    from retrieval.models import Chunk, Document

    page.goto(site.url)
    ask(page, QUESTION)
    with site.data():
        before = set(Document.objects.values_list("pk", flat=True))
        answer = Answer.objects.get(question=QUESTION)
    yield f"{site.url}/admin/chat/answer/{answer.pk}/mend/"

    def restore():
        from retrieval.index.chunk_writer import replace_chunk_questions

        for chunk in Chunk.objects.filter(canonical_questions__contains=[QUESTION]):
            replace_chunk_questions(chunk, [])
        Document.objects.exclude(pk__in=before).delete()
        Answer.objects.filter(question=QUESTION).delete()

    site.do(restore)


def read_answer(site, visitor):
    reader = visitor()
    reader.goto(site.url)
    return ask(reader, QUESTION)


def test_a_given_question_is_compared_and_taken_back_or_saved(site, visitor, asked):
    page = visitor(**PHONE)
    site.sign_in(page)
    page.goto(f"{asked}?find=setVar")
    way = page.locator("details", has=page.get_by_role("heading", name="Give a passage the question"))
    expect(way.locator(".curation-excerpt mark").first).to_be_visible()
    trial = page.get_by_role("region", name="As it would be answered")
    for choice in ("Take back", "Save"):
        way.get_by_role("radio").first.check()
        way.get_by_role("button", name="Give it the question").click()
        expect(page.get_by_role("region", name="As it was answered")).to_be_visible()
        expect(trial).to_contain_text("The new answer quotes the passage.")
        expect(trial).to_contain_text("Confidence: 100 %")
        assert violations(page) == []
        assert not is_too_wide(page)
        if choice == "Take back":
            trial.get_by_role("link", name=choice).click()
            expect(trial).to_have_count(0)
            expect(read_answer(site, visitor).locator(".answer.is-refused")).to_be_visible()
            page.goto(f"{asked}?find=setVar")
        else:
            trial.get_by_role("button", name=choice).click()
            expect(page.get_by_text("Saved. The passage has the question now")).to_be_visible()
    turn = read_answer(site, visitor)
    expect(turn.locator("[data-answer-text]")).to_contain_text("setVar")


def test_an_added_document_is_read_and_the_question_asked_again(site, page, asked):
    site.sign_in(page)
    page.goto(asked)
    page.get_by_role("heading", name="Add or correct a document").click()
    page.get_by_role("link", name="Add documents to Lingo language reference").click()
    expect(page.get_by_label("Collection").locator("option:checked")).to_have_text("Lingo language reference")
    text = b"# Plants\n\nThe porter waters the plants of the ground floor on Mondays.\n"
    page.set_input_files("#id_file", [FilePayload(name="plants.md", mimeType="text/markdown", buffer=text)])
    expect(page.locator(".uploads .ragsite-status")).to_have_text("waiting")
    page.get_by_role("link", name="Back to the page from which you came").click()
    added = page.get_by_role("region", name="Added or read again since")
    again = added.get_by_role("button", name="Ask again with these documents")
    expect(added).to_contain_text("plants")
    expect(again).to_be_hidden()
    site.work()
    # The status changes without a reload.
    expect(again).to_be_visible()
    assert violations(page) == []
    again.click()
    expect(page.get_by_role("region", name="As it is answered now")).to_contain_text("The porter waters the plants")


def test_who_sees_a_collection_is_listed_before_an_account_is_named(site, visitor):
    page = visitor(**PHONE)
    site.sign_in(page)
    page.goto(f"{site.url}/admin/retrieval/collection/")
    page.get_by_role("link", name="Lingo language reference").click()
    page.get_by_role("link", name="Who sees this?").click()
    readers = page.get_by_role("region", name="Who may read it")
    expect(readers.get_by_role("row", name="Visitors without an account")).to_contain_text("is open to everybody")
    expect(page.locator("#accounts option[value=admin]")).to_have_count(1)
    assert violations(page) == []
    assert not is_too_wide(page)
    page.get_by_role("combobox", name="Account").fill("admi")
    page.get_by_role("button", name="Why?").click()
    page.get_by_role("link", name="admin", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("Superusers read everything.")


def test_a_curator_mends_an_answer_from_the_chat(site, visitor, asked):
    page = visitor()
    site.sign_in(page)
    page.goto(site.url)
    ask(page, QUESTION).get_by_role("link", name="Mend this answer").click()
    expect(page.get_by_role("heading", name="Mend this answer")).to_be_visible()
    expect(page.locator("#content")).to_contain_text(QUESTION)
    expect(read_answer(site, visitor).get_by_role("link", name="Mend this answer")).to_have_count(0)
