"""The list of conversations: searched, renamed, and as long as one wants."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask, confirm

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
ADD_VAR = "What does addVar do?"


def open_list(page: Page) -> Locator:
    """The entries; on narrow screens the list is a drawer."""
    opener = page.locator("#open-sidebar")
    if opener.is_visible() and not page.locator("#close-sidebar").is_visible():
        opener.click()
        expect(page.locator("#sidebar")).to_be_in_viewport()
    return page.locator(".conversations li")


def entry(page: Page, words: str) -> Locator:
    return page.locator(".conversations li", has_text=words)


def two_conversations(site: Site, page: Page) -> Page:
    """The page of the second of two, about variables; the first was about a seal kit."""
    for question in (SEAL_KIT, ADD_VAR):
        page.goto(site.url)
        ask(page, question)
    return page


def test_a_conversation_is_renamed_in_its_place(site: Site, page: Page) -> None:
    two_conversations(site, page)
    open_list(page)
    shown, other = entry(page, "addVar"), entry(page, "seal kit")
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
    title.fill("Seals")
    page.get_by_role("button", name="Save").click()
    expect(entry(page, "Seals").locator("a").first).to_be_visible()
    expect(page).to_have_title("Variables <b> · Ragsite")
    page.reload()
    expect(open_list(page).locator(".entry-title")).to_have_text(["Variables <b>", "Seals"])


def test_the_entry_that_takes_the_place_of_a_deleted_one_has_the_focus(site: Site, page: Page) -> None:
    two_conversations(site, page)
    page.goto(site.url)
    ask(page, "What does setVar return?")
    open_list(page)
    confirm(page, accept=True)
    entry(page, "addVar").get_by_role("button", name="Delete").press("Enter")
    expect(page.locator("#live")).to_have_text("The conversation is deleted.")
    expect(entry(page, "seal kit").locator(".entry-title")).to_be_focused()

    confirm(page, accept=True)
    entry(page, "seal kit").get_by_role("button", name="Delete").press("Enter")
    expect(page.locator(".conversations li")).to_have_count(1)
    expect(entry(page, "setVar").locator(".entry-title")).to_be_focused()


def test_conversations_are_searched_by_what_was_said(site: Site, visitor: Callable[..., Page]) -> None:
    page = two_conversations(site, visitor(**PHONE))
    entries = open_list(page)
    # The part's number stands in the answer alone.
    page.get_by_role("searchbox", name="Search conversations").fill("SK-9920")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text(SEAL_KIT)
    expect(page.locator("#live")).to_have_text("1 conversation")
    # What is deleted from a searched list leaves it searched.
    page.get_by_role("searchbox").fill("no such words")
    expect(page.locator(".conversations")).to_contain_text("No conversation mentions “no such words”.")
    page.get_by_role("searchbox").fill("seal")
    expect(entries).to_have_count(1)
    confirm(page, accept=True)
    entries.hover()
    entries.get_by_role("button", name="Delete").click()
    expect(page.locator(".conversations")).to_contain_text("No conversation mentions “seal”.")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_role("searchbox").press("Escape")
    expect(entries).to_have_count(1)
    expect(entries).to_contain_text(ADD_VAR)
    expect(page.locator(".turn")).to_have_count(1)
