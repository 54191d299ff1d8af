import json
import re

import pytest
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chat.models import Answer, Citation, Conversation, Feedback
from retrieval.models import Chunk, Collection, CollectionStatistics, Document, Lexeme, Source, SourceRun
from tests.support.libraries import remembered
from tests.support.pages import messages
from tests.support.people import make_staff

pytestmark = pytest.mark.django_db

CHANGELIST = "/admin/retrieval/document/"
ADD = "/admin/retrieval/document/add/"
HOLIDAYS = "# Holidays\n\nEvery employee has 25 days of paid holiday a year.\n"


@pytest.fixture(autouse=True)
def _errors_are_pages(client):
    client.raise_request_exception = False


@pytest.fixture
@remembered
def document(collection, ingest):
    return ingest(collection, "holidays.md", HOLIDAYS)


def change(document):
    return reverse("admin:retrieval_document_change", args=[document.pk])


def fields(document, **changed):
    kept = {"title": document.title, "url": document.url, "language": document.language, "metadata": "{}"}
    return {**kept, **changed}


def test_several_files_are_added_and_each_rejected_one_is_named(admin, collection):
    files = [
        SimpleUploadedFile("a.md", b"# A\n\nWords."),
        SimpleUploadedFile("b.ps", b"%!PS-Adobe-3.0"),
        SimpleUploadedFile("c.txt", b""),
        SimpleUploadedFile("d.txt", b"More words."),
    ]
    body = {"collection": collection.pk, "file": files, "metadata": '{"office": "Ghent"}'}
    response = admin.post(ADD, body, follow=True)
    assert response.redirect_chain == [(CHANGELIST, 302)]
    told = messages(response)
    assert any("Not added: b.ps is a PostScript file" in message for message in told)
    assert any("c.txt is empty" in message for message in told)
    assert "2 documents will be read now." in told
    assert set(Document.objects.values_list("source", "status")) == {("a.md", "pending"), ("d.txt", "pending")}
    assert Document.objects.first().metadata == {"office": "Ghent"}


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"collection": ""}, "collection"),
        ({"collection": "99999"}, "collection"),
        ({"file": ""}, "file"),
        ({"metadata": "["}, "metadata"),
        ({"metadata": "[1]"}, "metadata"),
        ({"metadata": '{"a": "\\u0000"}'}, "metadata"),
        ({"language": "<b>"}, "language"),
    ],
)
def test_a_bad_form_says_what_is_wrong_and_adds_nothing(admin, collection, changed, field):
    upload = SimpleUploadedFile("a.md", b"# A")
    response = admin.post(ADD, {"collection": collection.pk, "file": upload, **changed})
    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors
    assert not Document.objects.exists()


def test_the_list_tells_how_far_each_document_is(admin, collection, document):
    Document.objects.create(
        collection=collection, source="busy.md", status="processing", progress_percent=42, content_hash="x"
    )
    Document.objects.create(
        collection=collection, source="bad.md", status="failed", error="<script>" + "x" * 300, content_hash="x"
    )
    html = admin.get(CHANGELIST).content.decode()
    assert "ragsite-status-ready" in html
    assert '<progress max="100" value="42">' in html
    assert html.count("data-unsettled") == 1
    assert "&lt;script&gt;xxx" in html
    assert "x" * 200 not in html
    assert "retrieval/admin_status.js" in html
    assert "style=" not in html


def test_the_status_is_told_again_for_documents_on_the_page(admin, document):
    body = admin.get(reverse("admin:retrieval_document_status"), {"ids": f"{document.pk},x,{10**30},"}).json()
    assert set(body) == {str(document.pk)}
    assert "ragsite-status-ready" in body[str(document.pk)]["badge"]
    assert body[str(document.pk)]["passages"] == "1"


@pytest.mark.parametrize("query", ["q=holiday", "q=%00", "status__exact=ready", "o=3.-2.x", "p=99999", "language=en"])
def test_the_list_can_be_searched_and_filtered(admin, document, query):
    assert admin.get(f"{CHANGELIST}?{query}", follow=True).status_code == 200


