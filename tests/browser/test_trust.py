"""What the page says of an answer beside its words: doubts, how the question was searched, its age."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Site
from tests.browser.pages import answer_text, ask, begin_asking
from tests.support.model_server import ModelServer

QUESTION = "Which seal kit fits the MX-9920-W?"
FOLLOW_UP = "and its price?"
TEXT = "It needs **seal kit** SK-9920-W [1]. The kit holds 14 parts [1]. It is green."
LOOSE = "The sources bear on this only loosely; check them."


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


def test_an_answer_without_doubts_has_no_marks(site: Site, page: Page) -> None:
    statements = [statement("The kit holds 14 parts", True), statement("It is green.", None)]
    turn = answered_with(site, page, text=TEXT, statements=statements, confidence=0.9)
    expect(turn.locator("[data-answer-text]")).to_contain_text("It is green.")
    expect(turn.locator(".remark, .unsupported, .doubt")).to_have_count(0)


def test_an_uncertain_answer_says_so(site: Site, page: Page) -> None:
    turn = answered_with(site, page, statements=[], confidence=0.31)
    expect(turn.locator(".remark")).to_have_text(LOOSE)


def test_how_a_follow_up_was_searched_is_shown(model_site: Site, page: Page, model: ModelServer) -> None:
    page.goto(model_site.url)
    expect(ask(page, QUESTION).locator(".searched-as")).to_have_count(0)
    model.pieces, model.delay_seconds = ["It costs [1] ", *["much "] * 40], 0.1
    turn = begin_asking(page, FOLLOW_UP)
    text = "Also searched together with your questions before it"
    expect(turn.locator(".searched-as")).to_have_text(text)
    expect(turn.locator(".answer")).to_have_class("answer is-streaming")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    page.reload()
    expect(page.locator(".turn").nth(1).locator(".searched-as")).to_have_text(text)
    expect(page.locator(".searched-as")).to_have_count(1)


def test_an_old_answer_says_so_and_can_be_had_anew(site: Site, page: Page) -> None:
    from chat.models import Answer

    page.goto(site.url)
    text = answer_text(ask(page, QUESTION))
    page.goto(site.url)
    turn = ask(page, QUESTION)
    said = re.compile(r"^\s*Answered before, on .*2\d\d\d.*; the documents have not changed since\.\s*$")
    expect(turn.locator(".repeated")).to_have_text(said)
    assert answer_text(turn) == text
    page.reload()
    expect(turn.locator(".repeated")).to_have_text(said)
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/ask/")) as asked:
        turn.get_by_role("button", name="Ask anew").click()
    posted = parse_qs(asked.value.post_data or "")
    assert (posted["anew"], posted["question"]) == (["1"], [QUESTION])
    anew = page.locator(".turn").nth(1)
    expect(anew.locator(".answer")).to_have_class("answer is-complete")
    expect(anew.locator(".repeated")).to_have_count(0)
    assert answer_text(anew) == text
    with site.data():
        assert Answer.objects.get(pk=(anew.get_attribute("id") or "").removeprefix("answer-")).anew


def test_what_a_model_adds_to_the_sources_is_marked_when_the_answer_is_complete(
    model_site: Site, page: Page, model: ModelServer
) -> None:
    model.pieces = ["The seal kit for the MX-9920-W is SK-9920-W [1]. ", "It weighs 950 kilograms and glows [1]."]
    page.goto(model_site.url)
    turn = ask(page, QUESTION)
    expect(turn.locator("mark.unsupported")).to_have_text(re.compile("^It weighs 950 kilograms and glows"))
    remark = "1 of 2 sentences is not supported by the sources."
    expect(turn.locator(".remark")).to_have_text(remark)
    expect(page.locator("#live")).to_have_text(re.compile(f"^Answer complete. {remark} The seal kit"))
