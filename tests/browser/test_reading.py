"""What readers do besides asking: tables on a phone, large type, the library, help, and the way back to an answer."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask, is_too_wide
from tests.support.model_server import ModelServer

TABLE = "| Part | Weight | Price | Made in | Sold by | Where |\n|---|---|---|---|---|---|\n" + "".join(
    f"| MX-99{n:02} | {n} kilograms | {n}.50 euro | Rotterdam, the Netherlands | the shop and the web | here |\n"
    for n in range(4)
)


def test_a_table_on_a_phone_keeps_its_first_column_and_its_markers(
    model_site: Site, visitor: Callable[..., Page], model: ModelServer
) -> None:
    page = visitor(**PHONE)
    model.pieces = ["These are the parts.\n\n", TABLE]
    page.goto(model_site.url)
    turn = ask(page, "Which parts are there?")
    table = turn.locator(".table-scroll")
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    assert "local" in table.evaluate("node => getComputedStyle(node).backgroundAttachment")
    for left in (0, 10_000):
        table.evaluate("(node, left) => node.scrollTo(left, 0)", left)
        for held in (table.locator("tbody td").first, table.locator(".cite, .doubt").first):
            expect(held).to_be_in_viewport(ratio=1)
    assert not is_too_wide(page)


def test_at_twice_the_size_the_question_leaves_three_quarters_of_the_view(
    site: Site, visitor: Callable[..., Page]
) -> None:
    page = visitor(viewport={"width": 720, "height": 450})
    page.goto(site.url)
    ask(page, "What is the difference between addVar and setVar?")
    dock = page.locator(".composer-dock").bounding_box()
    assert dock and dock["height"] <= 450 / 4
    expect(page.locator("#ask .send")).to_be_in_viewport(ratio=1)


def test_headings_come_in_order(site: Site, page: Page) -> None:
    page.goto(site.url)
    ask(page, "Price of MX-9902-W")
    page.reload()
    levels = page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", "nodes => nodes.map(node => Number(node.tagName[1]))")
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in zip(levels, levels[1:], strict=False))


def test_a_choice_does_not_wrap_under_its_button(site: Site, anywhere: Page) -> None:
    page = anywhere
    page.goto(site.url)
    ask(page, "Price of MX-9902-W")
    page.locator("#share summary").click()
    label = page.locator(".share-form label", has_text="from now on")
    beside = """node => { const words = document.createRange(); words.selectNodeContents(node.lastChild);
        const radio = node.querySelector("input").getBoundingClientRect();
        return [...words.getClientRects()].every(line => line.left >= radio.right); }"""
    assert label.evaluate(beside)