def test_reading_again_queues_the_document(admin, document, django_capture_on_commit_callbacks):
    body = {"action": "read_again", "_selected_action": [document.pk]}
    with django_capture_on_commit_callbacks() as callbacks:
        response = admin.post(CHANGELIST, body, follow=True)
    document.refresh_from_db()
    assert document.status == Document.Status.PENDING
    assert messages(response) == ["1 document will be read again."]
    assert len(callbacks) == 1


def test_a_new_title_or_language_has_the_document_read_again(admin, document):
    admin.post(change(document), fields(document, title="Days off"))
    document.refresh_from_db()
    assert (document.title, document.status) == ("Days off", "pending")


def test_a_new_address_does_not(admin, document):
    before = CollectionStatistics.objects.get(pk=document.collection_id).version
    admin.post(change(document), fields(document, url="https://example.org/", metadata='{"a": 1}'))
    document.refresh_from_db()
    assert (document.url, document.metadata, document.status) == ("https://example.org/", {"a": 1}, "ready")
    # Filters and boosts ask the metadata: answers that were kept, and runs, are stale.
    assert CollectionStatistics.objects.get(pk=document.collection_id).version == before + 1


def test_saving_leaves_alone_what_a_worker_wrote_meanwhile(admin, document, monkeypatch):
    from retrieval.admin.document_forms import DocumentForm

    valid = DocumentForm.is_valid

    def slowly(form):
        Document.objects.filter(pk=document.pk).update(chunk_count=7)
        return valid(form)

    monkeypatch.setattr(DocumentForm, "is_valid", slowly)
    admin.post(change(document), fields(document, url="https://example.org/", title="Other"))
    document.refresh_from_db()
    assert (document.url, document.title, document.chunk_count) == ("https://example.org/", "Other", 7)


def test_a_new_file_replaces_the_old_one(admin, document, django_capture_on_commit_callbacks):
    old, storage = document.file.name, document.file.storage
    fresh = SimpleUploadedFile("whatever.md", b"# Holidays\n\nNow 26 days.\n")
    with django_capture_on_commit_callbacks(execute=True):
        admin.post(change(document), fields(document, replacement=fresh))
    document.refresh_from_db()
    assert (document.status, document.source) == ("pending", "holidays.md")
    assert b"26 days" in document.file.read()
    assert not storage.exists(old)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"url": "javascript:alert(1)"}, "url"),
        ({"metadata": "[]"}, "metadata"),
        ({"language": "??"}, "language"),
        ({"replacement": SimpleUploadedFile("b.mp3", b"ID3\x04")}, "replacement"),
    ],
)
def test_bad_changes_are_refused(admin, document, changed, field):
    response = admin.post(change(document), fields(document, **changed))
    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors
    document.refresh_from_db()
    assert document.status == "ready"


def test_the_original_is_a_download_for_staff(admin, client, document):
    url = reverse("admin:retrieval_document_original", args=[document.pk])
    response = admin.get(url)
    assert b"".join(response) == HOLIDAYS.encode()
    assert response["Content-Disposition"] == 'attachment; filename="holidays.md"'
    assert response["X-Content-Type-Options"] == "nosniff"
    document.file.storage.delete(document.file.name)
    assert admin.get(url).status_code == 404
    client.logout()
    assert client.get(url).status_code == 302


def test_deleting_counts_what_goes_and_takes_it_all(admin, document, ingest, collection):
    kept = ingest(collection, "kept.md", "# Kept\n\nOther words.")
    page = admin.get(reverse("admin:retrieval_document_delete", args=[document.pk])).content.decode()
    assert "Passages: 1" in page
    assert "cannot" not in page
    admin.post(CHANGELIST, {"action": "delete_selected", "_selected_action": [document.pk], "post": "yes"})
    assert list(Document.objects.all()) == [kept]
    assert set(Chunk.objects.values_list("document", flat=True)) == {kept.pk}
    assert not Lexeme.objects.filter(lexeme__startswith="holiday").exists()


def test_a_collection_can_be_deleted_whole(admin, document, collection, django_capture_on_commit_callbacks):
    path, storage = document.file.name, document.file.storage
    with django_capture_on_commit_callbacks(execute=True):
        admin.post(reverse("admin:retrieval_collection_delete", args=[collection.pk]), {"post": "yes"})
    assert not Collection.objects.exists()
    assert not Document.objects.exists()
    assert not Chunk.objects.exists()
    assert not Lexeme.objects.exists()
    assert not storage.exists(path)


