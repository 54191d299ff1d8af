"""Documents that programs send to a source of the kind Push."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from core.job_queue import enqueue_forgotten_jobs
from core.key_limits import KeyScope
from ragsite.models import AuditEntry
from retrieval.documents.drafts import lifecycle
from retrieval.models import Collection, Document, PushedItem, Source
from retrieval.sources import pushes
from tests.support.keys import key_of
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(collection):
    return Source.objects.create(collection=collection, name="Wiki", kind="push", interval_minutes=0)


@pytest.fixture
def sender():
    """Return a program's account, which may upload, replace and delete documents."""
    user = make_staff("sender")
    names = ("view_document", "add_document", "change_document", "delete_document")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


def client_with(secret):
    return APIClient(raise_request_exception=False, HTTP_AUTHORIZATION=f"Bearer {secret}")


@pytest.fixture
def api(sender, source):
    return client_with(key_of(sender, source=source))


def at(source, external_id):
    return f"/api/v1/documents/by-source/{getattr(source, 'pk', source)}/{quote(external_id, safe='')}"


def put(api, source, external_id="page-1", text="The pump weighs 30 kilograms.", **fields):
    return api.put(at(source, external_id), {"text": text, **fields}, format="json")


def batch(api, source, *items):
    return api.post(at(source, "batch"), {"items": list(items)}, format="json")


def read(document):
    from retrieval.tasks import ingest_document

    ingest_document(document.pk)
    document.refresh_from_db()
    return document


def test_a_document_is_sent_read_replaced_and_deleted(api, source, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        response = put(
            api, source, title="Pumps", url="https://wiki.example.org/1", metadata={"team": "care"},
            changed_at="2026-01-02T03:04:05Z",
        )  # fmt: skip
    assert response.status_code == 202, response.json()
    assert len(callbacks) == 1
    body = response.json()
    assert (body["external_id"], body["result"], body["changed_at"]) == ("page-1", "added", "2026-01-02T03:04:05Z")
    document = Document.objects.get()
    assert body["document"]["id"] == document.pk
    assert (document.origin, document.collection, document.source) == (source, source.collection, "Wiki/page-1.md")
    assert (document.title, document.url, document.metadata) == (
        "Pumps", "https://wiki.example.org/1", {"team": "care"},
    )  # fmt: skip
    assert api.get(at(source, "page-1")).json()["document"]["status"] == "pending"
    read(document)
    assert api.get(at(source, "page-1")).json()["document"]["status"] == "ready"
    assert document.text.text == "The pump weighs 30 kilograms."

    response = put(api, source, text="The pump weighs 31 kilograms.")
    assert (response.status_code, response.json()["result"]) == (202, "changed")
    again = Document.objects.get()
    # What was left out stays.
    assert (again.pk, again.title, again.metadata) == (document.pk, "Pumps", {"team": "care"})
    assert read(again).text.text == "The pump weighs 31 kilograms."

    assert api.delete(at(source, "page-1")).status_code == 204
    assert not Document.objects.exists()
    assert api.get(at(source, "page-1")).status_code == 404
    assert api.delete(at(source, "page-1")).status_code == 204
    assert api.delete(at(source, "never-there")).status_code == 204
    assert put(api, source).json()["result"] == "added"


def test_the_same_content_again_changes_nothing(api, source, django_capture_on_commit_callbacks):
    fields = {"title": "Pumps", "metadata": {"team": "care"}, "changed_at": "2026-01-02T03:04:05Z"}
    put(api, source, **fields)
    document = Document.objects.get()
    for state in ("pending", "ready"):
        before = Document.objects.values().get()
        assert before["status"] == state
        with django_capture_on_commit_callbacks() as callbacks:
            responses = [put(api, source), put(api, source, **fields)]
        assert [(each.status_code, each.json()["result"]) for each in responses] == [(200, "unchanged")] * 2
        assert Document.objects.values().get() == before
        assert callbacks == []
        read(document)


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"title": "Other"}, "title", "Other"),
        ({"url": "https://other.example.org/"}, "url", "https://other.example.org/"),
        ({"metadata": {"team": "law"}}, "metadata", {"team": "law"}),
        ({"content_type": "text/plain"}, "source", "Wiki/page-1.txt"),
    ],
)
def test_the_same_content_with_other_facts_is_a_change(api, source, fields, name, value):
    put(api, source, title="Pumps", metadata={"team": "care"})
    document = read(Document.objects.get())
    assert put(api, source, **fields).json()["result"] == "changed"
    assert put(api, source, **fields).json()["result"] == "unchanged"
    document = read(Document.objects.get(pk=document.pk))
    assert getattr(document, name) == value
    assert document.status == "ready"


