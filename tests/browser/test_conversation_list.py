"""The list of conversations: searched, renamed, and as long as one wants."""

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import ask, confirm

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
ADD_VAR = "What does addVar do?"


def entry(page, words):
    return page.locator(".conversations li", has_text=words)


def test_a_conversation_is_renamed_found_and_deleted_in_its_place(site, page):
    for question in ("What does setVar return?", SEAL_KIT, ADD_VAR):
        page.goto(site.url)
        ask(page, question)
    entries, shown, other = page.locator(".conversations li"), entry(page, "addVar"), entry(page, "seal kit")
    shown.hover()
    shown.get_by_role("link", name="Rename").click()
    title = page.get_by_role("textbox", name="Title")
    expect(title).to_be_focused()
    expect(title).to_have_value(ADD_VAR)
    page.keyboard.type("Something else")
    page.keyboard.press("Escape")
    expect(title).to_have_count(0)
    expect(shown.get_by_role("link", name="Rename")).to_be_focused()

    page.keyboard.press("Enter")
    expect(title).to_be_focused()
    page.keyboard.type("Variables <b>")
    page.keyboard.press("Enter")
    renamed = entry(page, "Variables <b>")
    expect(renamed.locator(".entry-title")).to_have_attribute("aria-current", "page")
    expect(renamed.get_by_role("link", name="Rename")).to_be_focused()
    expect(page).to_have_title("Variables <b> · Ragsite")
    expect(page.locator("h1")).to_have_text("Variables <b>")
    expect(page.locator("#live")).to_have_text("Renamed.")

    other.hover()
    other.get_by_role("link", name="Rename").click()
    # htmx processes fetched content a moment after it is shown, and sets the focus then.
    expect(title).to_be_focused()
    title.fill("Seals")
    page.get_by_role("button", name="Save").click()
    expect(entry(page, "Seals").get_by_role("link", name="Rename")).to_be_focused()
    expect(page).to_have_title("Variables <b> · Ragsite")

    # The entry that takes the place of a deleted one has the focus.
    delete = entry(page, "Seals").get_by_role("button", name="Delete")
    delete.press("Enter")
    assert confirm(page, accept=False) == "Delete “Seals” and its answers?"
    expect(delete).to_be_focused()
    expect(entries).to_have_count(3)
    delete.press("Enter")
    confirm(page, accept=True)
    expect(page.locator("#live")).to_have_text("The conversation is deleted.")
    expect(entry(page, "setVar").locator(".entry-title")).to_be_focused()
    entry(page, "setVar").get_by_role("button", name="Delete").press("Enter")
    confirm(page, accept=True)
    expect(entries).to_have_count(1)
    expect(renamed.locator(".entry-title")).to_be_focused()
    expect(page.locator(".turn")).to_have_count(1)


def test_conversations_are_searched_by_what_was_said(site, visitor):
    page = visitor(**PHONE)
    for question in (SEAL_KIT, ADD_VAR):
        page.goto(site.url)
        ask(page, question)
    page.locator("#open-sidebar").click()
    entries, search = page.locator(".conversations li"), page.get_by_role("searchbox", name="Search conversations")
    # Only the answer contains the part's number.
    search.fill("SK-9920")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text(SEAL_KIT)
    expect(page.locator("#live")).to_have_text("1 conversation")
    search.fill("no such words")
    expect(page.locator(".conversations")).to_contain_text("No conversation mentions “no such words”.")
    # The list stays filtered when a conversation is deleted from it.
    search.fill("seal")
    expect(entries).to_have_count(1)
    entries.hover()
    entries.get_by_role("button", name="Delete").click()
    confirm(page, accept=True)
    expect(page.locator(".conversations")).to_contain_text("No conversation mentions “seal”.")
    expect(search).to_be_focused()
    search.press("Escape")
    expect(entries).to_contain_text([ADD_VAR])
