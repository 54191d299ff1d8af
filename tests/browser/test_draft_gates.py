"""An administrator has a gate guard a collection's documents, measures a draft of them, and is told what it loses."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import PHONE, WIDE, Site
from tests.browser.test_draft_pages import begin
from tests.browser.test_evaluation_pages import (  # noqa: F401  # two of them are fixtures
    ARRIVE_MILLISECONDS,
    library,
    look,
    make_set,
    own_site,
)


def test_a_draft_is_measured_before_it_is_published(
    own_site: Site,  # noqa: F811
    library: int,  # noqa: F811
    visitor: Callable[..., Page],
) -> None:
    from evaluation.models import GatePolicy
    from retrieval.models import Collection, Document, Draft

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
        policy = GatePolicy.objects.get()
        slug = Collection.objects.get(pk=library).slug
    begin(own_site, page, slug)
    with own_site.data():
        draft = Draft.objects.get()
        name_of_draft = str(draft)
        for document in Document.objects.filter(collection__draft=draft):
            document.delete()
    for window, name in ((page, "wide"), (phone, "phone")):
        window.goto(evaluation_set)
        expect(window.locator("#id_draft option")).to_have_count(2)
        look(window, f"set-with-draft-{name}")
    page.goto(f"{own_site.url}/admin/evaluation/gatepolicy/{policy.pk}/drafts/{draft.pk}/")
    look(page, "draft-not-measured")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("#gate")).to_contain_text("(draft) is significantly worse than", timeout=ARRIVE_MILLISECONDS)
    expect(page.locator("#worse tbody tr")).not_to_have_count(0)
    phone.goto(page.url)
    for window, name in ((page, "wide"), (phone, "phone")):
        look(window, f"draft-worse-{name}")
    page.get_by_role("link", name=name_of_draft).click()
    expect(page).to_have_url(f"{own_site.url}/admin/retrieval/draft/{draft.pk}/change/")
    expect(page.locator("#content")).to_contain_text("is significantly worse than")
    page.goto(evaluation_set)
    expect(page.locator("#set-runs")).to_contain_text(f"draft #{draft.pk}")
    look(page, "set-runs-of-draft")