def test_an_older_state_is_refused_as_outdated(api, source):
    put(api, source, changed_at="2026-01-02T00:00:00Z")
    for response in (
        put(api, source, text="Old.", changed_at="2026-01-01T00:00:00Z"),
        api.delete(f"{at(source, 'page-1')}?changed_at=2026-01-01T00:00:00Z"),
    ):
        assert response.status_code == 409
        assert "2026-01-02" in response.json()["detail"]
    assert Document.objects.get().file.read() == b"The pump weighs 30 kilograms."
    assert put(api, source, text="Same time.", changed_at="2026-01-02T00:00:00Z").status_code == 202
    assert api.delete(f"{at(source, 'page-1')}?changed_at=2026-01-03T00:00:00Z").status_code == 204
    # The deletion is the latest state, also of an item that never came.
    assert put(api, source, changed_at="2026-01-02T12:00:00Z").status_code == 409
    assert api.delete(f"{at(source, 'late')}?changed_at=2026-01-03T00:00:00Z").status_code == 204
    assert put(api, source, "late", changed_at="2026-01-02T12:00:00Z").status_code == 409
    assert not Document.objects.exists()
    ahead = (timezone.now() + timedelta(days=2)).isoformat()
    assert "changed_at" in put(api, source, changed_at=ahead).json()


@pytest.mark.parametrize(
    ("external_id", "name"),
    [
        ("guides/a b/ü?#%.md", "Wiki/guides/a b/ü?#%.md"),
        ("/srv/", "Wiki/srv.md"),
        ("batch", "Wiki/batch.md"),
        ("..", "Wiki/...md"),
        ("a\nb", "Wiki/a b.md"),
        ("x" * 500, f"Wiki/{'x' * 500}.md"),
        ("https://example.org/?q=1&r=2", "Wiki/https://example.org/?q=1&r=2.md"),
    ],
)
def test_an_identifier_is_any_text(api, source, external_id, name):
    assert put(api, source, external_id).status_code == 202
    assert Document.objects.get().source == name
    assert api.get(at(source, external_id)).json()["external_id"] == external_id
    assert put(api, source, external_id).json()["result"] == "unchanged"
    assert api.delete(at(source, external_id)).status_code == 204
    assert not Document.objects.exists()


def test_an_identifier_has_at_most_500_characters_and_no_nul(api, source):
    for external_id in ("x" * 501, "a\0b"):
        assert "external_id" in put(api, source, external_id).json()
    assert not PushedItem.objects.exists()


def test_identifiers_of_one_name_are_two_documents(api, source):
    for external_id in ("a", "a.md", "a/"):
        assert put(api, source, external_id, f"Text of {external_id}").status_code == 202
    assert Document.objects.count() == 3
    assert put(api, source, "a.md", "Text of a.md").json()["result"] == "unchanged"


@pytest.mark.parametrize(
    ("content_type", "text", "expected"),
    [
        ("text/markdown", "# Pumps\n\n**Heavy** ones.", "# Pumps\n\n**Heavy** ones."),
        ("text/html", '<meta charset="latin1"><p>Caf\u00e9 &amp; <b>bar</b></p>', "Caf\u00e9 & bar"),
        ("text/html", "<!doctype html><html><body><p>Caf\u00e9</p></body></html>", "Caf\u00e9"),
        ("text/html", "plain words", "plain words"),
        ("text/plain", "**not bold**", "**not bold**"),
    ],
)
def test_a_text_is_markdown_html_or_plain(api, source, content_type, text, expected):
    put(api, source, text=text, content_type=content_type)
    document = read(Document.objects.get())
    assert document.status == "ready", document.error
    assert expected in document.text.text


