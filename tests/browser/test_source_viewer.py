"""The source viewer in a browser: each kind of document in its own structure, with the passage in its place."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS
from tests.browser.pages import too_wide, violations

# Each kind has the end of its source, and words of a passage as in the text.
PASSAGES = {
    "markdown": ("handbook/04-how-search-works.md", None),
    "html": ("lingo/standard-library.html", None),
    "word": ("parts/warranty-and-returns.docx", None),
    "pdf": ("parts/service-manual.pdf", "never down, so that condensation cannot enter"),
    "code": ("lingo/lingo_interpreter.py", None),
    "csv": ("parts/catalogue.csv", None),
}


def address(site, kind, **more):
    """Return the viewer's address for a passage in the middle of the demo document of this kind."""
    from retrieval.models import Document

    ending, words = PASSAGES[kind]
    with site.data():
        document = Document.objects.select_related("text").get(source__endswith=ending.partition("/")[2])
        text = document.text.text
    start = text.index(words) if words else re.compile(r"\n\s*").search(text, len(text) // 2).end()
    query = "".join(f"&{name}={value}" for name, value in more.items())
    return f"{site.url}/documents/{document.pk}/?start={start}&end={start + len(words or 'x' * 300)}{query}#passage"


@pytest.mark.parametrize(("number", "kind"), enumerate(PASSAGES), ids=[*PASSAGES])
def test_a_citation_opens_at_its_passage_and_axe_finds_nothing_serious(site, visitor, number, kind):
    # Tests alternate between a wide screen in light colours and a narrow one in dark colours.
    size, scheme = LOOKS[number % len(LOOKS)]
    page = visitor(**size, color_scheme=scheme)
    page.goto(address(site, kind))
    expect(page.locator("#passage")).to_be_in_viewport()
    assert page.locator("#passage").count() == 1
    assert violations(page) + too_wide(page) == []


def test_a_pdf_shows_its_page_as_printed_with_the_passage_on_it(site, page):
    page.goto(address(site, "pdf"))
    picture = page.locator(".printed-page img")
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    # Not `wait_for_function`, which the page's content security policy forbids to ask twice.
    assert picture.evaluate("async image => { await image.decode(); return image.naturalWidth }") > 1000
    mark = page.locator(".printed-page rect")
    expect(mark).to_have_count(1)
    inside, around = mark.bounding_box(), picture.bounding_box()
    assert inside
    assert around
    # The third line of the first paragraph, in the left half of the sheet.
    assert 0.17 < (inside["y"] - around["y"]) / around["height"] < 0.21
    assert 0.1 < (inside["x"] - around["x"]) / around["width"] < 0.5
    page.get_by_role("link", name="Next page").click()
    expect(page).to_have_url(re.compile(r"page=3#page-3$"))
    expect(page.locator(".printed summary")).to_have_text("Page 3 of 10 as printed")
    expect(page.locator("#page-3")).to_be_in_viewport()
    original = page.get_by_role("link", name="Open the original at this page")
    expect(original).to_have_attribute("href", re.compile(r"^/documents/\d+/pdf/#page=3$"))


def test_the_heads_of_all_columns_stay_above_the_rows_that_scroll_below_them(site, page):
    page.goto(address(site, "csv"))
    expect(page.locator("#passage")).to_be_in_viewport()
    heads = page.locator(".table-scroll thead th")
    covered = heads.evaluate_all(
        """heads => heads.filter(head => {
            const box = head.getBoundingClientRect()
            const right = head.closest(".table-scroll").getBoundingClientRect().right
            const found = document.elementFromPoint(box.left + 5, box.top + box.height / 2)
            return box.left + 5 < right && !found.closest("th")
        }).map(head => head.textContent)"""
    )
    assert heads.count() > 5
    assert covered == []


def test_a_line_of_code_has_an_address_that_the_keyboard_reaches(site, page):
    page.goto(address(site, "code"))
    # The keyboard focus continues from the passage, whose first line is behind it.
    expect(page.locator("#passage")).to_be_in_viewport()
    line = page.locator(".line:has(mark) .line-number").nth(1)
    number = line.get_attribute("data-line")
    page.keyboard.press("Tab")
    expect(line).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"#L{number}$"))
    page.goto(page.url)
    expect(page.locator(f"#L{number}")).to_be_in_viewport()
    copied = page.evaluate(
        "() => { getSelection().selectAllChildren(document.querySelector('.is-code pre'));"
        " return getSelection().toString() }"
    )
    assert copied.lstrip().startswith(('"""', "#", "import", "from"))


def test_on_paper_everything_is_there_but_the_ways_around(site, page):
    page.goto(address(site, "markdown"))
    page.emulate_media(media="print")
    for selector in (".reader-bar", ".outline", ".view-switch"):
        expect(page.locator(selector)).to_be_hidden()
    expect(page.locator(".is-rendered mark").first).to_be_visible()


@pytest.mark.parametrize("kind", ["markdown", "pdf", "code", "csv"])
def test_the_borders_of_passages_are_shown_without_javascript(site, visitor, kind):
    narrow = kind in ("markdown", "csv")
    plain = visitor(**LOOKS[narrow][0], java_script_enabled=False)
    site.sign_in(plain)
    plain.goto(address(site, kind))
    plain.get_by_role("link", name="Show passages").click()
    expect(plain.locator(".border-start").first).to_contain_text("Passage 1")
    assert plain.locator(".border-start").count() == plain.locator(".border-end").count()
    expect(plain.locator("#passage")).to_be_in_viewport()
    bordered = plain.url
    plain.locator(".border-start a").first.click()
    expect(plain).to_have_url(re.compile(r"/admin/retrieval/chunk/\d+/change/$"))
    page = visitor(**LOOKS[narrow][0], color_scheme=LOOKS[narrow][1])
    site.sign_in(page)
    page.goto(bordered)
    assert violations(page) + too_wide(page) == []
    page.get_by_role("link", name="Hide passages").click()
    expect(page.locator(".border-start")).to_have_count(0)
