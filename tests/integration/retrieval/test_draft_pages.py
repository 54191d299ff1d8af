"""Drafts in the admin, and what the admin and the API refuse where documents change by drafts alone."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.html import escape
from rest_framework.test import APIClient

from chat.pages.suggestions import list_suggestions
from retrieval import gates
from retrieval.admin.document_forms import DocumentForm
from retrieval.documents import ingestion, submission
from retrieval.documents.drafts import lifecycle
from retrieval.documents.drafts.editing import find_reason_not_to_change
from retrieval.exceptions import DocumentRejected
from retrieval.gates import Gate, PublicationObjection
from retrieval.models import Chunk, Collection, Document, Draft
from tests.support.libraries import library_of
from tests.support.pages import messages, staff

pytestmark = pytest.mark.django_db

DOCUMENTS = "/admin/retrieval/document/"
COLLECTIONS = "/admin/retrieval/collection/"
DRAFTS = "/admin/retrieval/draft/"
PUMP = "# Pump\n\nThe pump weighs 3450 grams.\n"


library = library_of(
    {
        "pump.md": PUMP,
        "valve.md": "# Valve\n\nThe valve closes at ten bar.\n",
        "heater.md": "# Heater\n\nThe heater takes 40 watts.\n",
    }
)


@pytest.fixture
def changed(draft, ingest):
    """Return the draft with one document added, one changed and one removed."""
    copy = copy_of(draft)
    ingest(copy, "<b>new</b>.md", "# New\n\nA pressure switch.\n")
    ingest(copy, "pump.md", "# Pump\n\nThe pump weighs 4 kilograms.\n")
    copy.documents.get(source="valve.md").delete()
    return draft


@pytest.fixture
def objections(library, monkeypatch):
    """Return the list of objections of a gate that guards the library."""
    found = []
    gate = Gate(guards=lambda one: one.pk == library.pk, find_objections=lambda _: found)
    monkeypatch.setattr(gates, "GATES", [gate])
    return found


@pytest.fixture
def api(admin_user):
    cache.clear()
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(admin_user)
    return client


def copy_of(draft):
    return Collection.objects.get(draft=draft)


def page_of(thing):
    return reverse(f"admin:retrieval_{thing._meta.model_name}_change", args=[thing.pk])


def action(draft, name):
    return reverse(f"admin:retrieval_draft_{name}", args=[draft.pk])


def log_of(draft):
    found = LogEntry.objects.filter(content_type__model="draft", object_id=str(draft.pk)).order_by("pk")
    return [entry.get_change_message() for entry in found]


def html_of(response):
    assert response.status_code == 200
    html = response.content.decode()
    assert "style=" not in html
    return html


def test_a_draft_is_begun_on_the_page_of_its_collection(admin, library, admin_user):
    begin = reverse("admin:retrieval_draft_begin", args=[library.pk])
    assert begin in html_of(admin.get(page_of(library)))
    assert admin.get(begin).status_code == 405
    response = admin.post(begin, follow=True)
    draft = Draft.objects.get()
    assert response.redirect_chain == [(page_of(draft), 302)]
    assert messages(response) == [f"Started: {draft}. Its documents are being copied."]
    assert draft.created_by == admin_user
    assert log_of(draft) == ["Added."]
    html = html_of(admin.get(page_of(library)))
    assert begin not in html
    assert page_of(draft) in html
    response = admin.post(begin, follow=True)
    assert messages(response) == ["Library has a draft already: publish or discard it first."]
    assert Draft.objects.count() == 1


def test_the_list_asks_nothing_of_each_draft(admin, changed, django_assert_max_num_queries):
    others = [Collection.objects.create(slug=f"other-{number}", name="Other") for number in range(12)]
    copies = [Collection.objects.create(slug=f"copy-{number}", name="Copy") for number in range(12)]
    for other, copy, status in zip(others, copies, ("open", "copying", "publishing") * 4, strict=True):
        Draft.objects.create(collection=other, working_copy=copy, status=status)
    with django_assert_max_num_queries(12):
        assert html_of(admin.get(DRAFTS)).count("ragsite-status-") == 13


def test_drafts_are_neither_added_nor_edited_nor_deleted_by_forms(admin, draft):
    assert admin.get(f"{DRAFTS}add/").status_code == 403
    assert admin.post(page_of(draft), {"status": "published"}).status_code == 403
    assert admin.post(reverse("admin:retrieval_draft_delete", args=[draft.pk]), {"post": "yes"}).status_code == 403
    draft.refresh_from_db()
    assert draft.status == Draft.Status.OPEN


def test_each_step_needs_its_permission(client, library, changed):
    other = Collection.objects.create(slug="other", name="Other")
    begin = reverse("admin:retrieval_draft_begin", args=[other.pk])
    client.force_login(staff("view_draft", "view_collection"))
    assert client.get(DRAFTS).status_code == 200
    html = html_of(client.get(page_of(changed)))
    assert action(changed, "publish") not in html
    assert action(changed, "discard") not in html
    assert begin not in html_of(client.get(page_of(other)))
    for address in (begin, action(changed, "publish"), action(changed, "discard")):
        assert client.post(address).status_code == 403
    User.objects.get(username="eva").user_permissions.set(
        Permission.objects.filter(codename__in=["add_draft", "view_collection"])
    )
    assert client.get(page_of(changed)).status_code == 403
    assert action(changed, "publish") not in html_of(client.get(page_of(library)))
    assert client.post(begin, follow=True).redirect_chain == [(page_of(other), 302)]
    assert other.drafts.filter_open().exists()
    client.logout()
    assert client.post(action(changed, "publish")).status_code == 302
    changed.refresh_from_db()
    assert changed.status == Draft.Status.OPEN


def test_while_it_is_copied_the_page_tells_how_far_that_is(admin, library):
    draft = lifecycle.begin_draft(library)
    Draft.objects.filter(pk=draft.pk).update(copied=2, error="<i>no</i> space")
    html = html_of(admin.get(page_of(draft)))
    assert '<progress max="3" value="2"' in html
    assert "2 of 3" in html
    assert "&lt;i&gt;no&lt;/i&gt; space" in html
    assert 'id="draft-status" data-live' in html
    assert "retrieval/live.js" in html
    assert action(draft, "publish") not in html
    assert action(draft, "discard") in html
    lifecycle.resume_draft(draft.pk)
    html = html_of(admin.get(page_of(draft)))
    assert "data-live" not in html
    assert "<progress" not in html
    assert "no</i> space" not in html


def test_the_page_names_what_the_draft_changes(admin, library, changed):
    copy = copy_of(changed)
    response = admin.get(page_of(changed))
    html = html_of(response)
    assert {key: list(sources) for key, _label, sources, _documents in response.context["groups"]} == {
        "added": ["<b>new</b>.md"],
        "changed": ["pump.md"],
        "removed": ["valve.md"],
    }
    assert page_of(copy.documents.get(source="<b>new</b>.md")) in html
    assert "&lt;b&gt;new&lt;/b&gt;.md" in html
    assert page_of(copy.documents.get(source="pump.md")) in html
    assert page_of(library.documents.get(source="valve.md")) in html
    for link in (
        f"{DOCUMENTS}?collection__id__exact={copy.pk}",
        f"{DOCUMENTS}add/?collection={copy.pk}",
        f"/?collection={copy.slug}",
    ):
        assert f'href="{link}"' in html
    assert action(changed, "publish") in html


def test_documents_that_are_read_are_waited_for(admin, draft, objections):
    objections.append(PublicationObjection("Worse."))
    waiting = submission.submit(copy_of(draft), "new.md", b"# New\n\nWords.\n").document
    html = html_of(admin.get(page_of(draft)))
    assert "1 document is still being read." in html
    assert "data-live" in html
    assert "Worse." not in html
    assert action(draft, "publish") not in html
    assert "still being read" in messages(admin.post(action(draft, "publish"), follow=True))[0]
    ingestion.ingest_document(waiting.pk)
    html = html_of(admin.get(page_of(draft)))
    assert "data-live" not in html
    assert "Worse." in html
    assert action(draft, "publish") in html


def test_a_published_draft_keeps_its_record(admin, admin_user, library, changed):
    response = admin.post(action(changed, "publish"), follow=True)
    assert response.redirect_chain == [(page_of(changed), 302)]
    assert messages(response) == [f"Being published: {changed}."]
    assert "data-live" in html_of(response)
    assert log_of(changed) == ["Published."]
    lifecycle.resume_draft(changed.pk)
    response = admin.get(page_of(changed))
    html = html_of(response)
    assert "What changed" in html
    assert "data-live" not in html
    assert "ragsite-status-published" in html
    assert str(admin_user) in html
    for name in ("publish", "discard"):
        assert action(changed, name) not in html
    assert page_of(library.documents.get(source="<b>new</b>.md")) in html
    assert page_of(library.documents.get(source="pump.md")) in html
    assert response.context["groups"][-1][-1] == [("valve.md", None)]
    assert "1 added, 1 changed, 1 removed" in html_of(admin.get(DRAFTS))
    assert "published" in messages(admin.post(action(changed, "publish"), follow=True))[0]


def test_objections_are_overridden_with_a_reason_and_the_permission_alone(
    admin, client, admin_user, changed, objections
):
    objections += [PublicationObjection("<i>Worse</i> by 0.2.", "/look/"), PublicationObjection("Not measured.")]
    publish = action(changed, "publish")
    html = html_of(admin.get(page_of(changed)))
    assert "&lt;i&gt;Worse&lt;/i&gt; by 0.2." in html
    assert 'href="/look/"' in html
    for sent in ({}, {"override": " "}):
        response = admin.post(publish, sent)
        assert response.status_code == 409
        html = response.content.decode()
        assert 'href="/look/"' in html
        assert "Not measured." in html
        assert 'name="override"' in html
        assert ("Say why it should be published" in html) == bool(sent)
    client.force_login(staff("view_draft", "change_draft"))
    response = client.post(publish, {"override": "I want it."})
    assert (response.status_code, 'name="override"' in response.content.decode()) == (409, False)
    changed.refresh_from_db()
    assert (changed.status, changed.objections) == (Draft.Status.OPEN, [])
    client.force_login(admin_user)
    admin.post(publish, {"override": "The <b>law</b> changed."})
    lifecycle.resume_draft(changed.pk)
    assert log_of(changed) == ["Published against objections, because: The <b>law</b> changed."]
    html = html_of(admin.get(page_of(changed)))
    assert "The &lt;b&gt;law&lt;/b&gt; changed." in html
    assert "&lt;i&gt;Worse&lt;/i&gt; by 0.2." in html
    assert "Not measured." in html
    changed.refresh_from_db()
    assert [one["address"] for one in changed.objections] == ["/look/", ""]


def test_a_draft_is_discarded_after_a_second_thought(admin, library, changed):
    html = html_of(admin.get(page_of(changed)))
    assert "<details><summary>Discard</summary>" in html
    assert admin.get(action(changed, "discard")).status_code == 405
    response = admin.post(action(changed, "discard"), follow=True)
    assert messages(response) == [f"Discarded: {changed}."]
    assert "being cleared away" in html_of(response)
    lifecycle.resume_draft(changed.pk)
    html = html_of(admin.get(page_of(changed)))
    assert "being cleared away" not in html
    assert action(changed, "discard") not in html
    assert log_of(changed) == ["Discarded."]
    assert library.documents.count() == 3
    assert "discarded" in messages(admin.post(action(changed, "discard"), follow=True))[0]


def test_working_copies_are_not_in_the_list_of_collections(admin, library, draft):
    cl = admin.get(COLLECTIONS).context["cl"]
    assert (list(cl.result_list), cl.full_result_count) == ([library], 1)
    body = {"action": "delete_selected", "_selected_action": [copy_of(draft).pk], "post": "yes"}
    admin.post(COLLECTIONS, body)
    assert Collection.objects.filter(draft=draft).exists()


def test_a_working_copy_stays_what_it_is(admin, draft):
    copy = copy_of(draft)
    html = html_of(admin.get(page_of(copy)))
    assert page_of(draft) in html
    assert "Begin a draft" not in html
    body = {"name": "Renamed", "slug": "taken", "text_search_configuration": "dutch", "visibility": "public"}
    admin.post(page_of(copy), body)
    after = copy_of(draft)
    assert (after.name, after.slug) == ("Renamed", copy.slug)
    assert (after.text_search_configuration, after.visibility) == ("english", "granted")
    delete = reverse("admin:retrieval_collection_delete", args=[copy.pk])
    assert delete not in html
    assert admin.post(delete, {"post": "yes"}).status_code == 403
    assert Collection.objects.filter(draft=draft).exists()


def test_the_language_of_a_collection_stays_while_it_has_a_draft(admin, library, draft):
    body = {"name": "Shelves", "slug": "library", "text_search_configuration": "dutch", "visibility": "public"}
    body |= {f"{inline}-{number}_FORMS": "0" for inline in ("grants", "filters") for number in ("TOTAL", "INITIAL")}
    assert "the language of the text, cannot be changed" in html_of(admin.get(page_of(library)))
    admin.post(page_of(library), body)
    library.refresh_from_db()
    assert (library.name, library.text_search_configuration) == ("Shelves", "english")
    lifecycle.discard_draft(draft)
    admin.post(page_of(library), body)
    library.refresh_from_db()
    assert library.text_search_configuration == "dutch"


@pytest.fixture
def locked(library, draft):
    """Return the library, whose documents a draft protects from changes, as a gate does (see ``test_drafts``)."""
    assert find_reason_not_to_change(library)
    return library


def build_source_form(document, **changed):
    kept = {"title": document.title, "url": document.url, "language": document.language, "metadata": "{}"}
    return {**kept, **changed}


def test_a_locked_document_is_shown_with_the_reason_and_neither_changed_nor_deleted(admin, api, locked):
    document = locked.documents.get(source="pump.md")
    html = html_of(admin.get(page_of(document)))
    assert escape(find_reason_not_to_change(locked)) in html
    for control in ('name="title"', 'name="replacement"', 'name="_save"', "deletelink"):
        assert control not in html
    response = admin.post(page_of(document), build_source_form(document, title="Other"), follow=True)
    assert messages(response) == [find_reason_not_to_change(locked)]
    document.refresh_from_db()
    assert document.title != "Other"
    delete = reverse("admin:retrieval_document_delete", args=[document.pk])
    for response in (admin.get(delete, follow=True), admin.post(delete, {"post": "yes"}, follow=True)):
        assert response.redirect_chain == [(page_of(document), 302)]
        assert messages(response) == [f"Nothing was deleted. {find_reason_not_to_change(locked)}"]
    response = api.delete(f"/api/v1/documents/{document.pk}/")
    assert (response.status_code, response.json()) == (409, {"detail": find_reason_not_to_change(locked)})
    assert locked.documents.count() == 3


def test_a_locked_document_leads_to_the_same_one_in_the_draft(admin, client, library, changed):
    copy = copy_of(changed)
    html = html_of(admin.get(page_of(library.documents.get(source="pump.md"))))
    assert page_of(copy.documents.get(source="pump.md")) in html
    html = html_of(admin.get(page_of(library.documents.get(source="valve.md"))))
    assert page_of(changed) in html
    html = html_of(admin.get(page_of(copy.documents.get(source="pump.md"))))
    assert page_of(changed) in html
    assert 'name="replacement"' in html
    client.force_login(staff("view_document"))
    html = html_of(client.get(page_of(library.documents.get(source="valve.md"))))
    assert page_of(changed) not in html


def test_of_several_documents_all_or_none_are_deleted(admin, locked, ingest):
    other = ingest(Collection.objects.create(slug="other", name="Other"), "a.md", "# A\n\nWords.\n")
    kept = locked.documents.get(source="pump.md")
    body = {"action": "delete_selected", "_selected_action": [other.pk, kept.pk], "post": "yes"}
    response = admin.post(DOCUMENTS, body, follow=True)
    assert messages(response) == [f"Nothing was deleted. {find_reason_not_to_change(locked)}"]
    assert Document.objects.filter(pk__in=[other.pk, kept.pk]).count() == 2
    assert not LogEntry.objects.filter(object_id=str(other.pk)).exists()
    admin.post(DOCUMENTS, {**body, "_selected_action": [other.pk]})
    assert not Document.objects.filter(pk=other.pk).exists()


def test_a_draft_begun_while_a_form_was_sent_wins(admin, library, monkeypatch):
    document = library.documents.get(source="pump.md")
    valid = DocumentForm.is_valid

    def meanwhile(form):
        if not library.drafts.exists():
            lifecycle.begin_draft(library)
        return bool(valid(form))

    monkeypatch.setattr(DocumentForm, "is_valid", meanwhile)
    response = admin.post(page_of(document), build_source_form(document, url="https://example.org/"), follow=True)
    assert "choose Library (draft) instead" in messages(response)[0]
    document.refresh_from_db()
    assert document.url == ""


def test_uploads_go_into_a_draft_and_not_past_it(admin, library, draft):
    copy = copy_of(draft)
    html = html_of(admin.get(f"{DOCUMENTS}add/?collection={copy.pk}"))
    assert f'<option value="{copy.pk}" selected>Library (draft)</option>' in html
    assert f'<option value="{library.pk}">Library</option>' in html
    upload = SimpleUploadedFile("new.md", b"# New\n\nWords.\n")
    response = admin.post(f"{DOCUMENTS}add/", {"collection": copy.pk, "file": upload}, follow=True)
    assert response.redirect_chain == [(page_of(draft), 302)]
    assert messages(response) == ["1 document will be read now."]
    assert 'data-changes="added"' in html_of(response)
    upload = SimpleUploadedFile("new.md", b"# New\n\nWords.\n")
    response = admin.post(f"{DOCUMENTS}add/", {"collection": library.pk, "file": upload}, follow=True)
    assert messages(response) == [f"Not added: {find_reason_not_to_change(library)}"]
    assert not library.documents.filter(source="new.md").exists()


def test_questions_of_a_locked_passage_are_shown(admin, locked):
    chunk = Chunk.objects.get(document__source="pump.md", collection=locked)
    html = html_of(admin.get(page_of(chunk)))
    assert escape(find_reason_not_to_change(locked)) in html
    assert 'name="canonical_questions"' not in html
    body = {"canonical_questions": "How heavy is the pump?"}
    assert messages(admin.post(page_of(chunk), body, follow=True)) == [find_reason_not_to_change(locked)]
    assert not Chunk.objects.get(pk=chunk.pk).questions_edited


def test_programs_are_told_of_collections_in_service_alone(api, draft):
    listed = api.get("/api/v1/collections/").json()
    assert [one["slug"] for one in listed.get("results", listed)] == ["library"]
    assert [one["id"] for one in api.get("/v1/models").json()["data"]][:2] == ["ragsite", "ragsite/library"]
    assert copy_of(draft).slug not in api.get("/v1/models").text
    assert api.get(f"/v1/models/ragsite/{copy_of(draft).slug}").status_code == 404


def test_staff_ask_a_draft_in_the_chat_by_choosing_it(admin, client, admin_user, draft):
    cache.clear()
    copy = copy_of(draft)
    Collection.objects.update(suggested_questions="How many grams does the pump weigh?")
    assert {collection.slug for _question, collection in list_suggestions(admin_user)} == {"library"}
    cards = admin.get("/").content.decode().partition('id="suggestions"')[2]
    assert "/documents/?collection=library" in cards
    assert copy.slug not in cards
    html = admin.get(f"/?collection={copy.slug}").content.decode()
    assert f'<option value="{copy.slug}" selected>Library (draft)</option>' in html
    client.logout()
    html = client.get(f"/?collection={copy.slug}").content.decode()
    assert copy.slug not in html


def test_changing_several_collections_asks_each(library, monkeypatch):
    from retrieval.documents.drafts.editing import lock_collections_for_change

    later = Collection.objects.create(slug="later", name="Later")
    with lock_collections_for_change(library.pk, later.pk):
        pass
    for guarded in (library, later):
        gate = Gate(guards=lambda one, pk=guarded.pk: one.pk == pk, find_objections=lambda _: [])
        monkeypatch.setattr(gates, "GATES", [gate])
        with (
            pytest.raises(DocumentRejected, match=f"{guarded} has a gate"),
            lock_collections_for_change(later.pk, library.pk),
        ):
            pytest.fail("it was let in")