def test_a_file_is_sent_in_a_form(api, source, settings):
    def send(name, data, **fields):
        file = SimpleUploadedFile(name, data)
        return api.put(at(source, "sheet"), {"file": file, **fields}, format="multipart")

    response = send("sheet.csv", b"pump,weight\nMX,30\n", metadata='{"team": "care"}', title="Weights")
    assert response.status_code == 202, response.json()
    document = Document.objects.get()
    assert (document.source, document.title, document.metadata) == ("Wiki/sheet.csv", "Weights", {"team": "care"})
    assert send("sheet.csv", b"pump,weight\nMX,30\n").json()["result"] == "unchanged"
    # Another format is the same document.
    assert send("sheet.md", b"# Sheet").json()["result"] == "changed"
    assert Document.objects.values_list("pk", "source").get() == (document.pk, "Wiki/sheet.md")
    assert send("sheet.mp3", b"ID3\x04" + bytes(20)).status_code == 400
    assert "file" in api.put(at(source, "sheet"), {"title": "x"}, format="multipart").json()
    settings.DOCUMENT_MAX_BYTES = 2**20
    response = send("sheet.txt", b"x" * (2**20 + 1))
    assert (response.status_code, "1 MiB" in response.json()["detail"]) == (400, True)
    assert Document.objects.get().source == "Wiki/sheet.md"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": "x", "content_type": "text/rtf"}, "content_type"),
        ({"text": "x", "wrong": 1}, "wrong"),
        ({"text": "x", "metadata": []}, "metadata"),
        ({"text": "x", "changed_at": "yesterday"}, "changed_at"),
        ({"text": "x", "changed_at": "0001-01-01T00:00:00+14:00"}, "changed_at"),
        ({"text": "x", "url": "here"}, "url"),
    ],
)
def test_a_wrong_request_names_its_field(api, source, body, field):
    response = api.put(at(source, "a"), body, format="json")
    assert response.status_code == 400
    assert list(response.json()) == [field]


def test_a_batch_has_a_result_for_each_item(api, source, settings):
    put(api, source, "same", "Same.")
    put(api, source, "late", "Late.", changed_at="2026-01-02T00:00:00Z")
    put(api, source, "gone", "Gone.")
    settings.DOCUMENT_MAX_BYTES = 2**20
    response = batch(
        api, source,
        {"external_id": "new", "text": "New.", "title": "New"},
        {"external_id": "wrong", "text": "x", "colour": "red"},
        {"external_id": "same", "text": "Same."},
        {"external_id": "late", "text": "Early.", "changed_at": "2026-01-01T00:00:00Z"},
        {"external_id": "big", "text": "x" * (2**20 + 1)},
        "no object",
        {"external_id": "gone", "action": "delete"},
        {"external_id": "never", "action": "delete"},
        {"external_id": "empty"},
        {"external_id": "new", "text": "Newer."},
    )  # fmt: skip
    assert response.status_code == 200
    results = response.json()["results"]
    assert [(each["external_id"], each["result"], each["status"]) for each in results] == [
        ("new", "added", 202),
        ("wrong", "refused", 400),
        ("same", "unchanged", 200),
        ("late", "outdated", 409),
        ("big", "refused", 400),
        ("", "refused", 400),
        ("gone", "deleted", 204),
        ("never", "deleted", 204),
        ("empty", "refused", 400),
        ("new", "changed", 202),
    ]
    assert [each["error"] != "" for each in results] == [each["status"] >= 400 for each in results]
    assert results[1]["error"] == "colour: Unknown field."
    assert results[0]["document"] == results[-1]["document"] == Document.objects.get(title="New").pk
    assert sorted(Document.objects.values_list("source", flat=True)) == ["Wiki/late.md", "Wiki/new.md", "Wiki/same.md"]


