"""A conversation is shared, read by others, and taken back."""

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import answer_text, ask, share

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
ADD_VAR = "What does addVar do?"


def test_a_shared_conversation_is_read_by_others(site, visitor, complaints):
    mine = visitor()
    mine.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    mine.goto(site.url)
    expect(mine.locator("#share summary")).to_have_count(0)
    text = answer_text(ask(mine, SEAL_KIT))
    link = share(mine)
    assert link.startswith(f"{site.url}/s/")
    expect(mine.locator("#share summary")).to_be_focused()
    mine.get_by_role("button", name="Copy link").click()
    expect(mine.get_by_role("button", name="Copied")).to_be_visible()
    assert mine.evaluate("navigator.clipboard.readText()") == link
    mine.keyboard.press("Escape")
    expect(mine.locator(".share-panel")).to_be_hidden()
    expect(mine.locator("#share summary")).to_be_focused()

    theirs = visitor(**PHONE)
    theirs.goto(link)
    expect(theirs).to_have_title(f"{SEAL_KIT} · Ragsite")
    assert answer_text(theirs.locator(".turn")) == text
    for absent in ("#ask", ".verdict", ".sidebar", "#share"):
        expect(theirs.locator(absent)).to_have_count(0)
    expect(theirs.get_by_role("button", name="Stop sharing")).to_have_count(0)
    expect(theirs.locator(".source").first).to_be_visible()
    theirs.locator(".cite a").first.click()
    expect(theirs.locator("#sheet #passage")).to_be_in_viewport()

    mine.reload()
    mine.locator("#share summary").click()
    mine.get_by_role("button", name="Stop sharing").click()
    expect(mine.locator("#live")).to_have_text("The conversation is not shared any more.")
    expect(mine.locator("#share summary")).to_be_focused()
    complaints.expected.append("404")
    assert theirs.goto(link).status == 404
    expect(theirs.locator("h1")).to_have_text("This conversation is not shared")
