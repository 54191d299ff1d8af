"""A reader prints an answer, and saves it as a file."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.pages import ask, is_too_wide, share, violations

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
COUNT_PRINTS = """
    let prints = 0;
    window.print = () => { document.documentElement.dataset.prints = ++prints; };
"""


def test_an_answer_is_printed_and_saved(site, anywhere):
    page = anywhere
    page.add_init_script(COUNT_PRINTS)
    page.goto(site.url)
    turn = ask(page, SEAL_KIT)
    turn.get_by_role("link", name="Print").click()
    expect(page.locator(".paper-question")).to_have_text(SEAL_KIT)
    expect(page.locator("html")).to_have_attribute("data-prints", "1")
    page.get_by_role("button", name="Print").click()
    expect(page.locator("html")).to_have_attribute("data-prints", "2")
    expect(page.locator(".footnotes li").first).to_contain_text("Version")
    assert not is_too_wide(page)
    assert violations(page) == []
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator(".paper-bar")).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")

    with page.expect_download() as saving:
        page.get_by_role("link", name="Save as Markdown").click()
    assert saving.value.suggested_filename == "which-seal-kit-fits-the-mx-9920-w.md"
    assert "\n[^1]: " in Path(saving.value.path()).read_text()
    page.get_by_role("link", name="Back").click()
    with page.expect_download() as saving:
        page.locator(".turn").get_by_role("link", name="Save").click()
    assert SEAL_KIT in Path(saving.value.path()).read_text()


def test_a_shared_answer_is_printed_by_its_reader(site, visitor):
    mine = visitor()
    mine.goto(site.url)
    ask(mine, SEAL_KIT)
    theirs = visitor(java_script_enabled=False)
    theirs.goto(share(mine))
    theirs.get_by_role("link", name="Print").click()
    expect(theirs.locator(".paper-question")).to_have_text(SEAL_KIT)
    expect(theirs.locator(".footnotes li").first).to_contain_text("/documents/")
    theirs.get_by_role("link", name="Back").click()
    expect(theirs.locator(".shared-head")).to_have_count(1)
