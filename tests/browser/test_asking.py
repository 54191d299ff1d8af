"""A visitor asks the demo documents, without a language model."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, WIDE
from tests.browser.pages import answer_text, ask, letters, source, violations

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
ADD_VAR = "What does addVar do?"
UNREACHABLE = "The site could not be reached. Your question is still here: try again in a moment."
VISITING_HOURS = "Wat zijn de bezoekuren op de afdeling cardiologie?"
QUESTIONS = [
    pytest.param(WIDE, SEAL_KIT, "Catalogue", "SK-9920-W", id="part-number"),
    pytest.param(PHONE, VISITING_HOURS, "Bezoek en bereikbaarheid", "14.00 – 16.00 uur", id="dutch"),
]


@pytest.mark.parametrize(("size", "question", "first_source", "said"), QUESTIONS)
def test_a_question_is_answered_with_citations_that_open_the_passage(site, visitor, size, question, first_source, said):
    page = visitor(**size)
    page.goto(site.url)
    with page.expect_response(re.compile("/stream/$")) as streamed:
        turn = ask(page, question)
    assert streamed.value.headers["content-type"] == "text/event-stream"
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    assert said in answer_text(turn)

    expect(source(turn, 1).locator(".source-title")).to_contain_text(first_source)
    citations = turn.locator(".cite a")
    numbers = [int(number) for number in citations.all_text_contents()]
    assert numbers
    for number in numbers:
        expect(source(turn, number).locator(".source-quote").first).to_be_visible()

    href, asked = citations.first.get_attribute("href"), page.url
    citations.first.click()
    expect(page.locator("#sheet #passage")).to_be_in_viewport()
    marked = letters("".join(page.locator("#sheet mark").all_text_contents()))
    assert letters(said) in marked
    assert page.url == asked
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator("#sheet")).to_be_hidden()
    expect(citations.first).to_be_focused()
    citations.first.click()
    page.get_by_role("link", name="Open the document").click()
    page.wait_for_url(site.url + href)
    expect(page.locator("#passage")).to_be_in_viewport()
    assert letters("".join(page.locator("mark").all_text_contents())) == marked


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_further_passages_stand_below_an_answer_and_open_in_place(site, visitor, size):
    page = visitor(**size)
    page.goto(site.url)
    turn = ask(page, "Wat zijn de bezoekuren?")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    # The answer is the table of hours, without the exceptions in the section below it.
    expect(turn.locator("[data-answer-text]")).to_contain_text("14.00 – 16.00 uur")
    card = turn.locator(".result").first
    expect(card.locator(".result-snippet")).to_be_visible()
    address = page.url
    card.locator("summary").click()
    expect(card.locator(".prose")).to_be_visible()
    expect(card.locator(".result-snippet")).to_be_hidden()
    assert page.url == address
    card.get_by_role("link", name="Read in the document").click()
    expect(page.locator("#passage")).to_be_in_viewport()


def test_without_a_sure_answer_the_closest_passages_are_shown_and_without_any_the_titles(site, page):
    page.goto(site.url)
    unsure = ask(page, "What does E-205 mean?")
    expect(unsure.locator(".answer")).to_have_class("answer is-refused")
    expect(unsure.locator(".outcome")).to_contain_text("These passages come closest")
    expect(unsure.locator(".result").first.locator(".prose")).to_be_visible()
    far = ask(page, "Who won the world cup in 1998?")
    expect(far.locator(".outcome")).to_contain_text("nothing close")
    assert 1 <= far.locator(".nearest-titles a").count() <= 3
    expect(far.locator(".result")).to_have_count(0)


def test_what_is_typed_while_a_question_is_sent_stays(site, page):
    held = []
    page.route("**/ask/", lambda route: held.append(route))
    page.goto(site.url)
    page.fill("#question", f"{SEAL_KIT}  ")
    with page.expect_request("**/ask/"):
        page.press("#question", "Enter")
    page.locator("#question").press_sequentially("And how ")
    held[0].continue_()
    expect(page.locator(".turn .question")).to_have_text(SEAL_KIT)
    expect(page.locator("#question")).to_have_value("And how ")


def test_the_form_answers_without_javascript(site, visitor):
    page = visitor(**PHONE, java_script_enabled=False)
    page.goto(site.url)
    page.fill("#question", SEAL_KIT)
    page.click(".send")
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/#answer-"))
    turn = page.locator(".turn")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    expect(turn.locator(".source-list .source-title").first).to_be_visible()
    turn.locator(".cite a").first.click()
    expect(page.locator("#passage")).to_be_visible()


def press_until(page, key, selector):
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement?.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached with {key}.")


def test_all_of_it_works_with_the_keyboard_alone(site, page):
    page.goto(site.url)
    expect(page.locator("#question")).to_be_focused()
    # From the top of the page, as after a click on the address bar.
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    press_until(page, "Tab", "#question")
    page.keyboard.type(ADD_VAR)
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".turn")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator(".turn .answer")).to_have_class("answer is-complete")
    expect(page.locator("#question")).to_be_focused()
    press_until(page, "Shift+Tab", ".cite a")
    expect(page.locator("#preview")).to_contain_text("Quoted word for word")
    page.keyboard.press("Escape")
    expect(page.locator("#preview")).to_be_hidden()
    page.keyboard.press("Enter")
    expect(page.locator("#sheet #passage")).to_be_in_viewport()
    page.get_by_role("link", name="Open the document").press("Enter")
    expect(page.locator("main #passage")).to_be_in_viewport()
    page.get_by_role("link", name="Back to the answer").press("Enter")
    expect(page.locator(".cite a:focus")).to_be_in_viewport()


def test_a_stroke_leads_to_the_question_and_one_that_is_too_long_is_not_sent(site, page):
    page.goto(site.url)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("a/b")
    expect(page.locator("#question")).to_have_value("a/b")
    page.fill("#question", "a" * 512)
    expect(page.locator("#question-count")).to_have_text("12 characters too many")
    page.press("#question", "Enter")
    expect(page.locator("#question")).to_have_value("a" * 512)
    expect(page.locator(".turn")).to_have_count(0)


def test_back_and_forward(site, page):
    page.goto(site.url)
    turn = ask(page, SEAL_KIT)
    text = answer_text(turn)
    turn.locator(".cite a").first.click()
    page.get_by_role("link", name="Open the document").click()
    expect(page.locator("main #passage")).to_be_in_viewport()
    page.go_back()
    assert answer_text(page.locator(".turn")) == text
    page.go_back()
    expect(page.locator("#welcome")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)
    page.go_forward()
    assert answer_text(page.locator(".turn")) == text
    ask(page, ADD_VAR)
    expect(page.locator(".turn")).to_have_count(2)


def test_the_drawer_of_a_phone_and_chosen_colours_last(site, visitor):
    page = visitor(**PHONE, reduced_motion="no-preference")
    page.goto(site.url)
    expect(page.locator("#sidebar")).to_be_hidden()
    page.tap("#open-sidebar")
    expect(page.locator("#sidebar")).to_be_in_viewport()
    expect(page.locator("#close-sidebar")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator("#open-sidebar")).to_be_focused()
    page.tap("#open-sidebar")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.tap("[data-theme-toggle]")
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == dark
    expect(page.locator("[data-theme-toggle]")).to_have_attribute("aria-pressed", "true")


def test_a_question_that_the_network_loses_is_still_there(site, page, complaints):
    complaints.expected += ["net::ERR_", "htmx:"]
    page.goto(site.url)
    page.context.set_offline(True)
    page.fill("#question", SEAL_KIT)
    page.press("#question", "Enter")
    expect(page.locator("#question-error")).to_have_text(UNREACHABLE)
    expect(page.locator("#question")).to_have_value(SEAL_KIT)
    expect(page.locator(".turn")).to_have_count(0)
    page.context.set_offline(False)
    page.press("#question", "Enter")
    expect(page.locator(".turn .answer")).to_have_class("answer is-complete")
    expect(page.locator("#question")).to_have_value("")
    expect(page.locator("#question-error")).to_be_empty()


REFUSALS = [
    (507, "text/html", "<main><h1>Full</h1><p>The disk is full: nothing was saved.</p></main>", "The disk is full"),
    (507, "application/json", '{"detail": "The disk is full: nothing was saved."}', "The disk is full"),
    (503, "text/plain", "The site is being changed.", "The site is being changed."),
    (500, "text/html", "<h1>Server Error (500)</h1>", "It did not work. Reload the page and try again."),
    (502, "application/json", "<html>", "It did not work. Reload the page and try again."),
]


def test_a_question_that_is_refused_is_still_there(site, page, complaints):
    complaints.expected += ["htmx:", *(str(status) for status, *_ in REFUSALS)]
    answers = iter(REFUSALS)

    def refuse(route):
        status, media_type, body, _ = next(answers)
        route.fulfill(status=status, content_type=media_type, body=body)

    page.route("**/ask/", refuse)
    for *_, said in REFUSALS:
        page.goto(site.url)
        page.fill("#question", SEAL_KIT)
        page.press("#question", "Enter")
        expect(page.locator("#question-error")).to_contain_text(said)
        expect(page.locator("#question")).to_have_value(SEAL_KIT)
        expect(page.locator(".turn")).to_have_count(0)
