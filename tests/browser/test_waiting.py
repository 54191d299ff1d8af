"""A language model that keeps its readers waiting."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import begin_asking
from tests.support.model_server import ModelServer

QUESTION = "Which seal kit fits the MX-9920-W?"
SLOW = "It takes longer than usual."
# Every sentence the live region has said.
LISTENER = """
    window.said = [];
    document.addEventListener("DOMContentLoaded", () => {
      const live = document.getElementById("live");
      new MutationObserver(() => live.textContent && window.said.push(live.textContent))
        .observe(live, { childList: true, characterData: true, subtree: true });
    });
"""


def test_a_long_wait_says_so_once_and_counts_the_seconds(model_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces, model.delay_seconds = ["It is SK-9920-W [1]. ", "Done."], 30
    page.add_init_script(LISTENER)
    page.goto(model_site.url)
    turn = begin_asking(page, QUESTION)
    status = turn.locator(".answer > .progress")
    expect(status).to_contain_text("Writing the answer…")
    expect(status.locator("[data-elapsed]")).to_have_text(re.compile(r"^([3-9]|\d\d)\ss$"))
    expect(status).to_contain_text(SLOW)
    expect(status.locator("[data-elapsed]")).to_have_text(re.compile(r"^([89]|\d\d)\ss$"))
    assert page.evaluate("window.said").count(SLOW) == 1
    # The seconds are for the eyes: read aloud every second, they would drown everything else.
    assert not any(re.search(r"\d", said) for said in page.evaluate("window.said"))
    expect(status.locator("[data-elapsed]")).to_have_attribute("aria-hidden", "true")

    page.reload()
    expect(turn.locator(".answer > .progress [data-elapsed]")).to_have_text(re.compile(r"^([89]|\d\d)\ss$"))
    page.click("#stop")
    expect(turn.locator(".answer")).to_have_class("answer is-stopped")
    expect(turn.locator(".outcome")).to_contain_text("This answer was stopped before its first word.")
