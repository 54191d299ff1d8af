"""Why the passages of an answer ranked where they did, for those who may know."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"


def fact(panel: Locator, name: str) -> Locator:
    return panel.locator(".facts > div", has=panel.page.get_by_text(name, exact=True)).locator("dd")


def test_staff_see_how_the_passages_were_found(site: Site, visitor: Callable[..., Page]) -> None:
    for size in ({}, PHONE):
        page = visitor(**size)
        site.sign_in(page)
        turn = ask(page, QUESTION)
        panel = turn.locator(".debug")
        panel.locator("summary").click()
        expect(fact(panel, "Search method")).to_have_text("contrast")
        expect(fact(panel, "Query class")).to_have_text(re.compile(r"^\w+$"))
        expect(panel.locator(".status")).to_have_text(["ok", "ok", "ok"])

        rows = panel.locator(".candidates tbody tr")
        cells = [row.locator("td").all_inner_texts() for row in rows.all()]
        assert [row[0] for row in cells if row[0] != "–"][:2] == ["1", "2"]
        # Both ranks of some passage, and one that only one leg has returned.
        assert any(row[3].isdigit() and row[6].isdigit() for row in cells)
        assert any(not row[3].isdigit() or not row[6].isdigit() for row in cells)
        for row in cells:
            # Vector, lexical, reranker, and what was added, whose parts stand below the sum.
            contributions = [float((row[column] or "0").split()[0]) for column in (5, 8, 10, 11)]
            assert abs(sum(contributions) - float(row[2])) < 0.0003, row
        assert any(row[0] == "–" and "Dropped:" in row[1] for row in cells)
        expect(panel.locator(".candidates .terms code").first).to_be_visible()
        words = panel.locator(".candidates .words").first
        words.locator("summary").click()
        expect(words.locator("span").first).to_contain_text("→")

        page.reload()
        panel = page.locator(".debug")
        expect(panel).not_to_have_attribute("open", "")
        panel.locator("summary").click()
        expect(fact(panel, "Search method")).to_have_text("contrast")


def test_visitors_see_no_debug_panel(site: Site, page: Page) -> None:
    page.goto(site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".cite a").first).to_be_visible()
    expect(page.locator(".debug")).to_have_count(0)
    answer_id = (turn.get_attribute("id") or "").removeprefix("answer-")
    assert page.request.get(f"{site.url}/answers/{answer_id}/debug/").status == 404
    page.reload()
    expect(page.locator(".cite a").first).to_be_visible()
    expect(page.locator(".debug")).to_have_count(0)
