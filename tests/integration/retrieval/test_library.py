"""The page of collections and documents, and what a document's page leads to."""

import pytest

from retrieval.models import Collection, Document
from retrieval.viewer import source_views

pytestmark = pytest.mark.django_db


def test_it_lists_what_the_visitor_may_read_and_no_more(client, collection, ingest, settings):
    shown = ingest(collection, "pump.md", "# The pump\n\nIt pumps.")
    ingest(
        Collection.objects.create(slug="secret", name="Plans", visibility="staff"), "plans.md", "# The merger\n\nMarch."
    )
    ingest(collection, "narrowed.md", "# The salaries\n\nHigh.", metadata={settings.DOCUMENT_GROUPS_KEY: ["board"]})
    Document.objects.create(collection=collection, source="unread.md")
    for query in ("", "?q=the", "?collection=secret", "?page=99&q=%00"):
        text = client.get(f"/documents/{query}").content.decode()
        assert not [word for word in ("Plans", "merger", "salaries", "unread") if word in text]
        assert (f"/documents/{shown.pk}/" in text) == (query != "?collection=secret")
    settings.CHAT_REQUIRES_LOGIN = True
    assert client.get("/documents/").headers["Location"].endswith("?next=/documents/")


def test_it_has_pages_and_finds_titles_and_file_names(client, collection, ingest, monkeypatch):
    monkeypatch.setattr(source_views, "DOCUMENTS_A_PAGE", 2)
    for number in range(1, 4):
        ingest(collection, f"file{number}.md", f"# Pump {number}\n\nIt pumps.")
    first, second = (client.get(f"/documents/?page={page}").content.decode() for page in (1, 2))
    assert ("Pump 2" in first, "Pump 3" in first, "Page 1 of 2" in first) == (True, False, True)
    assert "Pump 3" in second
    for words in ("pump 3", "FILE3", "pump file3"):
        found = client.get("/documents/", {"q": words}).content.decode()
        assert ("Pump 3" in found, "Pump 1" in found) == (True, False)


@pytest.mark.parametrize(
    ("name", "text", "icon"),
    [
        ("parts.csv", "part,price\nseal,3\n", "sheet"),
        ("run.py", "print(1)\n", "code"),
        ("a.md", "# A\n\nText.", "page"),
    ],
)
def test_each_document_has_the_icon_of_its_format(client, collection, ingest, name, text, icon):
    ingest(collection, name, text)
    page = client.get("/documents/").content.decode()
    assert f"icons.svg#{icon}" in page.partition('<ul class="list">')[2]


@pytest.mark.parametrize(
    "ordered",
    [
        ["1.5 Orders", "2.1 Receipt", "10.1 Returns", "10.2 Repairs"],
        ["annex 9", "Annex 10", "annex 010b"],
        ["2.pdf", "Page 3 of the plan", "page 20 of the plan"],
        ["Law of 1998, § 2", "Law of 1998, § 12", "Law of 2001, § 1"],
        ["1", "1.10", "1.10.2", "1.11"],
        ["a", "b 99999999999", "c"],
    ],
)
def test_documents_are_sorted_by_the_numbers_in_their_titles_or_names(collection, ordered):
    for number, name in enumerate(reversed(ordered)):
        title, source = ("", name) if number % 2 else (name, f"x{number}.md")
        Document.objects.create(collection=collection, title=title, source=source)
    assert [document.title or document.source for document in Document.objects.all()] == ordered


@pytest.mark.parametrize(
    ("referer", "leads_back"),
    [
        ("http://testserver/c/00000000-0000-4000-8000-000000000000/", True),
        ("http://testserver/s/00000000-0000-4000-8000-000000000000/", True),
        ("http://testserver/admin/", False),
        ("https://elsewhere.example/c/00000000-0000-4000-8000-000000000000/", False),
        ("http://[bad", False),
    ],
)
def test_a_document_leads_back_to_a_conversation_of_this_site_alone(client, collection, ingest, referer, *, leads_back):
    document = ingest(collection, "pump.md", "# The pump\n\nIt pumps.")
    text = client.get(f"/documents/{document.pk}/", headers={"Referer": referer}).content.decode()
    assert (f'id="came-from" href="{referer.removeprefix("http://testserver")}"' in text) == leads_back
