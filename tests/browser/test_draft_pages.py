"""An administrator changes documents in a draft: begins it, adds to it, asks it, publishes it, and discards another. A
gate measures one, refuses it for what it loses, and lets it pass with a reason alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Complaints, Site
from tests.browser.pages import ask
from tests.browser.test_evaluation_pages import (  # noqa: F401  # two of them are fixtures
    library,
    look,
    look_away,
    make_set,
    own_site,
)

SOURCE = "quince-press.md"
QUESTION = "How much juice does the quince press give?"
TEXT = "# Quince press\n\nThe quince press gives eleven litres of juice an hour.\n"


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / SOURCE
    path.write_text(TEXT)
    return path


def begin(site: Site, page: Page, collection: int, look: Callable[[Page, str], None] = look_away) -> tuple[str, str]:
    """Begin a draft on the collection's page; returns that one's address and the draft's, once all is copied."""
    address = f"{site.url}/admin/retrieval/collection/{collection}/change/"
    page.goto(address)
    look(page, "collection")
    page.get_by_role("button", name="Begin a draft").click()
    expect(page.locator(".messagelist")).to_contain_text("Begun: ")
    look(page, "draft-copying")
    site.work()
    # It says so by itself.
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("open")
    expect(page.get_by_text("Nothing yet")).to_be_visible()
    return address, page.url


def test_documents_change_in_a_draft_and_for_readers_all_at_once(
    own_site: Site,  # noqa: F811
    library: int,  # noqa: F811
    visitor: Callable[..., Page],
    text_file: Path,
) -> None:
    page, phone = visitor(**WIDE), visitor(**PHONE)
    own_site.sign_in(page)
    own_site.sign_in(phone)
    collection, draft = begin(own_site, page, library, look)
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
    # A worker reads it, and the page tells when it has.
    expect(page.locator("[data-changes=added] .ragsite-status")).to_be_visible()
    own_site.work()
    expect(page.get_by_role("button", name="Publish")).to_be_visible()
    expect(page.locator("[data-changes=added] .ragsite-status")).to_have_count(0)

    page.get_by_role("link", name="Documents of the draft").click()
    page.locator("#result_list tbody tr th a").nth(1).click()
    removed = page.locator(".field-source .readonly").inner_text()
    expect(page.locator(".ragsite-announcement")).to_contain_text("Readers do not meet this")
    look(page, "document-of-the-draft")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Yes, I’m sure").click()
    for one in (page, phone):
        one.goto(draft)
        expect(one.locator("[data-changes=removed]")).to_contain_text(removed)
    look(phone, "draft-phone")

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
    own_site.work()
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("published")
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator("[data-changes=removed] a")).to_have_count(0)
    phone.goto(draft)
    look(phone, "draft-published-phone")
    page.get_by_role("link", name=SOURCE).click()
    expect(page.locator(".field-collection .readonly")).to_have_text("Shelf")
    page.goto(own_site.url)
    expect(ask(page, QUESTION)).to_contain_text("eleven litres")
    phone.goto(f"{own_site.url}/admin/retrieval/draft/")
    expect(phone.locator("#result_list")).to_contain_text("1 added, 1 removed")
    look(phone, "drafts-phone")


def test_a_draft_that_loses_what_is_asked_for_is_published_with_a_reason_alone(
    own_site: Site,  # noqa: F811
    library: int,  # noqa: F811
    visitor: Callable[..., Page],
    complaints: Complaints,
) -> None:
    from retrieval.models import Document, Draft

    # A refusal is answered with 409, which a browser reports.
    complaints.expected.append("409")
    page, phone = visitor(**WIDE), visitor(**PHONE)
    own_site.sign_in(page)
    own_site.sign_in(phone)
    evaluation_set = make_set(own_site, page, library, "Guard")
    page.goto(f"{own_site.url}/admin/evaluation/gatepolicy/add/")
    page.locator(".select2-selection").click()
    page.locator(".select2-results__option", has_text="Guard").click()
    page.get_by_label("Required for changed documents").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .warning")).to_contain_text("are changed by drafts alone")

    collection, draft = begin(own_site, page, library)
    page.goto(collection)
    expect(page.get_by_text("A gate guards the documents")).to_be_visible()
    with own_site.data():
        number = Draft.objects.get().pk
        for document in Document.objects.filter(collection__draft=number)[1:]:
            document.delete()
    page.goto(draft)
    expect(page.locator(".ragsite-announcement")).to_contain_text("have not both been measured")
    page.get_by_role("link", name="Look and measure").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Run now").click()
    own_site.work()
    expect(page.locator("#gate")).to_contain_text("(draft) is significantly worse than")
    expect(page.locator("#worse tbody tr")).not_to_have_count(0)
    gate = page.url
    for address, name in ((gate, "gate"), (draft, "draft")):
        phone.goto(address)
        look(phone, f"{name}-worse-phone")
    page.goto(evaluation_set)
    expect(page.locator("#id_draft option")).to_have_count(2)
    expect(page.locator("#set-runs")).to_contain_text(f"draft #{number}")
    page.goto(draft)
    expect(page.locator(".ragsite-announcement")).to_contain_text("is significantly worse than")

    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Not published")).to_be_visible()
    page.fill("#override", "The old rules are void.")
    look(page, "draft-refused")
    with page.expect_navigation():
        page.get_by_role("button", name="Publish all the same").click()
    own_site.work()
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("published")
    expect(page.locator("#draft-status")).to_contain_text("The old rules are void.")
    expect(page.locator("#draft-status")).to_contain_text("is significantly worse than")
    look(page, "draft-overridden")