def test_a_batch_has_at_most_100_items(api, source):
    items = [{"external_id": str(number), "text": f"Text {number}."} for number in range(101)]
    assert batch(api, source, *items).status_code == 400
    assert batch(api, source).status_code == 400
    assert not Document.objects.exists()
    assert {each["result"] for each in batch(api, source, *items[:100]).json()["results"]} == {"added"}
    assert Document.objects.count() == 100


def test_a_request_has_at_most_5_mib_of_json(api, source):
    assert put(api, source, text="x" * (6 * 2**20)).status_code == 413
    assert batch(api, source, {"external_id": "a", "text": "x" * (6 * 2**20)}).status_code == 413


def test_a_full_disk_saves_nothing(api, source, settings):
    settings.DISK_RESERVE_BYTES = 2**62
    assert put(api, source).status_code == 507
    [outcome] = batch(api, source, {"external_id": "a", "text": "A."}).json()["results"]
    assert (outcome["result"], outcome["status"]) == ("refused", 507)
    assert not PushedItem.objects.exists()
    assert not Document.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("texts", [["Equal."] * 6, [f"Text {number}." for number in range(6)]])
def test_requests_at_once_make_one_document(sender, source, texts):
    secret = key_of(sender, source=source)

    def send(text):
        try:
            return put(client_with(secret), source, text=text).json()["result"]
        finally:
            connection.close()

    with ThreadPoolExecutor(len(texts)) as threads:
        results = sorted(threads.map(send, texts))
    other = "unchanged" if len(set(texts)) == 1 else "changed"
    assert results == sorted(["added", *[other] * 5])
    assert Document.objects.count() == PushedItem.objects.count() == 1


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def put_in_a_process_that_dies(secret, source, place):
    """Send a request in a process of its own, which kill -9 ends at ``place``."""
    connection.close()
    child = os.fork()
    if not child:
        place(die)
        put(client_with(secret), source)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def before_the_commit(end):
    pushes._record = lambda *_arguments: end()


def after_the_commit(end):
    from core import job_queue

    job_queue.enqueue = lambda *_arguments, **_options: end()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("place", "kept"), [(before_the_commit, 0), (after_the_commit, 1)])
def test_a_killed_process_loses_and_doubles_nothing(sender, source, place, kept):
    secret = key_of(sender, source=source)
    put_in_a_process_that_dies(secret, source, place)
    assert Document.objects.count() == PushedItem.objects.count() == kept
    # Its program had no answer, and sends it again.
    assert put(client_with(secret), source).json()["result"] == ("unchanged" if kept else "added")
    assert Document.objects.count() == PushedItem.objects.count() == 1
    Document.objects.update(enqueued_at=None, created_at=timezone.now() - timedelta(minutes=1))
    assert enqueue_forgotten_jobs(Document) == 1
    assert read(Document.objects.get()).status == "ready"


# Rights ------------------------------------------------------------------------------------------------------------


def test_a_key_of_one_source_does_nothing_else(api, source, collection, sender):
    other = Source.objects.create(collection=collection, name="Other", kind="push", interval_minutes=0)
    strangers = [put(api, each).json() for each in (other, 10**6)]
    assert strangers[0] == strangers[1] == {"detail": "This does not exist, or is not yours."}
    for pk in (other.pk, 10**6):
        assert put(api, pk).status_code == api.get(at(pk, "a")).status_code == 404
        assert (
            api.delete(at(pk, "a")).status_code == batch(api, pk, {"external_id": "a", "text": "a"}).status_code == 404
        )
    assert not Document.objects.exists()
    put(api, source)
    document = Document.objects.get()
    for method, address in (
        ("get", "/api/v1/documents/"),
        ("get", f"/api/v1/documents/{document.pk}/"),
        ("delete", f"/api/v1/documents/{document.pk}/"),
        ("get", "/api/v1/collections/"),
        ("get", "/api/v1/filters/"),
        ("get", "/api/v1/conversations/"),
        ("get", "/v1/models"),
        ("post", "/api/v1/search/"),
        ("post", "/api/v1/ask/"),
    ):
        response = getattr(api, method)(address)
        assert response.status_code == 403, address
        assert "nothing but send documents" in response.content.decode()
    upload = {"file": SimpleUploadedFile("a.md", b"# A"), "collection": collection.slug}
    assert api.post("/api/v1/documents/", upload, format="multipart").status_code == 403
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "a"}},
    }
    assert api.post("/mcp", call, format="json").status_code == 403
    assert Document.objects.count() == 1


