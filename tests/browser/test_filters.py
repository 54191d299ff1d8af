"""A visitor narrows a question by what documents say of themselves: chips, days, and a list that can be linked."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, PHONE
from tests.browser.pages import ask, violations


def look(page, name):
    """Keep a picture in the folder of the variable PICTURES, if there is one."""
    if folder := os.environ.get("PICTURES"):
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"{name}.png", animations="disabled")


def chips(page):
    return page.locator("#filter-chips .chip")


def choose(page, collection):
    with page.expect_response("**/filters/"):
        page.locator("#scope select").select_option(collection)


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=["wide", "phone"])
def test_a_question_is_asked_of_this_years_documents(site, visitor, size, scheme):
    name = f"{size['viewport']['width']}-{scheme}"
    page = visitor(**size, color_scheme=scheme)
    page.goto(site.url)
    page.locator("#filters summary").click()
    expect(page.get_by_role("group", name="Afdeling")).to_be_visible()
    look(page, f"all-{name}")
    page.keyboard.press("Escape")
    choose(page, "parts")
    page.locator("#filters summary").click()
    expect(page.get_by_role("group", name="Afdeling")).to_have_count(0)
    page.get_by_label("manual").check()
    expect(chips(page)).to_have_count(1)
    page.get_by_label("Published, period").select_option("This year")
    expect(chips(page)).to_have_text([re.compile("Kind.*manual"), re.compile("Published.*from 1 January ")])
    expect(page.locator("#filter-count")).to_contain_text("2 chosen")
    assert violations(page, include="#ask") == []
    look(page, f"open-{name}")
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".filters-panel")).not_to_be_visible()
    look(page, f"chips-{name}")
    # Nothing passes both: the answer says so, and offers the question without them.
    turn = ask(page, "How heavy is the MX-9920-W?")
    expect(turn.locator(".outcome")).to_contain_text("No document that you may read passes the filters")
    expect(turn.locator(".asked-with .chip")).to_have_count(2)
    expect(chips(page)).to_have_count(2)
    assert violations(page, include=".turn") == []
    look(page, f"nothing-{name}")
    # One chip less, and the next question finds what it asks for.
    chips(page).first.click()
    expect(chips(page)).to_have_count(1)
    expect(page.locator("#filters input:checked")).to_have_count(0)
    turn = ask(page, "How heavy is the MX-9920-W?")
    expect(turn.locator(".answer")).to_have_class("answer is-complete")
    page.reload()
    expect(chips(page)).to_have_text([re.compile("Published")])
    look(page, f"reopened-{name}")
    page.get_by_role("button", name="Ask without the filters").first.click()
    expect(page.locator(".turn")).to_have_count(3)
    expect(chips(page)).to_have_count(0)
    expect(page.locator(".turn").last.locator(".asked-with")).to_have_count(0)


def test_filters_work_without_scripts(site, visitor):
    page = visitor(**PHONE, java_script_enabled=False)
    page.goto(site.url)
    page.locator("#scope select").select_option("parts")
    page.locator("#question").fill("How heavy is the MX-9920-W?")
    page.locator("#filters summary").click()
    page.get_by_label("terms").or_(page.get_by_label("catalogue")).first.check()
    page.get_by_role("button", name="Done").click()
    # The page comes again, with the question and the chosen collection.
    expect(page.locator("#question")).to_have_value("How heavy is the MX-9920-W?")
    expect(page.locator("#scope select")).to_have_value("parts")
    expect(chips(page)).to_have_text([re.compile("Kind.*catalogue")])
    page.locator(".send").click()
    expect(page.locator(".asked-with .chip")).to_have_count(1)
    expect(page.locator(".answer")).to_have_class("answer is-complete")
    chips(page).first.click()
    expect(chips(page)).to_have_count(0)


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=["wide", "phone"])
def test_the_list_of_documents_is_filtered_by_its_address(site, visitor, size, scheme):
    page = visitor(**size, color_scheme=scheme)
    page.goto(f"{site.url}/documents/?collection=ziekenhuis")
    before = page.locator(".list li").count()
    page.locator(".list-filters summary").click()
    page.get_by_label("Cardiologie").check()
    page.get_by_role("button", name="Apply the filters").click()
    expect(page.locator(".list li")).to_have_count(2)
    expect(page).to_have_url(re.compile("filter.afdeling=Cardiologie"))
    assert violations(page, include="main") == []
    look(page, f"list-{size['viewport']['width']}-{scheme}")
    page.get_by_role("link", name="Ask this collection").click()
    expect(chips(page)).to_have_text([re.compile("Afdeling.*Cardiologie")])
    page.go_back()
    page.locator(".list-chips a").click()
    expect(page.locator(".list li")).to_have_count(before)
