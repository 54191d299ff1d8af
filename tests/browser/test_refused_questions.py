"""Questions that do not reach the site, or that it does not take: the text stays, and the page says why."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Complaints, Site

QUESTION = "Which seal kit fits the MX-9920-W?"
UNREACHABLE = "The site could not be reached. Your question is still here: try again in a moment."


def test_a_question_that_the_network_loses_is_still_there(site: Site, page: Page, complaints: Complaints) -> None:
    complaints.expected += ["net::ERR_", "htmx:"]
    page.goto(site.url)
    page.context.set_offline(True)
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    expect(page.locator("#question-error")).to_have_text(UNREACHABLE)
    expect(page.locator("#question")).to_have_value(QUESTION)
    expect(page.locator(".turn")).to_have_count(0)
    page.context.set_offline(False)
    page.press("#question", "Enter")
    expect(page.locator(".turn .answer")).to_have_class("answer is-complete")
    expect(page.locator("#question")).to_have_value("")
    expect(page.locator("#question-error")).to_be_empty()


REFUSALS = [
    (507, "text/html", "<main><h1>Full</h1><p>The disk is full: nothing was saved.</p></main>", "The disk is full"),
    (507, "application/json", '{"detail": "The disk is full: nothing was saved."}', "The disk is full"),
    (503, "text/plain", "The site is being changed.", "The site is being changed."),
    (500, "text/html", "<h1>Server Error (500)</h1>", "That did not work. Reload the page and try again."),
    (502, "application/json", "<html>", "That did not work. Reload the page and try again."),
]


def test_a_question_that_is_refused_is_still_there(site: Site, page: Page, complaints: Complaints) -> None:
    complaints.expected += ["htmx:", *(str(status) for status, *_ in REFUSALS)]
    answers = iter(REFUSALS)

    def refuse(route: Route) -> None:
        status, media_type, body, _ = next(answers)
        route.fulfill(status=status, content_type=media_type, body=body)

    page.route("**/ask/", refuse)
    for *_, said in REFUSALS:
        page.goto(site.url)
        page.fill("#question", QUESTION)
        page.press("#question", "Enter")
        expect(page.locator("#question-error")).to_contain_text(said)
        expect(page.locator("#question")).to_have_value(QUESTION)
        expect(page.locator(".turn")).to_have_count(0)
