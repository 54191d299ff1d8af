"""A visitor says whether an answer helped."""

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"
OUTDATED = "The documents are out of date"


def verdict(turn, name):
    return turn.get_by_role("button", name=name, exact=True)


def saved(site, page):
    from chat.models import Feedback

    conversation = page.url.split("/c/")[1].split("/")[0]
    with site.data():
        return (
            Feedback.objects.filter(answer__conversation=conversation)
            .values_list("helpful", "reason", "comment")
            .first()
        )


def test_judging_with_the_keyboard_and_a_comment_that_can_be_put_right(site, visitor, complaints):
    complaints.expected.append("422")
    page = visitor(**PHONE)
    page.goto(site.url)
    turn = ask(page, QUESTION)
    summary = turn.locator(".critique summary")
    verdict(turn, "Not helpful").press("Enter")
    expect(turn.get_by_role("radio").first).to_be_focused()
    expect(turn.get_by_role("button", name="Send")).to_be_in_viewport()
    page.keyboard.press("ArrowDown")
    expect(turn.get_by_label("Something is missing")).to_be_checked()
    page.keyboard.press("Escape")
    expect(turn.get_by_role("radio").first).to_be_hidden()
    expect(summary).to_be_focused()
    page.keyboard.press("Enter")
    turn.get_by_role("button", name="Skip").press("Enter")
    expect(summary).to_be_focused()
    assert saved(site, page) == (False, "", "")

    page.keyboard.press("Enter")
    turn.get_by_label(OUTDATED).press("Space")
    comment = turn.get_by_label("Anything else?")
    # The browser does not limit the length here.
    comment.evaluate("field => field.removeAttribute('maxlength')")
    comment.fill("word " * 401)
    turn.get_by_role("button", name="Send").press("Enter")
    expect(turn.get_by_role("alert")).to_have_text("Please keep the comment within 2000 characters.")
    expect(turn.get_by_role("alert")).to_be_in_viewport()
    expect(turn.get_by_label(OUTDATED)).to_be_checked()
    expect(comment).to_have_value("word " * 401)
    expect(comment).to_be_focused()
    comment.fill("It is 2026.")
    turn.get_by_role("button", name="Send").press("Enter")
    expect(turn.locator(".critique-said")).to_have_text(OUTDATED)
    expect(summary).to_be_focused()
    assert saved(site, page) == (False, "outdated", "It is 2026.")
    verdict(turn, "Helpful").press("Enter")
    expect(verdict(turn, "Helpful")).to_have_attribute("aria-pressed", "true")
    expect(verdict(turn, "Helpful")).to_be_focused()
