"""Readers' actions besides asking: tables on a phone, large type, the library, help, and the way back to an answer."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.pages import ask, in_all_looks, is_too_wide, source, too_wide, violations

ADD_VAR = "What does addVar do?"
TABLE = "| Part | Weight | Price | Made in | Sold by | Where |\n|---|---|---|---|---|---|\n" + "".join(
    f"| MX-99{n:02} | {n} kilograms | {n}.50 euro | Rotterdam, the Netherlands | the shop and the web | here |\n"
    for n in range(4)
)

# The top of an element, when the page has not scrolled for half a second.
TOP_AT_REST = """node => new Promise(done => {
    let last = null, since = 0;
    const look = now => {
        const top = node.getBoundingClientRect().top;
        if (top !== last) [last, since] = [top, now];
        else if (now - since > 500) return done(top);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""


def test_a_table_on_a_phone_keeps_its_first_column_and_its_markers(model_site, visitor, model):
    page = visitor(**PHONE)
    model.pieces = ["These are the parts.\n\n", TABLE]
    page.goto(model_site.url)
    table = ask(page, "Which parts are there?").locator(".table-scroll")
    assert table.evaluate("node => node.scrollWidth > node.clientWidth")
    assert "local" in table.evaluate("node => getComputedStyle(node).backgroundAttachment")
    for left in (0, 10_000):
        table.evaluate("(node, left) => node.scrollTo(left, 0)", left)
        for held in (table.locator("tbody td").first, table.locator(".cite, .doubt").first):
            expect(held).to_be_in_viewport(ratio=1)
    assert not is_too_wide(page)


def test_at_twice_the_size_the_question_leaves_three_quarters_of_the_view(site, visitor):
    page = visitor(viewport={"width": 720, "height": 450})
    page.goto(site.url)
    ask(page, "What is the difference between addVar and setVar?")
    dock = page.locator(".composer-dock").bounding_box()
    assert dock
    assert dock["height"] <= 450 / 4
    expect(page.locator("#ask .send")).to_be_in_viewport(ratio=1)
    # A phone on its side has room to read.
    page.set_viewport_size({"width": 844, "height": 390})
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator("#ask")).not_to_be_in_viewport()
    assert not is_too_wide(page)


def test_a_document_leads_back_to_its_answer_and_to_a_question_about_it(site, page):
    page.goto(site.url)
    ask(page, "How long is the warranty?")
    answered = page.url
    marker = page.locator(".cite a").first
    expect(marker).to_have_attribute("aria-label", re.compile("Merwe Fluidics"))
    marker.click()
    page.get_by_role("link", name="Open the document").click()
    page.get_by_role("link", name="Back to the answer").click()
    expect(page.locator(".cite a").first).to_be_in_viewport()
    assert page.url.partition("#")[0] == answered
    page.locator(".cite a").first.click()
    page.get_by_role("link", name="Open the document").click()
    for view in ("Text", "Rendered"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("link", name="Back to the answer")).to_be_visible()
    title = page.get_by_role("heading", level=1).inner_text()
    page.get_by_role("link", name="Ask this document").click()
    only = page.get_by_role("checkbox", name=f"Only “{title}”")
    turn = ask(page, "Who pays for the shipping?")
    expect(turn.locator(".source").first).to_contain_text(title)
    expect(only).to_be_checked()
    collections = page.get_by_label("Documents to ask")
    expect(collections).to_be_hidden()
    only.uncheck()
    collections.select_option("")
    turn = ask(page, ADD_VAR)
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(only).to_have_count(0)
    collections.select_option("parts")
    expect(ask(page, ADD_VAR).locator(".answer")).to_have_class("answer is-refused")
    page.get_by_role("button", name="Ask all documents").click()
    expect(page.locator(".turn:last-child .answer")).to_have_class("answer is-complete")
    assert in_all_looks(page) == []


def test_another_language_keeps_the_conversation(site, page):
    page.goto(site.url)
    ask(page, "How long is the warranty?")
    asked = page.url
    page.get_by_role("button", name="Nederlands").click()
    expect(page.get_by_role("link", name="Nieuwe vraag").first).to_be_visible()
    assert page.url == asked
    expect(page.locator(".turn .question")).to_have_text(["How long is the warranty?"])
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("link", name="New question").first).to_be_visible()


def test_an_edited_question_begins_a_branch(site, page):
    page.goto(site.url)
    ask(page, "How long is the warranty?")
    turn = ask(page, "Price of MX-9902-W")
    before = page.url
    turn.locator(".edit summary").focus()
    page.keyboard.press("Enter")
    edited = turn.get_by_label("The question, edited")
    expect(edited).to_be_focused()
    expect(turn.locator(".question")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(turn.locator(".question")).to_be_visible()
    page.keyboard.press("Enter")
    edited.fill("Price of MX-9901-W")
    assert in_all_looks(page) == []
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != before)
    expect(page.locator(".turn:last-child .answer")).to_have_class("answer is-complete")
    expect(page.locator(".turn .question")).to_have_text(["How long is the warranty?", "Price of MX-9901-W"])
    page.locator(".branch a").click()
    expect(page.locator(".turn .question")).to_have_text(["How long is the warranty?", "Price of MX-9902-W"])


def test_follow_ups_are_answered(site, page):
    page.goto(f"{site.url}/?collection=handbook")
    first = "Who can see the debug panel?"
    assert 1 <= ask(page, first).locator(".follow-ups button").count() <= 3
    page.reload()
    asked = [first]
    while (offered := page.locator(".turn:last-child .follow-ups button")).count() and len(asked) < 4:
        asked.append(offered.first.inner_text())
        offered.first.click()
        expect(page.locator(".turn")).to_have_count(len(asked))
        expect(page.locator(".turn:last-child .answer")).to_have_class("answer is-complete")
    assert len(set(asked)) == len(asked) > 1
    assert page.locator(".follow-ups:visible").count() <= 1
    assert in_all_looks(page) == []


def test_what_another_tab_asked_appears(site, page):
    page.goto(site.url)
    ask(page, "How long is the warranty?")
    other = page.context.new_page()
    other.goto(page.url)
    ask(other, "Price of MX-9902-W")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".turn:last-child .answer")).to_have_class("answer is-complete")
    other.goto(site.url)
    ask(other, "Who can see the debug panel?")
    expect(page.locator(".conversations li")).to_have_count(2)
    expect(page.locator(".turn")).to_have_count(2)


