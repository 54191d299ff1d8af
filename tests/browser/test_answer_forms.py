"""What a reader sees at a glance: an answer with its tables and code, or a refusal with near places."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import is_too_wide, violations
from tests.browser.test_trust import answered_with

# Named when somebody wants to look at the pages themselves.
PICTURES = os.environ.get("RAGSITE_TEST_PICTURES", "")
SENTENCE = "The documents do not say this. Nearest passages:"
STEPS = "To replace the seal:\n\n1. Switch the pump off.\n2. Close both valves.\n3. Loosen the four screws.\n"
CODE = "Set the speed with `setVar`:\n\n```python\nset_var('speed', 3)  # " + "a long remark " * 9 + "\n```\n"
TABLE = """37 of 85 rows: chocolate = yes [1]

| name | sugar | price | chocolate | caramel | share of the people who chose it | made by | since |
|---|---:|---:|---|---|---:|---|---:|
| Twix | 0.546 | 0.906 | yes | yes | 81.64 | Mars Incorporated | 1967 |
| Kit Kat | 0.313 | 0.511 | yes | no | 76.77 | Nestlé and Hershey | 1935 |
"""


def keep(page: Page, name: str) -> None:
    if PICTURES:
        page.wait_for_timeout(300)
        width = page.viewport_size["width"] if page.viewport_size else 0
        page.screenshot(path=Path(PICTURES) / f"{name}-{width}.png", full_page=True, animations="disabled")


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
    site: Site, anywhere: Page, near: list[dict[str, Any]]
) -> None:
    page = anywhere
    turn = refused(site, page, text=SENTENCE, near=near)
    expect(turn.locator(".outcome-title")).to_have_text(SENTENCE)
    places = turn.get_by_role("list", name="Places that come near the question").locator("> li")
    expect(places).to_have_count(3)
    expect(places.nth(0).locator("ol li")).to_have_count(3)
    expect(places.nth(1).locator("pre code")).to_contain_text("set_var('speed', 3)")
    expect(places.nth(2).locator(".record strong")).to_have_count(4)
    expect(places.nth(0).locator(".near-where")).to_contain_text("Maintenance › Seals · page 3")
    expect(turn.locator(".source")).to_have_count(0)
    assert not is_too_wide(page)
    assert violations(page) == []
    keep(page, "refusal")
    places.nth(0).get_by_role("link").click()
    expect(page.locator("#passage")).to_be_in_viewport()


def test_a_choice_asks_its_question_in_the_same_conversation(site: Site, page: Page) -> None:
    questions = [f"Which seal kit fits the {name}?" for name in ("MX-9920-W", "MX-9920-WS", "CV-15")]
    choices = [{"label": question, "question": question} for question in questions]
    turn = refused(site, page, text="The documents do not answer this question.", choices=choices, near=[])
    offered = turn.get_by_role("group", name="Did you mean:")
    expect(offered.get_by_role("button")).to_have_text(questions)
    assert violations(page) == []
    keep(page, "choices")
    address = page.url
    offered.get_by_role("button", name=questions[2]).click()
    turns = page.locator(".turn")
    expect(turns).to_have_count(2)
    expect(turns.nth(1).locator(".question")).to_have_text("Which seal kit fits the CV-15?")
    expect(turns.nth(1).locator(".answer")).not_to_have_class("answer is-streaming")
    assert page.url.partition("#")[0] == address.partition("#")[0]


def test_a_table_and_code_scroll_by_themselves(site: Site, anywhere: Page) -> None:
    page = anywhere
    turn = answered_with(site, page, text=f"{TABLE}\n{CODE}", statements=[])
    expect(turn.locator(".table-scroll td")).to_have_count(16)
    assert not is_too_wide(page)
    assert violations(page) == []
    keep(page, "table")
