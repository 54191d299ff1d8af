"""Visitors' actions on the pages, and the elements that the tests look at."""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Error, expect

from tests.browser.conftest import LOOKS

# Playwright's messages while a page navigates, and its messages about a document that has just begun.
_GOING = re.compile("navigation|Execution context was destroyed|Cannot read properties of null")

_LATER_ROWS = "tbody tr:nth-child(n + 16)"
# Django's own tables of inline forms have an empty heading.
_OF_DJANGO = "th.original"

# Passed rules are not reported, and style sheets are not fetched again, which only a disabled rule needs. The result is
# null until the page has loaded axe.
_RUN_AXE = """async ([context, without, only]) => {
    if (!window.axe) return null;
    const passed = rule => only.length && !only.includes(rule.id);
    const ids = [...axe._audit.rules.filter(passed).map(rule => rule.id), ...without];
    const off = Object.fromEntries(ids.map(id => [id, {enabled: false}]));
    const found = await axe.run(context, {resultTypes: ["violations"], preload: false, rules: off});
    return found.violations.map(one => ({...one, nodes: one.nodes.slice(0, 1)}));
}"""

# Colours on their way to others are neither of the two; what turns for ever, as a sign of work, is not waited for.
_SETTLED = """() => Promise.all(document.getAnimations()
    .filter(each => each.playState === "running" && each.effect.getComputedTiming().endTime !== Infinity)
    .map(each => each.finished.catch(() => null))).then(() => null)"""

# Only these rules differ between two looks of one page; names and roles are the same.
_RULES_OF_LOOKS = ["color-contrast", "scrollable-region-focusable", "target-size", "button-name", "link-name"]

_WIDTHS = (320, 390, 768, 1440)


def at_rest(page, look):
    """Return the result of ``look`` on a page that is loaded: a click returns before the next page is there."""
    for _ in range(5):
        page.wait_for_load_state()
        try:
            return look()
        except Error as error:
            if not _GOING.search(str(error)):
                raise
    pytest.fail(f"{page.url} does not come to rest.")


def violations(page, include="html", exclude="", without=(), only=()):
    """Return the violations of any impact that axe finds by all rules or ``only`` these; each has its first element."""
    # The rows of a long table are alike, and take axe seconds.
    context = {"include": [[include]], "exclude": [[_LATER_ROWS], [_OF_DJANGO], *([[exclude]] if exclude else [])]}

    def look():
        page.evaluate(_SETTLED)
        found = page.evaluate(_RUN_AXE, [context, without, only])
        if found is None:
            page.evaluate(AXE_SCRIPT)
            return look()
        return found

    return [
        f"{page.url}: {one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}: {one['nodes'][0]['failureSummary']}"
        for one in at_rest(page, look)
    ]


def is_too_wide(page):
    """Return whether the page can be scrolled sideways."""
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    return bool(at_rest(page, lambda: page.evaluate(wide)))


# Cells whose text runs into the next cell, and titles under a button.
_OVERLAPS = """() => {
    const found = [...document.querySelectorAll("td, th")].filter(cell => cell.checkVisibility()
        && getComputedStyle(cell).overflowX === "visible" && cell.scrollWidth > cell.clientWidth + 1);
    const buttons = [...document.querySelectorAll(".object-tools a, main > .button")];
    for (const title of document.querySelectorAll("h1")) {
        const words = document.createRange();
        words.selectNodeContents(title);
        const {top, bottom, left, right} = words.getBoundingClientRect();
        found.push(...buttons.map(one => [one, one.getBoundingClientRect()]).filter(([, box]) =>
            box.left < right - 1 && box.right > left + 1 && box.top < bottom - 1 && box.bottom > top + 1)
            .map(([one]) => one));
    }
    return found.slice(0, 3).map(one => one.outerHTML.slice(0, 120));
}"""


def too_wide(page):
    """Return the widths at which the page can be scrolled sideways, or its text overlaps."""
    found = []
    for width in _WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        if is_too_wide(page):
            found.append(f"{page.url} is too wide at {width}")
        for text in at_rest(page, lambda: page.evaluate(_OVERLAPS)):
            found.append(f"{page.url}: text overlaps at {width}: {text}")
    return found


def in_all_looks(page, without=()):
    """Return `violations` on a wide screen in light colours and on a narrow one in dark colours, and `too_wide`."""
    found = too_wide(page)
    for number, (size, scheme) in enumerate(LOOKS):
        page.set_viewport_size(size["viewport"])
        page.emulate_media(color_scheme=scheme)
        found += violations(page, without=without, only=_RULES_OF_LOOKS if number else ())
    return found


def ask(page, question):
    """Type the question, send it with Enter; returns its turn, when the answer has ended."""
    turn = begin_asking(page, question)
    expect(turn.locator(".answer")).not_to_have_class("answer is-streaming")
    return turn


def begin_asking(page, question):
    """Ask as :func:`ask`, without waiting for the answer."""
    turns = page.locator(".turn")
    before = turns.count()
    page.fill("#question", question)
    page.press("#question", "Enter")
    expect(turns).to_have_count(before + 1)
    return turns.nth(before)


def source(turn, marker):
    return turn.locator(f".source[id$='-source-{marker}']")


def answer_text(turn):
    """Return the words of a finished answer, without markers and their labels."""
    prose = turn.locator("[data-answer-text]")
    text = prose.evaluate(
        "node => { const copy = node.cloneNode(true); copy.querySelectorAll('.cite, .cited-label, .doubt')"
        ".forEach(n => n.remove());"
        " return copy.textContent }"
    )
    return words(text)


def words(text):
    """Return the text on one line: line ends do not count."""
    return " ".join(text.split())


def letters(text):
    """Return the letters and digits alone, which a text and its rendering share.

    The language of a fence is not shown.
    """
    return "".join(filter(str.isalnum, re.sub(r"(?m)^(\s*(?:```|~~~))\w+$", r"\1", text)))


def confirm(page, *, accept):
    """Answer the site's dialog with the keyboard, and return its question."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    asked = dialog.locator("p").inner_text()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    assert violations(page) == []
    if accept:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    else:
        page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    return asked


def leave_no_trace_of(page):
    """Assert that hostile text neither ran nor became markup."""
    return page.evaluate(
        """() => ({
            ran: window.hacked ?? null,
            scripts: document.querySelectorAll(
                "main iframe, main object, main style, main script:not([src^='/static/'])").length,
            images: document.querySelectorAll("main img:not([src^='/static/'])").length,
            handlers: [...document.querySelectorAll("main *")].flatMap(
                node => [...node.attributes].filter(a => /^on/i.test(a.name))).length,
            links: [...document.querySelectorAll("main a")].filter(
                a => !["http:", "https:", "mailto:"].includes(a.protocol)).map(a => a.href),
        })"""
    )


NO_TRACE = {"ran": None, "scripts": 0, "images": 0, "handlers": 0, "links": []}


def share(page):
    """Share the conversation that is shown; returns the link."""
    page.locator("#share summary").click()
    page.get_by_label("Anyone with the link").check()
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("#live")).to_have_text("Shared. Copy the link.")
    return page.get_by_label("Link to this conversation").input_value()
