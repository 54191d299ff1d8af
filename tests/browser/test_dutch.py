"""The interface in the language of the browser: who reads Dutch sees Dutch, in the chat and behind it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, Site
from tests.browser.pages import ask, is_too_wide, source

VISITING_HOURS = "Wat zijn de bezoekuren op de afdeling cardiologie?"
OFF_TOPIC = "Wie won de Ronde van Vlaanderen in 1969?"


@pytest.fixture
def dutch(visitor: Callable[..., Page]) -> Page:
    """On a phone, where long words have least room."""
    return visitor(**PHONE, locale="nl-NL")


def test_the_chat_speaks_dutch(site: Site, dutch: Page) -> None:
    dutch.goto(site.url)
    expect(dutch.locator("html")).to_have_attribute("lang", "nl")
    expect(dutch.get_by_role("heading", name="Wat wilt u weten?")).to_be_visible()
    expect(dutch.get_by_label("Uw vraag")).to_be_focused()
    assert not is_too_wide(dutch)

    turn = ask(dutch, VISITING_HOURS)
    expect(turn.locator("[data-answer-text]")).to_contain_text("14.00 – 16.00 uur")
    expect(source(turn, 1)).to_contain_text("Bezoekuren")
    expect(turn.get_by_role("button", name="Niet nuttig")).to_be_visible()
    expect(dutch.get_by_placeholder("Stel een vervolgvraag")).to_be_visible()
    assert not is_too_wide(dutch)

    # Written by the site while it answers, not by a page: that is another place to lose the reader's language.
    turn = ask(dutch, OFF_TOPIC)
    expect(turn).to_contain_text(re.compile("De documenten (geven geen antwoord op deze vraag|zeggen dit niet)\\."))


def test_the_admin_speaks_dutch(site: Site, dutch: Page) -> None:
    site.sign_in(dutch)
    dutch.goto(f"{site.url}/admin/retrieval/document/")
    expect(dutch.get_by_role("heading", name="Selecteer document om te wijzigen")).to_be_visible()
    expect(dutch.locator("#result_list .ragsite-status").first).to_have_text("gereed")
    expect(dutch.locator("th.column-size")).to_have_text("Grootte")
    assert not is_too_wide(dutch)

    dutch.goto(f"{site.url}/admin/retrieval/searchprofile/add/")
    expect(dutch.get_by_role("heading", name="Rangschikking", exact=True)).to_be_visible()
    expect(dutch.get_by_label("Gewicht van de reranker")).to_be_visible()
    # Another app has a translation of this word, which would win over the site's own.
    expect(dutch.get_by_role("columnheader", name="Sleutel")).to_be_visible()
    expect(dutch.get_by_role("button", name="Opslaan als versie 1")).to_be_visible()
    assert not is_too_wide(dutch)
