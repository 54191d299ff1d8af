"""Search that is broken in part, and a site with more questions than it can answer at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from bench import with_constants
from tests.browser.conftest import Complaints, Site
from tests.browser.pages import answer_text, ask, begin_asking
from tests.support.model_server import ModelServer

QUESTION = "Which seal kit fits the MX-9920-W?"
# Its answer is not kept from another test.
NOT_ASKED_YET = "Which seal kit does the MX-9920-WS need?"


@pytest.fixture(scope="module")
def poor_site(start_site: Callable[..., Site], _model: ModelServer) -> Site:
    """A site whose settings name an embedding server that does not exist (the stored vectors are another's), and which
    writes one answer at a time, with room for one that waits."""
    return start_site(
        OPENAI_BASE_URL=_model.url,
        OPENAI_MODEL="tiny",
        EMBEDDING_BASE_URL="http://127.0.0.1:9/v1",
        EMBEDDING_MODEL="gone",
        ANSWERS_AT_ONCE="1",
        **with_constants(ANSWER_CACHE_SECONDS=0, ANSWERS_WAITING=1),
    )


def test_a_leg_that_fails_is_announced_in_words(poor_site: Site, page: Page, model: ModelServer) -> None:
    model.pieces = ["You need ", "SK-9920-W [1]."]
    page.goto(poor_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".notice")).to_have_text(
        "Search by meaning did not answer, so the passages were found by their words alone."
    )
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    assert "SK-9920-W" in answer_text(turn)
    page.reload()
    expect(page.locator(".notice")).to_contain_text("Search by meaning did not answer")


def test_the_documents_still_answer_when_model_and_embedder_are_gone(
    poor_site: Site, page: Page, model: ModelServer
) -> None:
    model.statuses = [401]
    page.goto(poor_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator(".notice")).to_have_count(2)
    assert "SK-9920-W" in answer_text(turn)


def test_broken_legs_are_told_apart_and_without_any_there_is_an_honest_sentence(
    site: Site, page: Page, request: pytest.FixtureRequest
) -> None:
    from django.db import connection

    def give_back() -> None:
        with site.data(), connection.cursor() as cursor:
            cursor.execute("ALTER TABLE IF EXISTS taken_away RENAME TO retrieval_lexeme")
            cursor.execute("ALTER TABLE IF EXISTS taken_away_too RENAME TO retrieval_chunkembedding")

    request.addfinalizer(give_back)  # noqa: PT021
    page.goto(site.url)
    with site.data(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE retrieval_lexeme RENAME TO taken_away")
    turn = ask(page, NOT_ASKED_YET)
    notice = "Keyword search did not answer, so the passages were found by their meaning alone."
    expect(turn.locator(".notice")).to_have_text([notice])
    with site.data(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE retrieval_chunkembedding RENAME TO taken_away_too")
    turn = ask(page, NOT_ASKED_YET)
    expect(turn.locator(".answer")).to_have_class("answer is-failed")
    expect(turn.locator(".outcome")).to_contain_text("There is no answer to this question yet.")
    expect(turn.locator(".outcome")).to_contain_text("The search cannot answer at the moment.")
    give_back()
    turn.get_by_role("button", name="Ask again").click()
    again = page.locator(".turn").nth(2)
    expect(again.locator(".answer")).to_have_class("answer is-complete")
    expect(again.locator(".notice")).to_have_count(0)


def test_the_queue_shows_the_place_and_refuses_behind_its_end(
    poor_site: Site, model: ModelServer, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    complaints.expected += ["503", "htmx:"]
    model.pieces = pieces = [f"word{number} " for number in range(4000)]
    model.delay_seconds = 0.05
    first, second, third = visitor(), visitor(), visitor()
    for page in (first, second, third):
        page.goto(poor_site.url)
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