def test_a_document_of_thousands_of_passages_opens_at_once(admin, document, django_assert_max_num_queries):
    template = Chunk.objects.get(document=document)
    chunks = []
    for ordinal in range(1, 3001):
        chunk = Chunk.objects.get(pk=template.pk) if ordinal == 1 else chunks[0]
        values = {field.attname: getattr(chunk, field.attname) for field in Chunk._meta.concrete_fields}
        chunks.append(Chunk(**{**values, "id": None, "ordinal": ordinal, "search_vector": None or ""}))
    Chunk.objects.bulk_create(chunks, batch_size=1000)
    with django_assert_max_num_queries(25):
        assert admin.get(change(document)).status_code == 200
        page = admin.get(f"/admin/retrieval/chunk/?document__id__exact={document.pk}")
    assert page.context["cl"].result_count == 3001
    assert len(page.context["cl"].result_list) == 50


@pytest.mark.parametrize("listed", ["source", "collection"])
def test_a_list_asks_as_often_for_many_rows_as_for_few(admin, listed, django_assert_num_queries):
    def add(*numbers):
        for number in numbers:
            of = Collection.objects.create(slug=f"shelf-{number}", name=f"Shelf {number}")
            source = Source.objects.create(collection=of, name=of.name, kind="folder")
            SourceRun.objects.create(source=source, status=SourceRun.Status.DONE, finished_at=timezone.now())
            Document.objects.create(collection=of, origin=source, title="a", source="a", content_hash="a")

    address = reverse(f"admin:retrieval_{listed}_changelist")
    add(1, 2)
    admin.get(address)
    with CaptureQueriesContext(connection) as few:
        admin.get(address)
    add(*range(3, 13))
    Document.objects.filter(collection__slug="shelf-12").delete()
    with django_assert_num_queries(len(few)):
        page = admin.get(address).content.decode()
    one, none = {"source": (">1</a>", ">0</a>"), "collection": (">1 (1 waiting)</a>", ">0</a>")}[listed]
    assert (page.count(one), page.count(none)) == (11, 1)
    assert page.count("in sync") == (12 if listed == "source" else 0)


def test_a_passage_is_shown_and_its_text_cannot_be_changed(admin, document):
    chunk = document.chunks.get()
    url = reverse("admin:retrieval_chunk_change", args=[chunk.pk])
    assert "25 days of paid holiday" in admin.get(url).content.decode()
    admin.post(url, {"content": "x", "canonical_questions": "How long is my holiday?"})
    assert document.chunks.get().content == chunk.content
    assert admin.post(reverse("admin:retrieval_chunk_delete", args=[chunk.pk]), {"post": "yes"}).status_code == 403


def test_another_language_has_the_collections_documents_read_again(admin, collection, document):
    url = reverse("admin:retrieval_collection_change", args=[collection.pk])
    assert "1</a>" in admin.get(url).content.decode()
    body = {
        "name": "Library",
        "slug": "library",
        "description": "",
        "visibility": "public",
        "grants-TOTAL_FORMS": "0",
        "grants-INITIAL_FORMS": "0",
        "filters-TOTAL_FORMS": "0",
        "filters-INITIAL_FORMS": "0",
    }
    admin.post(url, {**body, "text_search_configuration": "english"})
    document.refresh_from_db()
    assert document.status == "ready"
    response = admin.post(url, {**body, "text_search_configuration": "dutch"}, follow=True)
    document.refresh_from_db()
    assert document.status == "pending"
    assert any("1 document will be read again" in message for message in messages(response))


