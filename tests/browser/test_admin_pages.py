"""An administrator's way: sign in, add documents, see how far they are, look at their passages, read them again."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import PASSWORD, Complaints, Site
from tests.browser.pages import ask

PLATYPUS = b"# Platypus\n\nA platypus lays between one and three eggs.\n\n## Venom\n\nThe male has a venomous spur.\n"
ROWS = "#result_list tbody tr"


@pytest.fixture(scope="module")
def own_site(start_site: Callable[..., Site]) -> Site:
    """A site of this module's own, to which documents are added."""
    return start_site()


def row_of(page: Page, name: str) -> Locator:
    return page.locator(ROWS, has_text=name)


def read_all(site: Site) -> None:
    """What the worker would do."""
    from retrieval.ingest import pipeline
    from retrieval.models import Document

    with site.data():
        for pk in Document.objects.filter(status=Document.Status.PENDING).values_list("pk", flat=True):
            pipeline.ingest(pk)


def test_the_admin_asks_who_comes(own_site: Site, page: Page) -> None:
    page.goto(f"{own_site.url}/admin/retrieval/document/")
    expect(page).to_have_url(re.compile("/admin/login/"))
    page.fill("#id_username", "admin")
    page.fill("#id_password", "wrong")
    page.click("[type=submit]")
    expect(page.locator(".errornote")).to_be_visible()
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("[type=submit]")
    expect(page.locator("#result_list")).to_be_visible()


def test_documents_are_added_read_previewed_and_read_again(own_site: Site, page: Page) -> None:
    own_site.sign_in(page)
    page.get_by_role("link", name="Manage documents").click()
    page.goto(f"{own_site.url}/admin/retrieval/document/add/")
    page.select_option("#id_collection", label="Handbook")
    page.set_input_files(
        "#id_file",
        [
            FilePayload(name="platypus.md", mimeType="text/markdown", buffer=PLATYPUS),
            FilePayload(name="sound.mp3", mimeType="audio/mpeg", buffer=b"ID3" + bytes(200)),
            FilePayload(name="torn.pdf", mimeType="application/pdf", buffer=b"%PDF-1.7\n" + b"torn " * 50),
        ],
    )
    page.get_by_role("button", name="Add documents").click()
    expect(page.locator(".messagelist .error")).to_contain_text("Not added: sound.mp3")
    expect(page.locator(".messagelist .success")).to_contain_text(re.compile(r"[12] documents? will be read now\."))

    # The status changes without a reload.
    expect(row_of(page, "platypus").locator(".ragsite-status")).to_have_text("waiting")
    read_all(own_site)
    expect(row_of(page, "platypus").locator(".ragsite-status")).to_have_text("ready")
    expect(row_of(page, "platypus").locator("[data-document-fact=passages]")).to_have_text(re.compile("[1-9]"))
    torn = row_of(page, "torn")
    if torn.count():
        expect(torn.locator(".ragsite-status")).to_have_text("failed")
        expect(torn.locator("[data-document-fact=error]")).to_contain_text("torn.pdf")

    page.fill("#searchbar", "platypus")
    page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(1)
    page.locator(ROWS).get_by_role("link").first.click()
    page.get_by_role("link", name=re.compile(r"\d+ passages?")).click()
    expect(page.locator(ROWS).first).to_contain_text("A platypus lays")
    page.locator(ROWS).first.get_by_role("link").first.click()
    expect(page.locator(".ragsite-text").first).to_contain_text("A platypus lays between one and three eggs.")

    page.goto(f"{own_site.url}/admin/retrieval/document/?q=platypus")
    page.check(f"{ROWS} .action-select")
    page.select_option("[name=action]", label="Read again")
    page.get_by_role("button", name=re.compile("Go|Run")).click()
    expect(page.locator(".messagelist .success")).to_have_text("1 document will be read again.")
    expect(page.locator(ROWS).locator(".ragsite-status")).to_have_text("waiting")
    read_all(own_site)
    page.reload()
    expect(page.locator(ROWS).locator(".ragsite-status")).to_have_text("ready")

    page.goto(own_site.url)
    turn = ask(page, "How many eggs does a platypus lay?")
    expect(turn.locator("[data-answer-text]")).to_contain_text("between one and three eggs")


def test_every_page_of_the_admin_opens_without_complaints(own_site: Site, page: Page) -> None:
    own_site.sign_in(page)
    page.goto(f"{own_site.url}/admin/")
    pages = page.locator("#content-main th a").evaluate_all("links => links.map(link => link.href)")
    assert len(pages) >= 6
    for address in pages:
        response = page.goto(address)
        assert response is not None
        assert response.status == 200, address
        first = page.locator("#result_list tbody th a").first
        if first.count():
            first.click()
            expect(page.locator("#content h1, #content h2").first).to_be_visible()


def test_pages_for_lost_visitors_lead_back(own_site: Site, page: Page, complaints: Complaints) -> None:
    complaints.expected.append("404")
    response = page.goto(f"{own_site.url}/nowhere/")
    assert response is not None
    assert response.status == 404
    page.get_by_role("link", name="Ask the documents").click()
    expect(page.locator("#question")).to_be_visible()


def test_the_api_can_be_browsed(own_site: Site, page: Page) -> None:
    page.goto(f"{own_site.url}/api/docs/")
    expect(page.locator("#swagger-ui")).to_contain_text("/api/v1/search/")