def test_the_chat_speaks_dutch(site, visitor):
    # On a phone, where long words have least room.
    dutch = visitor(**PHONE, locale="nl-NL")
    dutch.goto(site.url)
    expect(dutch.locator("html")).to_have_attribute("lang", "nl")
    expect(dutch.get_by_role("heading", name="Wat wilt u weten?")).to_be_visible()
    expect(dutch.get_by_label("Uw vraag")).to_be_focused()
    assert not is_too_wide(dutch)

    turn = ask(dutch, "Wat zijn de bezoekuren op de afdeling cardiologie?")
    expect(turn.locator("[data-answer-text]")).to_contain_text("14.00 – 16.00 uur")
    expect(source(turn, 1)).to_contain_text("Bezoekuren")
    expect(turn.get_by_role("button", name="Niet nuttig")).to_be_visible()
    expect(dutch.get_by_placeholder("Stel een vervolgvraag")).to_be_visible()
    assert not is_too_wide(dutch)

    # Written by the site while it answers, not by a page: that is another place to lose the reader's language.
    dutch.goto(site.url)
    turn = ask(dutch, "Wie won de Ronde van Vlaanderen in 1969?")
    expect(turn).to_contain_text(
        re.compile("De documenten (geven geen antwoord op deze vraag|beantwoorden dit misschien niet)\\.")
    )


def test_the_library_and_help_can_be_read_by_anybody(site, page):
    page.goto(site.url)
    addresses = [page.get_by_role("link", name=name).get_attribute("href") for name in ("Browse documents", "Help")]
    found = []
    for address in [*addresses, f"{addresses[1]}?q=debug"]:
        page.goto(f"{site.url}{address}")
        found += in_all_looks(page)
    assert found == []


def test_staff_choose_which_candidates_they_see(site, page):
    site.sign_in(page)
    panel = ask(page, "Which seal kit fits the MX-9920-W?").locator(".debug")
    panel.locator("> summary").click()
    expect(panel.locator(".facts").first).to_be_visible()
    rows = panel.locator(".candidates tbody tr")
    expect(rows.locator("visible=true")).to_have_count(rows.and_(page.locator(".kept")).count())
    panel.locator(".show-dropped").check()
    expect(rows.and_(page.locator(".kept")).locator("visible=true")).to_have_count(0)
    expect(rows.locator("visible=true").first).to_contain_text("Dropped:")
    panel.locator(".show-all").check()
    expect(rows.locator("visible=true")).to_have_count(rows.count())
    expect(panel.locator(".candidates mark").first).to_be_visible()
    assert too_wide(page) == []


DOUBTED = "It needs **seal kit** SK-9920-W [1]. The kit holds 14 parts [1]. It is green."


def statement(said, supported, *reasons):
    start = DOUBTED.index(said)
    return {
        "start": start, "end": start + len(said), "markers": [1], "support": 0.9 if supported else 0.1,
        "supported": supported, "reasons": list(reasons), "best": None,
    }  # fmt: skip


def test_sentences_that_the_sources_do_not_bear_out_are_marked(site, anywhere):
    from chat.answering.checking.citations import find_markers
    from chat.models import Answer, Citation

    page = anywhere
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    statements = [
        statement("It needs **seal kit** SK-9920-W", True),
        statement("The kit holds 14 parts", False, "number"),
        statement("It is green.", False, "uncited"),
    ]
    page.goto(site.url)
    turn = ask(page, "Which seal kit fits the MX-9920-W?")
    answer_id = (turn.get_attribute("id") or "").removeprefix("answer-")
    with site.data():
        # No other question gets it from the cache.
        Answer.objects.filter(pk=answer_id).update(cache_key="", repeats=None, text=DOUBTED, statements=statements)
        cited = Citation.objects.filter(answer=answer_id)[0]
        Citation.objects.filter(answer=answer_id).delete()
        for marker in find_markers(DOUBTED):
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