def test_a_curator_marks_filters_among_the_keys_that_documents_have(admin, collection, document):
    Document.objects.filter(pk=document.pk).update(
        metadata={"author": "Jansen", "published": "2026-01-15", "pages": 12, "groups": ["board"]}
    )
    url = reverse("admin:retrieval_collection_change", args=[collection.pk])
    html = admin.get(url).content.decode()
    assert "author: Jansen … (1 document)" in html
    # The key that narrows documents is no filter, and none is marked.
    assert ('value="groups"' in html, collection.filters.exists()) == (False, False)
    body = {
        **dict.fromkeys(("description", "suggested_questions"), ""),
        "name": "Library",
        "slug": "library",
        "visibility": "public",
        "text_search_configuration": "english",
        **{f"{inline}-{name}_FORMS": "0" for inline in ("grants", "filters") for name in ("TOTAL", "INITIAL")},
        "filters-TOTAL_FORMS": "4",
    }
    for place, (field, kind) in enumerate((("author", ""), ("published", ""), ("pages", ""), ("added", "values"))):
        row = {"collection": collection.pk, "field": field, "label": "", "kind": kind, "position": place}
        body |= {f"filters-{place}-{name}": value for name, value in row.items()}
    response = admin.post(url, body)
    assert response.status_code == 302, response.content.decode()
    assert list(collection.filters.values_list("field", "kind")) == [
        ("author", "values"),
        ("published", "dates"),
        ("pages", "numbers"),
        ("added", "dates"),
    ]
    refused = admin.post(url, {**body, "filters-0-field": "nonsense"})
    assert "nonsense is not one of the available choices" in refused.content.decode()


@pytest.fixture
def answer(document):
    conversation = Conversation.objects.create(title="Holidays?")
    answer = Answer.objects.create(
        conversation=conversation, question="How many?", text="<b>25</b> days [1].", status="completed",
        degraded=["vector"], completed_at=timezone.now(), timings_ms={"total": 20.0},
    )  # fmt: skip
    Citation.objects.create(
        answer=answer, marker=1, marker_start=15, marker_end=18, document=document, document_title="Holidays",
        quote="25 days of", start=1, end=11,
    )  # fmt: skip
    return answer


def test_an_answer_is_shown_with_its_citations_and_cannot_be_changed(admin, answer):
    url = reverse("admin:chat_answer_change", args=[answer.pk])
    html = admin.get(url).content.decode()
    assert "&lt;b&gt;25&lt;/b&gt; days [1]." in html
    assert "25 days of" in html
    assert reverse("chat:debug", args=[answer.pk]) in html
    assert "style=" not in html
    assert admin.post(url, {"text": "x"}).status_code == 403


def test_a_citation_of_an_answer_leads_to_its_words(admin, answer, document):
    Citation.objects.update(verbatim=True, support=1.0, document=document, start=3, end=9)
    html = admin.get(reverse("admin:chat_answer_change", args=[answer.pk])).content.decode()
    assert "Quoted word for word" in html
    assert f'<a href="/documents/{document.pk}/?start=3&amp;end=9#passage">' in html
    assert "100 %" not in html


def test_answers_and_conversations_are_listed(admin, answer):
    Feedback.objects.create(answer=answer, helpful=False)
    Answer.objects.create(conversation=answer.conversation, question="Without feedback?")
    page = admin.get("/admin/chat/answer/", {"q": "days"})
    assert page.context["cl"].result_count == 1
    # The empty value of a filter is a link with words.
    assert re.search(r'<a href="\?q=days&amp;search_method=">\s*\(none\)</a>', page.content.decode())
    for query in ("", "?status__exact=failed", "?feedback__helpful__exact=0", "?q=%00"):
        assert admin.get(f"/admin/chat/answer/{query}", follow=True).status_code == 200
    assert admin.get("/admin/chat/conversation/", {"q": "How"}).context["cl"].result_count == 1
    url = reverse("admin:chat_conversation_change", args=[answer.conversation_id])
    assert "How many?" in admin.get(url).content.decode()
    assert admin.post(reverse("admin:chat_conversation_delete", args=[answer.conversation_id]), {"post": "yes"})
    assert not Answer.objects.exists()


def test_staff_without_permission_may_not(client, collection, document):
    clerk = make_staff("clerk")
    client.force_login(clerk)
    clerk.user_permissions.add(Permission.objects.get(codename="view_document"))
    assert client.get(CHANGELIST).status_code == 200
    assert client.get(change(document)).status_code == 200
    assert client.get(ADD).status_code == 403
    assert client.post(change(document), fields(document, title="x")).status_code == 403
    client.post(CHANGELIST, {"action": "read_again", "_selected_action": [document.pk]})
    document.refresh_from_db()
    assert document.status == "ready"
    assert json.loads(client.get(reverse("admin:retrieval_document_status"), {"ids": document.pk}).content)
