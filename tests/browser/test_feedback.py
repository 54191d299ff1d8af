"""A visitor says whether an answer helped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, WIDE, Complaints, Site
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"
OUTDATED = "The documents are out of date"


def verdict(turn: Locator, name: str) -> Locator:
    return turn.get_by_role("button", name=name, exact=True)


def saved(site: Site, page: Page) -> tuple[bool, str, str] | None:
    from chat.models import Feedback

    conversation = page.url.split("/c/")[1].split("/")[0]
    with site.data():
        return (
            Feedback.objects.filter(answer__conversation=conversation)
            .values_list("helpful", "reason", "comment")
            .first()
        )


def test_a_bad_verdict_is_followed_by_what_is_wrong(site: Site, visitor: Callable[..., Page]) -> None:
    page = visitor(**PHONE)
    page.goto(site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator(".critique")).to_have_count(0)
    verdict(turn, "Not helpful").click()
    expect(page.locator("#live")).to_have_text("Thank you, your judgement is saved.")
    expect(turn.get_by_role("group", name="What is wrong with this answer?")).to_be_visible()
    expect(turn.get_by_role("radio").first).to_be_focused()
    expect(turn.get_by_role("button", name="Send")).to_be_in_viewport()
    assert saved(site, page) == (False, "", "")

    turn.get_by_text(OUTDATED).click()
    turn.get_by_label("Anything else?").fill("It is 2026.")
    turn.get_by_role("button", name="Send").click()
    expect(turn.locator(".critique-said")).to_have_text(OUTDATED)
    expect(turn.get_by_role("radio").first).to_be_hidden()
    assert saved(site, page) == (False, "outdated", "It is 2026.")

    page.reload()
    expect(verdict(turn, "Not helpful")).to_have_attribute("aria-pressed", "true")
    turn.locator(".critique summary").click()
    expect(turn.get_by_label(OUTDATED)).to_be_checked()
    expect(turn.get_by_label("Anything else?")).to_have_value("It is 2026.")

    verdict(turn, "Helpful").click()
    expect(verdict(turn, "Helpful")).to_have_attribute("aria-pressed", "true")
    expect(verdict(turn, "Not helpful")).to_have_attribute("aria-pressed", "false")
    expect(turn.locator(".critique")).to_have_count(0)
    assert saved(site, page) == (True, "", "")
    verdict(turn, "Helpful").click()
    expect(page.locator("#live")).to_have_text("Your judgement is taken back.")
    assert saved(site, page) is None


def test_judging_with_the_keyboard_alone(site: Site, page: Page) -> None:
    page.goto(site.url)
    turn = ask(page, QUESTION)
    verdict(turn, "Not helpful").focus()
    page.keyboard.press("Enter")
    expect(turn.get_by_role("radio").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(turn.get_by_label("Something is missing")).to_be_checked()
    page.keyboard.press("Escape")
    expect(turn.get_by_role("radio").first).to_be_hidden()
    expect(turn.locator(".critique summary")).to_be_focused()
    page.keyboard.press("Enter")
    turn.get_by_role("button", name="Skip").press("Enter")
    expect(turn.locator(".critique summary")).to_be_focused()
    assert saved(site, page) == (False, "", "")
    page.keyboard.press("Enter")
    turn.get_by_label("It is wrong").press("Space")
    turn.get_by_role("button", name="Send").press("Enter")
    expect(turn.locator(".critique-said")).to_have_text("It is wrong")
    expect(turn.locator(".critique summary")).to_be_focused()
    verdict(turn, "Helpful").press("Enter")
    expect(verdict(turn, "Helpful")).to_have_attribute("aria-pressed", "true")
    expect(verdict(turn, "Helpful")).to_be_focused()


@pytest.mark.parametrize(
    ("size", "scripts"), [(WIDE, True), (PHONE, False)], ids=["wide, with JavaScript", "phone, without"]
)
def test_a_comment_that_is_refused_can_be_put_right(
    site: Site, visitor: Callable[..., Page], complaints: Complaints, size: dict[str, Any], *, scripts: bool
) -> None:
    complaints.expected.append("422")
    page = visitor(**size, java_script_enabled=scripts)
    page.goto(site.url)
    page.fill("#question", QUESTION)
    page.click(".send")
    turn = page.locator(".turn")
    verdict(turn, "Not helpful").click()
    conversation = page.url
    turn.get_by_text(OUTDATED).click()
    comment = turn.get_by_label("Anything else?")
    # Where a browser does not hold its reader to the length.
    comment.evaluate("field => field.removeAttribute('maxlength')")
    comment.fill("word " * 401)
    turn.get_by_role("button", name="Send").click()
    expect(turn.get_by_role("alert")).to_have_text("Please keep the comment within 2000 characters.")
    expect(turn.get_by_role("alert")).to_be_in_viewport()
    expect(turn.get_by_label(OUTDATED)).to_be_checked()
    expect(comment).to_have_value("word " * 401)
    expect(comment).to_be_focused()
    expect(turn.locator(".critique summary")).to_have_text("What is wrong with this answer?")

    comment.fill("It is 2026.")
    turn.get_by_role("button", name="Send").click()
    expect(turn.locator(".critique-said")).to_have_text(OUTDATED)
    assert page.url.split("#")[0].split("?")[0] == conversation.split("#")[0].split("?")[0]
    assert saved(site, page) == (False, "outdated", "It is 2026.")
