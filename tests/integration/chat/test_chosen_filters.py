"""Filters that curators mark and readers choose: kept in the conversation, told apart by the cache, within rights."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.cache import caches
from django.test import Client
from django.utils.timezone import localdate

from chat.conversations import sharing
from chat.models import Answer, Conversation
from chat.streaming import asking
from retrieval.models import Collection, Document, MarkedFilter
from retrieval.rights.offered_filters import list_offered_filters
from tests.support.asking import VISITOR, answered, client_of
from tests.support.libraries import remembered
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HTTP_HX_REQUEST": "true"}
QUESTION = "How heavy is the pump?"
KINDS = {"author": "values", "published": "dates", "pages": "numbers", "language": "values"}


@pytest.fixture
@remembered
def library(collection, ingest):
    """Two pumps by different authors, and one that only a group sees."""
    for source, weight, metadata in (
        ("new.md", 3450, {"author": "Jansen", "published": localdate().isoformat(), "pages": 12}),
        ("old.md", 9900, {"author": ["De Vries", "Smit"], "published": "2019-05-01", "pages": "250"}),
        ("secret.md", 7700, {"author": "Zwart", "groups": ["board"], "published": "1999-01-01", "pages": 999}),
    ):
        name = source.removesuffix(".md").capitalize()
        ingest(collection, source, f"# {name} pump\n\nThe {name} pump weighs {weight} grams.", metadata=metadata)
    return collection


@pytest.fixture(autouse=True)
def _marked(library):
    # Restored documents have the versions of earlier tests.
    caches["process"].clear()
    for position, (field, kind) in enumerate(KINDS.items()):
        MarkedFilter.objects.create(collection=library, field=field, kind=kind, position=position)


@pytest.fixture
def browser(library):
    return client_of(visitor=VISITOR)


def found(answer):
    return {source["document"]["title"] for source in answer.sources}


def ask(browser, conversation=None, **chosen):
    named = {"conversation": conversation.pk} if conversation else {}
    response = browser.post("/ask/", {"question": QUESTION, "collection": "library", "filters": "1", **named, **chosen})
    assert response.status_code == 302, response.content
    return Answer.objects.select_related("conversation").latest("created_at")


def chips(html):
    texts = re.findall(r'<span class="chip-label">([^<]*)</span> <span>([^<]*)</span>', html)
    return [": ".join(pair) for pair in texts]


def test_filters_are_kept_shown_and_changed(browser):
    first = ask(browser, **{"filter.author": "Jansen"})
    assert found(first) == {"New pump"}
    page = browser.get(f"/c/{first.conversation_id}/").content.decode()
    # In the composer, and beside the answer.
    assert chips(page) == ["Author: Jansen", "Author: Jansen"]
    assert re.search(r'name="filter.author" value="Jansen" checked', page)
    for paper in ("print", "save"):
        html = browser.get(f"/c/{first.conversation_id}/{paper}/").content.decode()
        assert re.search("[Ss]earched: the collection “Library”, Author: Jansen", html)
    # A follow-up that names no filters keeps them; others replace them.
    follow_up = answered("and its weight?", conversation_id=first.conversation_id)
    assert follow_up.asked_filters == first.asked_filters == {"metadata_any": {"author": ["Jansen"]}}
    second = ask(browser, first.conversation, **{"filter.author": ["De Vries"], "filter.pages.from": "100"})
    assert found(second) == {"Old pump"}
    # Another collection has other filters.
    Collection.objects.create(slug="archive", name="Archive")
    moved = answered(QUESTION, conversation_id=first.conversation_id, collection="archive")
    assert moved.asked_filters == moved.conversation.filters == {}
    # A branch searches what the edited question searched.
    browser.post("/ask/", {"question": "Which pump is light?", "edits": second.pk}, **HTMX)
    assert Answer.objects.latest("created_at").asked_filters == second.asked_filters


def test_documents_of_this_year_and_of_a_number(browser):
    this_year = ask(browser, **{"filter.published.quick": "year"})
    first_day = localdate().replace(month=1, day=1).isoformat()
    assert this_year.asked_filters == {"dates": [{"field": "published", "from": first_day}]}
    assert found(this_year) == {"New pump"}
    months = ask(browser, **{"filter.published.quick": "months"}).asked_filters["dates"][0]["from"]
    assert months == (localdate() - timedelta(days=365)).isoformat()
    assert found(ask(browser, **{"filter.published.to": "2020-01-01"})) == {"Old pump"}
    # A number may be written as text.
    assert found(ask(browser, **{"filter.pages.from": "13", "filter.pages.to": "250,0"})) == {"Old pump"}
    for wrong in ({"filter.published.from": "2026-31-12"}, {"filter.pages.from": "9", "filter.pages.to": "1"}):
        sent = {"question": QUESTION, "collection": "library", "filters": "1", **wrong}
        response = browser.post("/ask/", sent, **HTMX)
        assert (response.status_code, "Check the filter “P" in response.content.decode()) == (422, True)


def test_the_cache_tells_filters_and_changed_metadata_apart(browser):
    nothing = ask(browser, **{"filter.author": "Smit", "filter.pages.from": "300"})
    assert nothing.refused
    again = ask(browser, **{"filter.author": "Smit", "filter.pages.from": "300"})
    assert again.repeats == nothing
    assert ask(browser, **{"filter.author": "Smit"}).repeats is None
    # No passage changed, but the document passes now: a change of metadata is a new version of the collection.
    Document.objects.filter(source="old.md").update(metadata={"author": "Smit", "pages": 301})
    assert found(ask(browser, **{"filter.author": "Smit", "filter.pages.from": "300"})) == {"Old pump"}


def test_an_answer_without_documents_offers_the_question_without_filters(browser):
    nothing = ask(browser, **{"filter.author": "Jansen", "filter.pages.from": "100"})
    page = browser.get(f"/c/{nothing.conversation_id}/").content.decode()
    assert "No document that you may read passes the filters of this question." in page
    form = page.partition("Ask without the filters")[0].rpartition("<form")[2]
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    browser.post("/ask/", sent)
    anew = Answer.objects.latest("created_at")
    assert (anew.asked_filters, anew.collection.slug) == ({}, "library")
    assert "New pump" in found(anew)


def test_a_reader_sees_no_value_of_a_document_that_is_closed_to_them(library, browser):
    def offered(user):
        return {each.field: each for each in list_offered_filters(user, "library")}

    visitor = Conversation(owner=None)
    stranger = Answer(conversation=visitor).asker
    assert [value.value for value in offered(stranger)["author"].values] == ["De Vries", "Jansen", "Smit"]
    assert offered(stranger)["published"].first == "2019-05-01"
    assert (offered(stranger)["pages"].first, offered(stranger)["pages"].last) == ("12", "250")
    for html in (browser.get("/?collection=library"), browser.get("/documents/?collection=library")):
        assert "Jansen" in html.content.decode()
        assert "Zwart" not in html.content.decode()
    # Knowing the name does not help.
    assert ask(browser, **{"filter.author": "Zwart"}).refused
    member = make_reader("member")
    member.groups.add(Group.objects.create(name="board"))
    assert "Zwart" in {value.value for value in offered(member)["author"].values}
    # A filter whose values are all closed is not offered at all.
    Document.objects.exclude(source="secret.md").update(metadata={})
    caches["process"].clear()
    assert set(offered(stranger)) == {"language"}
    Collection.objects.filter(pk=library.pk).update(visibility="staff")
    assert list_offered_filters(stranger, "library") == list_offered_filters(stranger) == ()


def test_a_shared_answer_hides_values_that_its_reader_may_not_see(library):
    member = make_reader("member")
    member.groups.add(Group.objects.create(name="board"))
    chosen = {"metadata_any": {"author": ["Zwart", "Jansen"]}, "numbers": [{"field": "pages", "to": 1}]}
    answer = answered("xyzzy?", user=member, visitor="", collection="library", filters=chosen)
    token = sharing.share_conversation(answer.conversation)
    assert chips(client_of(member).get(f"/c/{answer.conversation_id}/").content.decode())[-3:] == [
        "Author: Zwart",
        "Author: Jansen",
        "Pages: up to 1",
    ]
    page = Client().get(f"/s/{token}/").content.decode()
    assert "xyzzy?" in page
    assert chips(page) == ["Author: Jansen", "Pages: up to 1", "Filters: not shown to you"]
    assert "Zwart" not in page


def test_the_composer_follows_the_chosen_collection_and_removed_chips(library, browser, ingest):
    other = Collection.objects.create(slug="archive", name="Archive")
    ingest(other, "a.md", "# A\n\nText.", metadata={"shelf": "B7"})
    MarkedFilter.objects.create(collection=other, field="shelf", label="Place")
    sent = {"collection": "archive", "filters": "1", "filter.author": "Jansen", "filter.shelf": "B7"}
    html = browser.post("/filters/", sent, **HTMX, HTTP_HX_TRIGGER_NAME="collection").content.decode()
    assert chips(html) == ["Place: B7"]
    assert 'name="filter.author"' not in html
    # All documents have the filters of both.
    html = browser.post("/filters/", {**sent, "collection": "", "remove": "author=Jansen"}, **HTMX).content.decode()
    assert chips(html) == ["Place: B7"]
    assert 'name="filter.author" value="Jansen">' in html
    # Without scripts, the page comes again with what was typed.
    page = browser.post("/filters/", {**sent, "question": "so far"}).content.decode()
    assert "so far</textarea>" in page
    assert Conversation.objects.count() == 0
    linked = browser.get("/?collection=archive&filter.shelf=B7").content.decode()
    assert chips(linked) == ["Place: B7"]


def test_the_list_of_documents_is_filtered_by_its_address(browser):
    def listed(query):
        html = browser.get(f"/documents/?{query}").content.decode()
        return re.findall(r'<a href="/documents/\d+/">([^<]*)</a>', html), html

    titles, html = listed("collection=library&filter.author=Smit&filter.pages.from=200")
    assert (titles, chips(html)) == (["Old pump"], ["Author: Smit", "Pages: from 200"])
    # Each chip links to the list without it, the collection links to the question with all.
    assert 'href="?filter.pages.from=200&amp;collection=library"' in html
    assert 'href="/?filter.author=Smit&amp;filter.pages.from=200&amp;collection=library"' in html
    assert listed("filter.author=Smit")[0] == ["Old pump"]
    assert listed("filter.author=Zwart")[0] == []
    titles, html = listed("filter.published.from=soon&filter.nonsense=3")
    assert (titles, "Check the filter “Published”" in html) == (["New pump", "Old pump"], True)


def test_the_api_asks_with_filters_and_lists_them(api, library):
    def post(**body):
        return api.post("/api/v1/ask/", {"question": QUESTION, **body}, format="json")

    filters = {"metadata_any": {"author": ["Jansen"]}, "numbers": [{"field": "pages", "to": 100}]}
    first = post(collection="library", filters=filters).json()
    assert first["filters"] == {"metadata_any": {"author": ["Jansen"]}, "numbers": [{"field": "pages", "to": 100.0}]}
    assert found(Answer.objects.get(pk=first["answer_id"])) == {"New pump"}
    follow_up = post(conversation=first["conversation"]).json()
    assert follow_up["filters"] == first["filters"]
    assert post(conversation=first["conversation"], filters={}).json()["filters"] == {}
    for wrong, said in (
        ({"metadata_any": {"auhtor": ["Jansen"]}}, "No document that you may read has the metadata “auhtor”."),
        ({"dates": [{"field": "author", "from": "2026-01-01"}]}, "“author” has no dates"),
        ({"numbers": [{"field": "published", "from": 1}]}, "“published” has no numbers"),
        ({"numbers": [{"field": "pages", "from": 2, "to": 1}]}, "must not end"),
        ({"nonsense": 1}, "Unknown field."),
    ):
        for response in (post(filters=wrong), api.post("/api/v1/search/", {"query": "pump", "filters": wrong}, "json")):
            assert (response.status_code, said in response.content.decode()) == (400, True), response.content
    listed = api.get("/api/v1/filters/?collection=library").json()
    assert [(each["field"], each["part"]) for each in listed] == [
        ("author", "metadata_any"),
        ("published", "dates"),
        ("pages", "numbers"),
        ("language", "languages"),
    ]
    assert listed[0]["values"][0] == {"value": "De Vries", "label": "De Vries", "documents": 1}
    assert listed[3]["values"][0]["label"] == "English"
    assert api.get("/api/v1/filters/?collection=nowhere").status_code == 400
    with pytest.raises(asking.InvalidQuestion):
        answered(QUESTION, filters={"metadata_any": {"groups_of": ["x"]}})
