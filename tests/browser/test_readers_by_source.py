"""The form of a source that takes over who may read, and what its runs say of readers."""

import pytest
from playwright.sync_api import expect

from retrieval.models import Collection, Document, Source, SourceRun
from tests.browser.pages import in_all_looks

DETAILS = {
    "opened": [["Care", 12], ["anna@example.org", 1]],
    "closed": [["*", 13]],
    "about_readers": ["These names are unknown here, and admit nobody: contractors-of-the-northern-department-2026."],
}


@pytest.fixture
def source(site):
    with site.data():
        collection = Collection.objects.order_by("pk").first()
        options = {"url": "https://wiki.example.org", "space": "CARE"}
        made = Source.objects.create(collection=collection, name="Care wiki", kind="confluence", options=options)
        SourceRun.objects.create(source=made, status="done", unchanged=13, details=DETAILS)
    yield made
    with site.data():
        Document.objects.filter(origin=made).delete()
        made.delete()


def test_names_are_entered_and_checked_and_runs_say_who_reads(site, source, visitor):
    page = visitor()
    site.sign_in(page)
    page.goto(f"{site.url}/admin/retrieval/source/{source.pk}/change/")
    page.get_by_label("Take over who may read").check()
    page.get_by_label("Names").fill("care-team = Care\ncontractors")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("“contractors” must be a name there")).to_be_visible()
    page.get_by_label("Names").fill("care-team = Care")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_label("Take over who may read")).to_be_checked()
    with site.data():
        assert Source.objects.get(pk=source.pk).options["reader_names"] == ["care-team = Care"]
    page.get_by_text("What it did").first.click()
    expect(page.get_by_text("everybody who may ask the collection: 13")).to_be_visible()
    expect(page.get_by_text("contractors-of-the-northern-department-2026")).to_be_visible()
    assert in_all_looks(page) == []
