"""Why the passages of an answer ranked where they did, for those who may know."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"


def fact(panel: Locator, name: str) -> Locator:
    return panel.locator(".facts > div", has=panel.page.get_by_text(name, exact=True)).locator("dd")


def open_panel(turn: Locator) -> Locator:
    panel = turn.locator(".debug")
    panel.locator("> summary").click()
    expect(panel.locator(".facts").first).to_be_visible()
    return panel


def test_staff_see_how_the_passages_were_found(site: Site, page: Page) -> None:
    site.sign_in(page)
    turn = ask(page, QUESTION)
    panel = open_panel(turn)
    expect(fact(panel, "Search method")).to_have_text("zscore")
    expect(fact(panel, "Query class")).to_have_text(re.compile(r"^\w+$"))
    expect(fact(panel, "Passages that match the words")).to_have_text(re.compile(r"^\d+ counted now$"))
    expect(panel.locator("table .status:not(.sentences .status)")).to_have_text(["ok", "ok"])
    expect(panel.locator(".context-in-words")).to_have_text(re.compile(r"^\d+ hits, .+ of 4,000 tokens\.$"))

    began = [
        panel.locator(".waterfall tr", has_text=name).locator("td").nth(1).inner_text()
        for name in ("vector retriever", "lexical retriever")
    ]
    assert began[0] == began[1] != ""

    rows = panel.locator(".candidates tbody tr")
    expect(rows.locator("visible=true")).to_have_count(rows.and_(page.locator(".kept")).count())
    panel.locator(".show-dropped").check()
    expect(rows.and_(page.locator(".kept")).locator("visible=true")).to_have_count(0)
    expect(rows.locator("visible=true").first).to_contain_text("Dropped:")
    panel.locator(".show-all").check()
    expect(rows.locator("visible=true")).to_have_count(rows.count())
    expect(panel.locator(".candidates mark").first).to_be_visible()
    assert "mx-9920-w" in {mark.lower() for mark in panel.locator(".candidates mark").all_text_contents()}

    page.reload()
    panel = page.locator(".debug")
    expect(panel).not_to_have_attribute("open", "")
    open_panel(page.locator(".turn"))
    expect(fact(panel, "Search method")).to_have_text("zscore")
