"""Why the passages of an answer ranked where they did, for those who may know."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"


def test_staff_choose_which_candidates_they_see(site: Site, page: Page) -> None:
    site.sign_in(page)
    turn = ask(page, QUESTION)
    panel = turn.locator(".debug")
    panel.locator("> summary").click()
    expect(panel.locator(".facts").first).to_be_visible()
    rows = panel.locator(".candidates tbody tr")
    expect(rows.locator("visible=true")).to_have_count(rows.and_(page.locator(".kept")).count())
    panel.locator(".show-dropped").check()
    expect(rows.and_(page.locator(".kept")).locator("visible=true")).to_have_count(0)
    expect(rows.locator("visible=true").first).to_contain_text("Dropped:")
    panel.locator(".show-all").check()
    expect(rows.locator("visible=true")).to_have_count(rows.count())
    expect(panel.locator(".candidates mark").first).to_be_visible()
    page.reload()
    expect(page.locator(".debug")).not_to_have_attribute("open", "")