def test_a_key_of_a_source_goes_with_it(api, source):
    assert put(api, source).status_code == 202
    number = source.pk
    source.delete()
    assert put(api, number).status_code == 401


def test_other_keys_take_the_scope_and_the_collection(sender, source):
    elsewhere = Collection.objects.create(slug="elsewhere", name="Elsewhere")
    for limits, status in (
        ({"scopes": [KeyScope.DOCUMENTS_WRITE]}, 202),
        ({"scopes": [KeyScope.SEARCH, KeyScope.ASK]}, 403),
        ({"scopes": [KeyScope.DOCUMENTS_WRITE], "collections": [elsewhere]}, 404),
    ):
        assert put(client_with(key_of(sender, *limits.pop("scopes"), **limits)), source).status_code == status


@pytest.mark.parametrize("name", ["view", "add", "change", "delete"])
def test_each_request_takes_its_permission(sender, source, name):
    api = client_with(key_of(sender, source=source))
    put(api, source, "old", "Old.")
    sender.user_permissions.remove(Permission.objects.get(codename=f"{name}_document"))
    expected = dict.fromkeys(("view", "add", "change", "delete"), True) | {name: False}
    assert (api.get(at(source, "old")).status_code == 200) is expected["view"]
    assert (put(api, source, "new", "New.").status_code == 202) is expected["add"]
    replaced = put(api, source, "old", "Newer.").status_code
    assert (replaced == 202) is (expected["change"] and expected["add"])
    result, removed = (
        each["result"]
        for each in batch(
            api, source, {"external_id": "b", "text": "B."}, {"external_id": "old", "action": "delete"}
        ).json()["results"]
    )
    assert (result == "added") is expected["add"]
    assert (removed == "deleted") is expected["delete"]
    assert (api.delete(at(source, "new")).status_code == 204) is expected["delete"]


def test_a_collection_that_the_account_may_not_curate_has_no_sources(api, sender, source, collection):
    put(api, source)
    Collection.objects.filter(pk=collection.pk).update(visibility="granted")
    assert put(api, source).status_code == api.get(at(source, "page-1")).status_code == 404
    assert Document.objects.count() == 1
    folder = Source.objects.create(collection=collection, name="Folder", kind="folder")
    boss = client_with(key_of(make_superuser("boss")))
    assert put(boss, folder).status_code == 404
    assert put(boss, source).status_code == 200


def test_documents_that_came_otherwise_are_left_alone(api, source, ingest, collection):
    ingest(collection, "Wiki/page-1.md", "# Uploaded")
    response = put(api, source)
    assert response.status_code == 400
    assert "was uploaded" in response.json()["detail"]
    assert api.delete(at(source, "page-1")).status_code == 204
    assert Document.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_draft_keeps_documents_out(api, source, collection):
    put(api, source)
    read(Document.objects.get())
    draft = lifecycle.begin_draft(collection)
    for response in (put(api, source, text="New."), api.delete(at(source, "page-1")), put(api, source, "b")):
        assert response.status_code == 409
        assert "draft" in response.json()["detail"]
    [outcome] = batch(api, source, {"external_id": "c", "text": "C."}).json()["results"]
    assert (outcome["result"], outcome["status"]) == ("refused", 409)
    assert Document.objects.filter(collection=collection).count() == 1
    assert draft.pk


def test_the_audit_log_names_the_key(api, source, sender):
    put(api, source)
    api.delete(at(source, "page-1"))
    entries = AuditEntry.objects.filter(action__startswith="document.").order_by("pk")
    key = PushedItem.objects.get().key
    assert key.startswith("rs_")
    assert [(entry.action, entry.key, entry.via) for entry in entries] == [
        ("document.added", key, "api"), ("document.deleted", key, "api"),
    ]  # fmt: skip


