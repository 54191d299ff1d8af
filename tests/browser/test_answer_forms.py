"""What a reader sees of an answer that its sources support in part."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import ask

QUESTION = "Which seal kit fits the MX-9920-W?"
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


def test_sentences_that_the_sources_do_not_bear_out_are_marked(site: Site, anywhere: Page) -> None:
    from chat.answering.citations import find_markers
    from chat.models import Answer, Citation

    page = anywhere
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    statements = [
        statement("It needs **seal kit** SK-9920-W", True),
        statement("The kit holds 14 parts", False, "number"),
        statement("It is green.", False, "uncited"),
    ]
    page.goto(site.url)
    turn = ask(page, QUESTION)
    answer_id = (turn.get_attribute("id") or "").removeprefix("answer-")
    with site.data():
        # No other question gets it from the cache.
        Answer.objects.filter(pk=answer_id).update(cache_key="", repeats=None, text=TEXT, statements=statements)
        cited = Citation.objects.filter(answer=answer_id)[0]
        Citation.objects.filter(answer=answer_id).delete()
        for marker in find_markers(TEXT):
            cited.pk, cited.marker = None, marker.number
            cited.marker_start, cited.marker_end = marker.start, marker.end
            cited.save(force_insert=True)
    page.reload()
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
