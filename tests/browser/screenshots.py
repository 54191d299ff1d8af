"""The pictures of the README: `python -m pytest tests/browser/screenshots.py` (never run along).

They show the demo documents, answered without a language model.
"""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import ask

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
LARGEST_BYTES = 250_000

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
BROKEN_SENSOR = "At what speed does the pump run while the sensor wire is broken?"
ADD_VAR = "What is the difference between addVar and setVar?"
VISITING_HOURS = "Wat zijn de bezoekuren op de afdeling cardiologie?"


def keep(page, name):
    # Fonts, and pictures of the moment such as a pressed button, need a moment.
    page.wait_for_timeout(300)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path, animations="disabled", caret="hide")
    assert path.stat().st_size < LARGEST_BYTES, f"{path.name} has {path.stat().st_size} bytes"


def test_chat(site, page):
    page.goto(site.url)
    for question in (VISITING_HOURS, ADD_VAR):
        ask(page, question)
        page.goto(site.url)
    ask(page, SEAL_KIT)
    keep(page, "chat")
    page.locator(".cite a").first.hover()
    keep(page, "citation")


def test_phone(site, visitor):
    page = visitor(**PHONE)
    page.goto(site.url)
    ask(page, ADD_VAR)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    keep(page, "phone")


def test_source_viewer(site, page):
    page.goto(site.url)
    ask(page, VISITING_HOURS)
    page.locator(".cite a").first.click()
    page.get_by_role("link", name="Open the document").click()
    expect(page.locator("#passage")).to_be_in_viewport()
    keep(page, "source")


def test_debug_panel(site, page):
    page.set_viewport_size({"width": 1440, "height": 1200})
    site.sign_in(page)
    turn = ask(page, BROKEN_SENSOR)
    turn.locator(".debug summary").click()
    expect(turn.locator(".candidates")).to_be_visible()
    turn.locator(".debug").evaluate("node => scrollTo(0, node.getBoundingClientRect().top + scrollY - 16)")
    keep(page, "debug-panel")
