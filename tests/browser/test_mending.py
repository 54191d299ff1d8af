"""A curator mends an answer, and readers see who vouches for it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import LOOKS, PHONE, WIDE, Site
from tests.browser.pages import ask, is_too_wide, violations

QUESTION = "May I bring my parrot to the pump room?"
TEXT = "No. **Animals** stay outside the pump room."


@pytest.fixture(scope="module")
def mended(start_site: Callable[..., Site]) -> Site:
    return start_site()


def open_mending(page: Page, site: Site) -> None:
    """The page of the first refused question, as an administrator reaches it."""
    site.sign_in(page)
    page.goto(f"{site.url}/admin/chat/answer/?refused__exact=1")
    page.get_by_role("link", name=QUESTION).first.click()
    page.get_by_role("link", name="Mend this answer").click()
    expect(page.get_by_role("heading", name="Mend this answer")).to_be_visible()


def test_an_answer_is_approved_and_readers_see_by_whom(mended: Site, visitor: Callable[..., Page]) -> None:
    reader = visitor(**WIDE)
    reader.goto(mended.url)
    ask(reader, QUESTION)
    expect(reader.locator(".answer.is-refused")).to_be_visible()
    page = visitor(**WIDE)
    open_mending(page, mended)
    page.get_by_text("Approve an answer").click()
    way = page.locator("details", has=page.get_by_role("heading", name="Approve an answer"))
    way.get_by_label("Answer", exact=True).fill(TEXT)
    way.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Choose at least one passage")).to_be_visible()
    way.get_by_role("checkbox").first.check()
    assert violations(page) == []
    assert not is_too_wide(page)
    way.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Saved. Ask again")).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    now = page.locator("section", has=page.get_by_role("heading", name="As it is answered now"))
    expect(now.get_by_text(re.compile("^Approved by admin on"))).to_be_visible()
    expect(now).to_contain_text("stay outside the pump room")
    page.goto(f"{mended.url}/admin/chat/approvedanswer/")
    page.get_by_role("link", name=QUESTION).click()
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(1)
    assert violations(page) == []

    for look, scheme in LOOKS:
        reader = visitor(**look, color_scheme=scheme)
        reader.goto(mended.url)
        ask(reader, QUESTION.upper())
        expect(reader.locator(".approved")).to_have_text(re.compile("Approved by admin on"))
        expect(reader.locator(".answer sup.cite")).to_have_count(1)
        assert violations(reader) == []
        assert not is_too_wide(reader)


def test_the_page_fits_a_phone_and_a_passage_gets_the_question(mended: Site, visitor: Callable[..., Page]) -> None:
    question = "May I bring my goldfish to the pump room?"
    reader = visitor(**WIDE)
    reader.goto(mended.url)
    ask(reader, question)
    page = visitor(**PHONE)
    mended.sign_in(page)
    page.goto(f"{mended.url}/admin/chat/answer/?q=goldfish")
    page.get_by_role("link", name=question).first.click()
    page.get_by_role("link", name="Mend this answer").click()
    page.get_by_text("Give a passage the question").click()
    assert not is_too_wide(page)
    assert violations(page) == []
    page.get_by_role("radio").first.check()
    page.get_by_role("button", name="Give it the question").click()
    expect(page.get_by_text("The passage has the question now.")).to_be_visible()
    page.get_by_role("button", name="Ask again").click()
    now = page.locator("section", has=page.get_by_role("heading", name="As it is answered now"))
    expect(now.get_by_text("Refused")).to_have_count(0)
    expect(now.get_by_role("listitem")).to_have_count(1)
