"""An administrator changes documents in a draft: begins it, adds to it, asks it, publishes it, and discards another."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Site
from tests.browser.pages import ask
from tests.browser.test_evaluation_pages import (
    ARRIVE_MILLISECONDS,
    look,
    own_site,  # noqa: F401  # a fixture
)

SOURCE = "quince-press.md"
QUESTION = "How much juice does the quince press give?"
TEXT = "# Quince press\n\nThe quince press gives eleven litres of juice an hour.\n"


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / SOURCE
    path.write_text(TEXT)
    return path


def begin(site: Site, page: Page, slug: str) -> tuple[str, str]:
    """Begin a draft on the collection's page; returns that one's address and the draft's, once all is copied."""
    from retrieval.models import Collection

    with site.data():
        collection = Collection.objects.get(slug=slug)
    address = f"{site.url}/admin/retrieval/collection/{collection.pk}/change/"
    page.goto(address)
    look(page, "collection")
    page.get_by_role("button", name="Begin a draft").click()
    expect(page.locator(".messagelist")).to_contain_text(f"Begun: {collection.name}")
    look(page, "draft-copying")
    # It says so by itself.
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("open", timeout=ARRIVE_MILLISECONDS)
    expect(page.get_by_text("Nothing yet")).to_be_visible()
    return address, page.url


def test_documents_change_in_a_draft_and_for_readers_all_at_once(
    own_site: Site,  # noqa: F811
    visitor: Callable[..., Page],
    text_file: Path,
) -> None:
    page, phone = visitor(**WIDE), visitor(**PHONE)
    own_site.sign_in(page)
    own_site.sign_in(phone)
    collection, draft = begin(own_site, page, "parts")
    page.goto(collection)
    expect(page.get_by_role("button", name="Begin a draft")).to_have_count(0)
    page.get_by_role("link", name=re.compile("draft #")).click()
    page.get_by_role("link", name="Add documents").click()
    expect(page.locator("#id_collection option:checked")).to_contain_text("(draft)")
    page.set_input_files("#id_file", text_file)
    expect(page.locator(".uploads li .ragsite-status")).to_be_visible()
    look(page, "upload")
    page.goto(draft)
    expect(page.locator("[data-changes=added]")).to_contain_text(SOURCE)
    # The worker reads it, and the page tells when it has.
    expect(page.get_by_role("button", name="Publish")).to_be_visible(timeout=ARRIVE_MILLISECONDS)
    expect(page.locator("[data-changes=added] .ragsite-status")).to_have_count(0)

    page.get_by_role("link", name="Documents of the draft").click()
    page.locator("#result_list tbody tr th a").nth(1).click()
    removed = page.locator(".field-source .readonly").inner_text()
    expect(page.locator(".ragsite-announcement")).to_contain_text("Readers do not meet this")
    look(page, "document-of-the-draft")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Yes, I’m sure").click()
    for one, name in ((page, "wide"), (phone, "phone")):
        one.goto(draft)
        expect(one.locator("[data-changes=removed]")).to_contain_text(removed)
        look(one, f"draft-{name}")

    page.get_by_role("link", name="Ask the draft").click()
    expect(page.get_by_label("Documents to ask").locator("option:checked")).to_contain_text("(draft)")
    expect(ask(page, QUESTION).locator(".source").first).to_contain_text("Quince press")
    page.goto(own_site.url)
    expect(ask(page, QUESTION)).not_to_contain_text("eleven litres")

    phone.goto(collection)
    look(phone, "collection-phone")
    page.goto(draft)
    page.locator("[data-changes=removed] a").click()
    expect(page.locator(".ragsite-announcement")).to_contain_text("is changed in its draft")
    expect(page.locator("#document_form input[name=title]")).to_have_count(0)
    look(page, "document-locked")

    page.goto(draft)
    page.get_by_role("button", name="Publish").click()
    expect(page.locator(".messagelist")).to_contain_text("Being published")
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("published", timeout=ARRIVE_MILLISECONDS)
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator("[data-changes=removed] a")).to_have_count(0)
    look(page, "draft-published")
    phone.goto(draft)
    look(phone, "draft-published-phone")
    page.get_by_role("link", name=SOURCE).click()
    expect(page.locator(".field-collection .readonly")).to_have_text("Merwe Fluidics: parts and service")
    page.goto(own_site.url)
    expect(ask(page, QUESTION)).to_contain_text("eleven litres")
    for one, name in ((page, "wide"), (phone, "phone")):
        one.goto(f"{own_site.url}/admin/retrieval/draft/")
        expect(one.locator("#result_list")).to_contain_text("1 added, 1 removed")
        look(one, f"drafts-{name}")


def test_a_draft_is_discarded_after_a_second_thought(own_site: Site, page: Page) -> None:  # noqa: F811
    own_site.sign_in(page)
    begin(own_site, page, "handbook")
    discard = page.get_by_role("button", name="Discard the draft")
    expect(discard).to_be_hidden()
    page.locator("summary", has_text="Discard").click()
    look(page, "draft-discard")
    discard.click()
    expect(page.locator(".messagelist")).to_contain_text("Discarded:")
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("discarded")