# Readers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_source", "sent", "expected"),
    [
        ({}, {"readers": {"groups": ["sales", "care"]}}, ["care", "sales"]),
        ({}, {"readers": {"groups": []}}, []),
        ({}, {"readers": {}}, []),
        (
            {},
            {"readers": {"groups": ["care", "mail:a@b.example"], "users": [" Anna@Example.org"]}},
            ["care", "mail:anna@example.org"],
        ),
        ({}, {"readers": {"everybody": True}}, None),
        ({"groups": ["sales"]}, {"readers": {"groups": ["sales", "care"]}}, ["sales"]),
        ({"groups": "sales"}, {"readers": {"everybody": True}}, ["sales"]),
        ({"groups": ["sales"]}, {"metadata": {"groups": ["care"]}}, []),
        ({"groups": 7}, {"readers": {"groups": ["care"]}}, []),
        ({}, {"metadata": {"groups": ["care"]}, "readers": {"groups": ["care", "law"]}}, ["care"]),
    ],
)
def test_readers_only_narrow(api, source, of_source, sent, expected):
    Source.objects.filter(pk=source.pk).update(metadata=of_source)
    assert put(api, source, **sent).status_code == 202
    assert Document.objects.get().metadata.get("groups") == expected


def test_readers_that_are_left_out_stay(api, source):
    put(api, source, readers={"groups": ["care"]})
    put(api, source, text="New.", metadata={"team": "care"})
    assert Document.objects.get().metadata == {"team": "care", "groups": ["care"]}
    assert put(api, source, text="New.", readers={"everybody": True}).json()["result"] == "changed"
    assert Document.objects.get().metadata == {"team": "care"}


def test_metadata_of_the_source_do_not_widen_the_readers(api, source):
    from retrieval.sources.options import save_source

    put(api, source, readers={"groups": ["care"]}, metadata={"team": "x"})
    for metadata, expected in (
        ({"groups": ["sales"], "team": "y"}, {"groups": [], "team": "y"}),
        ({"groups": ["sales", "care"]}, {"groups": ["care"], "team": "x"}),
        ({}, {"groups": ["care"], "team": "x"}),
    ):
        source.refresh_from_db()
        source.metadata = metadata
        save_source(source)
        assert Document.objects.get().metadata == expected


def test_readers_are_admitted_by_group_or_by_confirmed_address(api, source, collection):
    from allauth.account.models import EmailAddress
    from django.contrib.auth.models import Group

    from retrieval.rights.audience import list_accounts, list_document_readers
    from retrieval.rights.reasons import explain_document_access

    people = {
        name: User.objects.create_user(name, email=f"{name}@example.org") for name in ("anna", "bob", "carol", "dan")
    }
    EmailAddress.objects.create(user=people["anna"], email="Anna@example.org", verified=True)
    EmailAddress.objects.create(user=people["bob"], email="bob@example.org", verified=False)
    people["carol"].groups.add(Group.objects.create(name="care"))
    # A group of this name is no address.
    people["dan"].groups.add(Group.objects.create(name="mail:anna@example.org"))
    users = ["anna@EXAMPLE.org", "bob@example.org", "stranger@example.org"]
    put(api, source, readers={"groups": ["care", "unknown"], "users": users})
    document = Document.objects.get()
    seen = {name for name, user in people.items() if Document.objects.readable_by(user).exists()}
    assert seen == {"anna", "carol"}
    assert {user.username for user in list_accounts(list_document_readers(document))} >= seen
    assert "bob" not in {user.username for user in list_accounts(list_document_readers(document))}
    told = {name: explain_document_access(user, document) for name, user in people.items()}
    assert {name for name, reason in told.items() if reason.is_seen} == seen
    assert "named by its address" in told["anna"].rule
    assert "is in care" in told["carol"].rule

    # They only narrow: a collection that anna may not ask stays closed.
    Collection.objects.filter(pk=collection.pk).update(visibility="granted")
    assert not Document.objects.readable_by(people["anna"]).exists()
    Collection.objects.filter(pk=collection.pk).update(visibility="public")
    put(api, source, readers={"users": ["bob@example.org"]})
    assert not Document.objects.readable_by(people["anna"]).exists()
