"""A passage that changed after its answer is compared with the words of then, and followed by mail."""

from playwright.sync_api import expect

from tests.browser.pages import ask, is_too_wide, violations

SEAL_KIT = "Which seal kit fits the MX-9920-W?"
BEFORE, AFTER = "one head gasket; change every 5 years", "two head gaskets; change every 4 years"


def change_the_catalogue():
    from retrieval.models import Chunk, DocumentText

    for text in list(DocumentText.objects.filter(text__contains=BEFORE)):
        text.text, text.content_hash = text.text.replace(BEFORE, AFTER), "f" * 64
        text.save()
    for chunk in list(Chunk.objects.filter(content__contains=BEFORE)):
        chunk.content = chunk.content.replace(BEFORE, AFTER)
        chunk.save(update_fields=["content"])


def restore_the_catalogue(kept):
    for row in kept:
        row.save()


def keep_the_catalogue(kept):
    from retrieval.models import Chunk, DocumentText

    kept += [*DocumentText.objects.filter(text__contains=BEFORE), *Chunk.objects.filter(content__contains=BEFORE)]


def test_the_sign_beside_a_marker_opens_the_words_of_then_and_now(site, anywhere):
    page, kept = anywhere, []
    page.goto(site.url)
    ask(page, SEAL_KIT)
    expect(page.locator(".changed-sign")).to_have_count(0)
    site.do(keep_the_catalogue, kept)
    site.do(change_the_catalogue)
    try:
        page.reload()
        change = page.locator(".change")
        expect(change.locator(".change-sides")).to_be_hidden()
        page.locator(".changed-sign").first.click()
        expect(change.locator("summary")).to_be_focused()
        expect(change.locator("del")).to_have_text(["one", "gasket;", "5"])
        expect(change.locator("ins")).to_have_text(["two", "gaskets;", "4"])
        then, now = (change.locator(".change-sides > div").nth(number).bounding_box() for number in (0, 1))
        is_wide = page.viewport_size["width"] > 640
        assert (then["y"] == now["y"]) == is_wide
        assert not is_too_wide(page)
        assert violations(page, include=".turn") == []
        change.get_by_role("link", name="Read the document of today").click()
        # The passage is a row of a table: its first cell has the id.
        expect(page.locator("tr", has=page.locator("#passage"))).to_contain_text("two head gaskets")
    finally:
        site.do(restore_the_catalogue, kept)