def test_on_a_phone_the_actions_of_an_answer_are_one_row_of_icons(site, visitor):
    page = visitor(**PHONE)
    page.goto(site.url)
    actions = ask(page, ADD_VAR).locator(".actions .action")
    places = actions.evaluate_all("nodes => nodes.map(node => node.getBoundingClientRect().toJSON())")
    assert len(places) >= 5
    assert len({place["top"] for place in places}) == 1
    assert [place for place in places if min(place["width"], place["height"]) < 44] == []
    for name in ("Copy", "Print", "Save", "Helpful", "Not helpful"):
        expect(page.locator(".actions").get_by_text(name, exact=True)).to_have_count(1)


def test_every_page_for_readers_leads_to_asking_browsing_and_help(site, anywhere):
    page = anywhere
    page.goto(site.url)
    ask(page, ADD_VAR).locator(".cite a").first.click()
    page.get_by_role("link", name="Open the document").click()
    expect(page.locator("#passage")).to_be_in_viewport()
    page.goto(site.url + "/documents/")
    for link, heading in (("Help", "Help"), ("Browse documents", "Collections and documents")):
        page.locator(".bar-links").get_by_role("link", name=link).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        expect(page.locator(".bar-links [aria-current]")).to_have_accessible_name(link)
    page.locator(".list a").first.click()
    page.locator(".bar-links").get_by_role("link", name="Ask").click()
    expect(page.locator("#ask textarea")).to_be_visible()


def test_on_a_phone_a_page_begins_with_the_document(site, visitor):
    page = visitor(**PHONE)
    page.goto(site.url + "/documents/")
    collections = page.locator(".outline details")
    expect(collections).not_to_have_attribute("open", "")
    collections.locator("summary").click()
    collections.get_by_role("link", name="Handbook").click()
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
    page.locator(".list a").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
    expect(page.locator(".outline a").first).to_be_hidden()


def test_an_engineer_searches_again_and_compares_ranks(site, visitor):
    page = visitor(**PHONE)
    site.sign_in(page)
    panel = ask(page, "Which seal kit fits the MX-9920-W?").locator(".debug")
    panel.locator("> summary").click()
    link = panel.get_by_role("link", name="Ranks now")
    address = link.get_attribute("href")
    link.click()
    expect(panel.locator(".ranks-now")).to_contain_text("0 new, 0 gone")
    rows = panel.locator(".then-and-now tbody tr")
    expect(rows.first).to_contain_text("same")
    assert rows.count() == panel.locator(".candidates tbody tr").count()
    assert violations(page) + too_wide(page) == []
    plain = visitor(java_script_enabled=False)
    site.sign_in(plain)
    plain.goto(f"{site.url}{address}")
    expect(plain.locator(".then-and-now tbody tr").first).to_contain_text("same")
    plain.get_by_role("link", name="How these passages were found").click()
    expect(plain.get_by_role("link", name="Ranks now")).to_be_visible()


def test_the_request_of_a_search_is_copied_for_a_terminal(site, visitor):
    page = visitor()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    site.sign_in(page)
    panel = ask(page, "Which seal kit fits the MX-9920-W?").locator(".debug")
    panel.locator("> summary").click()
    panel.get_by_text("Copy as curl").click()
    panel.get_by_role("button", name="Copy", exact=True).click()
    expect(panel.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl -s {site.url}/api/v1/search/")
    assert copied == panel.locator(".curl pre").text_content()
    plain = visitor(java_script_enabled=False)
    site.sign_in(plain)
    plain.goto(f"{site.url}/admin/retrieval/searchprofile/playground/?question=seal+kit&a=published&b=built-in")
    plain.get_by_text("Copy as curl").click()
    expect(plain.locator(".curl pre")).to_contain_text('"query": "seal kit"')
    expect(plain.get_by_role("button", name="Copy", exact=True)).to_be_hidden()


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_on_a_phone_a_further_question_comes_into_view(site, visitor, motion):
    page = visitor(**{**PHONE, "reduced_motion": motion})
    page.goto(site.url)
    ask(page, "What are the warranty periods?")
    turn = ask(page, "How do I make a claim?")
    # The question stays below the bar at the top, and the keyboard of the phone away.
    expect(turn.get_by_role("heading").first).to_be_in_viewport(ratio=1)
    bar = page.locator(".topbar").bounding_box()
    assert bar
    assert bar["y"] + bar["height"] <= turn.evaluate(TOP_AT_REST) < 300
    expect(page.locator("#question")).not_to_be_focused()
