"""What a reader sees at a glance: an answer with its tables, code, doubts and age, or a refusal with near places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask, is_too_wide, violations

QUESTION = "Which seal kit fits the MX-9920-W?"
SENTENCE = "The documents do not say this. Nearest passages:"
STEPS = "To replace the seal:\n\n1. Switch the pump off.\n2. Close both valves.\n3. Loosen the four screws.\n"
CODE = "Set the speed with `setVar`:\n\n```python\nset_var('speed', 3)  # " + "a long remark " * 9 + "\n```\n"
TEXT = "It needs **seal kit** SK-9920-W [1]. The kit holds 14 parts [1]. It is green."


def statement(said: str, supported: bool | None, *reasons: str) -> dict[str, Any]:
    start = TEXT.index(said)
    return {
        "start": start,
        "end": start + len(said),
        "markers": [1],
        "support": 0.9 if supported else 0.1,
        "supported": supported,
        "reasons": list(reasons),
        "best": None,
    }


def answered_with(site: Site, page: Page, **saved: Any) -> Locator:
    """The turn of a question whose answer was saved like this; no other question gets it from the cache.

    Each marker of another text has the citation that the answer had first.
    """
    from chat.answering.citations import find_markers
    from chat.models import Answer, Citation

    page.goto(site.url)
    turn = ask(page, QUESTION)
    answer_id = (turn.get_attribute("id") or "").removeprefix("answer-")
    with site.data():
        Answer.objects.filter(pk=answer_id).update(cache_key="", repeats=None, **saved)
        if "text" in saved:
            cited = Citation.objects.filter(answer=answer_id)[0]
            Citation.objects.filter(answer=answer_id).delete()
            for marker in find_markers(saved["text"]):
                cited.pk, cited.marker = None, marker.number
                cited.marker_start, cited.marker_end = marker.start, marker.end
                cited.save(force_insert=True)
    page.reload()
    return page.locator(".turn")


@pytest.fixture
def near(site: Site) -> list[dict[str, Any]]:
    """Three places of the demo's documents: a list, a piece of code, and a row of a table."""
    from retrieval.models import Document

    with site.data():
        documents = list(Document.objects.order_by("pk")[:3])
    quotes = (STEPS, CODE, "sku: MX-9920-W; name: Wet-rotor circulation pump 9920; weight_g: 3450; price_eur: 189.00")
    return [
        {
            "document": {"id": document.pk, "title": document.title, "url": ""},
            "section": "Maintenance › Seals",
            "page": 3,
            "quote": quote,
            "start": 0,
            "end": 20,
            "chunk_id": None,
        }
        for document, quote in zip(documents, quotes, strict=True)
    ]


def refused(site: Site, page: Page, **saved: Any) -> Locator:
    return answered_with(site, page, refused=True, statements=[], **saved)


def test_a_refusal_shows_the_near_places_as_what_they_are(
    site: Site, visitor: Callable[..., Page], near: list[dict[str, Any]]
) -> None:
    page = visitor(**PHONE)
    turn = refused(site, page, text=SENTENCE, near=near)
    expect(turn.locator(".outcome-title")).to_have_text(SENTENCE)
    places = turn.get_by_role("list", name="Passages close to the question").locator("> li")
    expect(places).to_have_count(3)
    expect(places.nth(0).locator("ol li")).to_have_count(3)
    expect(places.nth(1).locator("pre code")).to_contain_text("set_var('speed', 3)")
    expect(places.nth(2).locator(".record strong")).to_have_count(4)
    expect(places.nth(0).locator(".near-where")).to_contain_text("Maintenance › Seals · page 3")
    expect(turn.locator(".source")).to_have_count(0)
    assert not is_too_wide(page)
    assert violations(page) == []
    places.nth(0).get_by_role("link").click()
    expect(page.locator("#passage")).to_be_in_viewport()


def test_sentences_that_the_sources_do_not_bear_out_are_marked(site: Site, anywhere: Page) -> None:
    page = anywhere
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    statements = [
        statement("It needs **seal kit** SK-9920-W", True),
        statement("The kit holds 14 parts", False, "number"),
        statement("It is green.", False, "uncited"),
    ]
    turn = answered_with(site, page, text=TEXT, statements=statements)
    expect(turn.locator(".remark")).to_have_text("2 of 3 sentences are not supported by the sources.")
    marks = turn.locator("mark.unsupported")
    expect(marks).to_have_text(["The kit holds 14 parts", "It is green."])
    # Not by colour alone.
    assert "wavy" in marks.first.evaluate("node => getComputedStyle(node).textDecorationStyle")
    signs = turn.get_by_role("note")
    expect(signs).to_have_text(["?", "?"])
    expect(signs.first).to_have_accessible_name("Not supported by the sources. A number in it is not in the source.")

    preview = page.locator("#preview")
    expect(preview).to_be_hidden()
    if page.evaluate("matchMedia('(hover: hover)').matches"):
        marks.first.hover()
        expect(preview).to_contain_text("A number in it is not in the source.")
        page.mouse.move(5, 5)
    else:
        marks.first.tap()
        expect(preview).to_contain_text("A number in it is not in the source.")
        turn.locator(".question").tap()
    expect(preview).to_be_hidden()
    signs.nth(0).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(signs.nth(1)).to_be_focused()
    expect(preview).to_contain_text("It names no source.")
    page.keyboard.press("Escape")
    expect(preview).to_be_hidden()

    turn.get_by_role("button", name="Copy").click()
    expect(turn.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "The kit holds 14 parts [1]. (not supported by the sources) It is green." in copied
