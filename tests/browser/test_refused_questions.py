"""Questions that do not reach the site, or that it does not take: the text stays, and the page says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Complaints, Site
from tests.browser.pages import ask, begin_asking
from tests.support.model_server import ModelServer, model_server

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


@pytest.mark.parametrize(
    ("status", "media_type", "body", "said"),
    [
        (507, "text/html", "<main><h1>Full</h1><p>The disk is full: nothing was saved.</p></main>", "The disk is full"),
        (507, "application/json", '{"detail": "The disk is full: nothing was saved."}', "The disk is full"),
        (503, "text/plain", "The site is being changed.", "The site is being changed."),
        (500, "text/html", "<h1>Server Error (500)</h1>", "That did not work. Reload the page and try again."),
        (502, "application/json", "<html>", "That did not work. Reload the page and try again."),
    ],
)
def test_a_question_that_is_refused_is_still_there(
    site: Site, page: Page, complaints: Complaints, status: int, media_type: str, body: str, said: str
) -> None:
    complaints.expected += [str(status), "htmx:"]

    def refuse(route: Route) -> None:
        route.fulfill(status=status, content_type=media_type, body=body)

    page.goto(site.url)
    page.route("**/ask/", refuse)
    page.fill("#question", QUESTION)
    page.press("#question", "Enter")
    expect(page.locator("#question-error")).to_contain_text(said)
    expect(page.locator("#question")).to_have_value(QUESTION)
    expect(page.locator(".turn")).to_have_count(0)


@pytest.fixture(scope="module")
def slow_model() -> Iterator[ModelServer]:
    with model_server() as state:
        yield state


@pytest.fixture(scope="module")
def busy_site(start_site: Callable[..., Site], slow_model: ModelServer) -> Site:
    """A site that writes one answer at a time, with room for one that waits."""
    model = {"OPENAI_BASE_URL": slow_model.url, "OPENAI_MODEL": "tiny", "ANSWER_CACHE_SECONDS": "0"}
    return start_site(**model, ANSWERS_AT_ONCE="1", ANSWERS_WAITING="1")


def test_the_queue_shows_the_place_and_refuses_behind_its_end(
    busy_site: Site, slow_model: ModelServer, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    complaints.expected += ["503", "htmx:"]
    slow_model.pieces = pieces = [f"word{number} " for number in range(4000)]
    slow_model.delay_seconds = 0.05
    first, second, third = visitor(), visitor(), visitor()
    for page in (first, second, third):
        page.goto(busy_site.url)
    expect(begin_asking(first, QUESTION).locator(".answer")).to_contain_text("word1")
    waiting = begin_asking(second, QUESTION)
    expect(waiting.locator(".progress [data-announce]")).to_have_text("You are number 1 in the queue.")
    expect(second.locator("#live")).to_have_text("You are number 1 in the queue.")

    third.fill("#question", QUESTION)
    third.press("#question", "Enter")
    expect(third.locator("#question-error")).to_contain_text("Too many questions are being answered.")
    expect(third.locator("#question")).to_have_value(QUESTION)

    pieces[:] = ["It is SK-9920-W [1]."]
    first.click("#stop")
    expect(waiting.locator(".answer")).to_have_class("answer is-complete")
    assert ask(third, QUESTION).locator(".cite").count()
