"""A gate guards documents: a draft is measured, refused for what it loses, and published with a reason alone."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Complaints, Site
from tests.browser.test_draft_pages import begin
from tests.browser.test_evaluation_pages import (  # noqa: F401  # two of them are fixtures
    ARRIVE_MILLISECONDS,
    library,
    look,
    make_set,
    own_site,
)


def test_a_draft_that_loses_what_is_asked_for_is_published_with_a_reason_alone(
    own_site: Site,  # noqa: F811
    library: int,  # noqa: F811
    visitor: Callable[..., Page],
    complaints: Complaints,
) -> None:
    from retrieval.models import Collection, Document, Draft

    # A refusal is answered with 409, which a browser reports.
    complaints.expected.append("409")
    page, phone = visitor(**WIDE), visitor(**PHONE)
    own_site.sign_in(page)
    own_site.sign_in(phone)
    evaluation_set = make_set(own_site, page, library, "Guard")
    page.goto(f"{own_site.url}/admin/evaluation/gatepolicy/add/")
    page.locator(".select2-selection").click()
    page.locator(".select2-results__option", has_text="Guard").click()
    page.get_by_label("Required for changed documents").check()
    look(page, "gate-on-documents")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".messagelist .warning")).to_contain_text("are changed by drafts alone")

    with own_site.data():
        slug = Collection.objects.get(pk=library).slug
    collection, draft = begin(own_site, page, slug)
    page.goto(collection)
    expect(page.get_by_text("A gate guards the documents")).to_be_visible()
    with own_site.data():
        number = Draft.objects.get().pk
        for document in Document.objects.filter(collection__draft=number)[1:]:
            document.delete()
    page.goto(draft)
    expect(page.locator(".ragsite-announcement")).to_contain_text("have not both been measured")
    page.get_by_role("link", name="Look and measure").click()
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#gate")).to_contain_text("(draft) is significantly worse than", timeout=ARRIVE_MILLISECONDS)
    expect(page.locator("#worse tbody tr")).not_to_have_count(0)
    gate = page.url
    for address, name in ((gate, "gate"), (evaluation_set, "set"), (draft, "draft")):
        for one, width in ((phone, "phone"), (page, "wide")):
            one.goto(address)
            if name == "set":
                expect(one.locator("#id_draft option")).to_have_count(2)
                expect(one.locator("#set-runs")).to_contain_text(f"draft #{number}")
            look(one, f"{name}-worse-{width}")
    expect(page.locator(".ragsite-announcement")).to_contain_text("is significantly worse than")

    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Not published")).to_be_visible()
    page.fill("#override", "The old rules are void.")
    look(page, "draft-refused")
    page.get_by_role("button", name="Publish all the same").click()
    expect(page.locator("#draft-status .ragsite-status")).to_have_text("published", timeout=ARRIVE_MILLISECONDS)
    expect(page.locator("#draft-status")).to_contain_text("The old rules are void.")
    expect(page.locator("#draft-status")).to_contain_text("is significantly worse than")
    look(page, "draft-overridden")
