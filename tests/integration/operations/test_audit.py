"""The audit log: entries of who did what, which cannot be changed."""

import json
from base64 import b64encode
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from chat.models import Answer, Conversation
from evaluation.models import Judgement
from ragsite.models import ApiKey, AuditEntry
from ragsite.operations.audit_log import delete_old_entries, record_action
from retrieval.models import Collection, Draft, SearchProfile
from retrieval.profile_settings import ProfileSettings
from retrieval.search.profiles import profiles
from tests.support.keys import key_of
from tests.support.people import make_reader, make_staff, make_superuser

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"


@pytest.fixture
def boss():
    return make_superuser("boss", password=PASSWORD)


@pytest.fixture
def reader():
    return make_reader("reader", password=PASSWORD)


def entries(*actions):
    return list(AuditEntry.objects.filter(action__in=actions).order_by("pk"))


def test_sign_ins_are_recorded_and_what_strangers_type_is_not(client, reader):
    sent = {"username": "reader", "password": PASSWORD}
    client.post("/accounts/login/", sent | {"password": "wrong"})
    client.post("/accounts/login/", {"username": "my secret password", "password": "x"})
    client.post("/accounts/login/", sent, REMOTE_ADDR="203.0.113.7")
    client.post("/accounts/logout/")
    failed, unknown, succeeded, ended = entries("sign_in.failed", "sign_in.succeeded", "sign_in.ended")
    assert (failed.action, failed.actor, failed.object_person.name) == ("sign_in.failed", None, "reader")
    assert (unknown.object_person, unknown.details) == (None, {"known": False})
    assert "secret" not in str(AuditEntry.objects.values())
    assert (succeeded.actor.name, succeeded.address, succeeded.via) == ("reader", "203.0.113.7", "page")
    assert (ended.action, ended.actor.name) == ("sign_in.ended", "reader")


def test_many_granted_permissions_take_no_more_queries_than_a_few(django_assert_max_num_queries):
    permissions = list(Permission.objects.filter(content_type__app_label="retrieval").order_by("pk"))
    ContentType.objects.clear_cache()
    with CaptureQueriesContext(connection) as few:
        Group.objects.create(name="few").permissions.set(permissions[:2])
    ContentType.objects.clear_cache()
    kinds = len({each.content_type_id for each in permissions})
    with django_assert_max_num_queries(len(few) + kinds):
        Group.objects.create(name="many").permissions.set(permissions)
    assert len(permissions) > 3 * kinds
    assert len(entries("group.permissions_added")[-1].details["names"]) == len(permissions)


def test_a_password_with_each_call_is_recorded_once_an_hour_and_address(reader):
    program = APIClient()
    program.credentials(HTTP_AUTHORIZATION=f"Basic {b64encode(f'reader:{PASSWORD}'.encode()).decode()}")
    for address in ("203.0.113.7", "203.0.113.7", "203.0.113.8"):
        assert program.get("/api/v1/collections/", REMOTE_ADDR=address).status_code == 200
    first, second = entries("sign_in.basic")
    assert (first.object_person.name, first.address, first.via) == ("reader", "203.0.113.7", "api")
    assert second.address == "203.0.113.8"


def test_rights_are_recorded_with_who_gave_them(client, boss, reader):
    client.force_login(boss)
    editors = Group.objects.create(name="editors")
    page = f"/admin/auth/user/{reader.pk}/change/"
    sent = {
        "username": "reader",
        "is_active": "on",
        "is_staff": "on",
        "groups": [editors.pk],
        "date_joined_0": "2026-01-01",
        "date_joined_1": "00:00:00",
        "user_permissions": [Permission.objects.get(codename="view_document").pk],
    }
    assert client.post(page, sent).status_code == 302
    changed, added, permitted = entries("user.changed", "user.groups_added", "user.user_permissions_added")
    assert changed.details == {"changed": ["is_staff"], "is_staff": [False, True]}
    assert (changed.actor.name, changed.object_person.name, changed.object_label) == ("boss", "reader", "")
    assert added.details == {"names": ["editors"]}
    assert permitted.details == {"names": ["retrieval.view_document"]}
    editors.user_set.clear()
    [removed] = entries("user.groups_removed")
    assert (removed.object_person.name, removed.details) == ("reader", {"names": ["editors"]})


def test_a_new_password_is_told_of_without_its_hash(reader):
    reader.set_password("another long password")
    reader.save()
    [changed] = entries("user.changed")
    assert changed.details == {"changed": ["password"]}


def test_documents_by_key_are_recorded_with_the_key_and_without_text(boss, collection):
    program = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(boss)}")

    def upload(text):
        body = {"file": SimpleUploadedFile("a.md", text), "collection": collection.slug}
        assert program.post("/api/v1/documents/", body, format="multipart").status_code == 202

    upload(b"# A\n\nUnspeakable words.")
    upload(b"# A\n\nOther words.")
    document = collection.documents.get()
    assert program.delete(f"/api/v1/documents/{document.pk}/").status_code == 204
    rows = entries("document.added", "document.changed", "document.deleted")
    assert [row.action for row in rows] == ["document.added", "document.changed", "document.deleted"]
    key = ApiKey.objects.get()
    assert {(row.actor.name, row.key, row.via) for row in rows} == {("boss", key.public_id, "api")}
    assert {row.object_id for row in rows} == {str(document.pk)}
    assert "content_hash" in rows[1].details["changed"]
    assert "nspeakable" not in str(AuditEntry.objects.values())


def test_keys_are_recorded_and_not_what_they_are(client, reader):
    client.force_login(reader)
    made = client.post("/account/keys/", {"name": "Laptop", "scopes": ["ask"], "days": "0"})
    client.post(f"/account/keys/{ApiKey.objects.get().pk}/revoke/")
    added, revoked = entries("key.added", "key.changed")
    assert (added.actor.name, added.object_person.name, added.details["scopes"]) == ("reader", "reader", ["ask"])
    assert revoked.details["changed"] == ["revoked_at"]
    assert made.context["issued"].secret not in str(AuditEntry.objects.values())


def test_collections_and_profiles_are_recorded(boss, collection):
    collection.visibility = "staff"
    collection.save()
    version = profiles.add_version(SearchProfile.objects.create(slug="new", name="New"), ProfileSettings())
    profiles.publish_profile(version, boss)
    profiles.withdraw_published_profile()
    assert entries("collection.changed")[0].details["visibility"] == ["public", "staff"]
    for action in ("profile.added", "profile_version.added", "publication.added", "profile_version.withdrawn"):
        assert len(entries(action)) == 1, action


def test_whoever_opens_a_conversation_of_others_is_recorded_once(client, boss, reader):
    conversation = Conversation.objects.create(owner=reader, title="Is my boss mad?")
    answer = Answer.objects.create(
        conversation=conversation, question="Is my boss mad?", text="No.", status=Answer.Status.COMPLETED
    )
    client.force_login(boss)
    for _ in range(2):
        assert client.get(f"/admin/chat/answer/{answer.pk}/change/").status_code == 200
        assert client.get("/admin/chat/answer/").status_code == 200
    assert client.get(f"/answers/{answer.pk}/debug/").status_code == 200
    judgement = Judgement.objects.create(answer=answer, judge="offline")
    assert client.get(f"/admin/evaluation/judgement/{judgement.pk}/change/").status_code == 200
    assert client.get("/admin/evaluation/dashboard/").status_code == 200
    assert len(entries("conversation.viewed")) == 1
    assert len(entries("conversation.listed")) == 1
    other = make_superuser("other")
    api = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(other)}")
    assert api.get(f"/api/v1/answers/{answer.pk}/").status_code == 200
    own = APIClient(HTTP_AUTHORIZATION=f"Bearer {key_of(reader)}")
    assert own.get(f"/api/v1/answers/{answer.pk}/").status_code == 200
    first, second = entries("conversation.viewed")
    assert [first.actor.name, second.actor.name] == ["boss", "other"]
    assert (first.object_id, first.object_label) == (str(conversation.pk), "")
    assert "mad" not in str(AuditEntry.objects.values())


class TestAppendOnly:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE ragsite_auditentry SET action = 'nothing'",
            "DELETE FROM ragsite_auditentry",
            "TRUNCATE ragsite_auditentry",
        ],
    )
    def test_the_database_refuses_to_change_it(self, statement):
        record_action("test.happened")
        with connection.cursor() as cursor:
            # Checks that wait for the commit keep a table from being emptied, and would hide what is tested.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
        assert len(entries("test.happened")) == 1

    def test_even_retention_changes_no_entry(self):
        record_action("test.happened")
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL ragsite.audit_retention = 'on'")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("UPDATE ragsite_auditentry SET action = 'nothing'")

    def test_admin_neither_adds_nor_changes_nor_deletes(self, client, boss):
        client.force_login(boss)
        entry = record_action("test.happened")
        assert client.get("/admin/ragsite/auditentry/add/").status_code == 403
        page = f"/admin/ragsite/auditentry/{entry.pk}/change/"
        assert client.get(page).status_code == 200
        assert client.post(page, {"action": "nothing"}).status_code == 403
        assert client.post(f"/admin/ragsite/auditentry/{entry.pk}/delete/").status_code == 403

    def test_old_entries_go_when_the_site_says_so(self, settings, boss):
        old = AuditEntry.objects.create(action="test.old", via="page", at=timezone.now() - timedelta(days=31))
        record_action("test.happened", boss)
        assert delete_old_entries() == 0
        settings.AUDIT_DAYS = 30
        assert delete_old_entries() == 1
        assert not AuditEntry.objects.filter(pk=old.pk).exists()
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            AuditEntry.objects.all().delete()


def test_it_is_searched_and_exported_in_admin_and_by_command(client, boss, reader):
    client.force_login(boss)
    record_action("test.happened", reader, names=["é"])
    assert "test.happened" in client.get("/admin/ragsite/auditentry/", {"q": "reader"}).content.decode()
    chosen = {"action": "export", "_selected_action": [entry.pk for entry in entries("test.happened")]}
    [line] = client.post("/admin/ragsite/auditentry/", chosen).content.decode().splitlines()
    row = json.loads(line)
    assert (row["action"], row["object"]["person"]["name"], row["via"]) == ("test.happened", "reader", "command")
    assert row["details"] == {"names": ["é"]}
    printed = StringIO()
    call_command("export_audit", "--since", "2020-01-01", stdout=printed)
    actions = [json.loads(line)["action"] for line in printed.getvalue().splitlines()]
    assert "audit.exported" in actions
    assert "test.happened" in actions
    printed = StringIO()
    call_command("export_audit", "--until", "2020-01-01", stdout=printed)
    assert not printed.getvalue()


def test_names_of_documents_are_shown_to_those_who_may_read_all_of_them(client, collection, ingest):
    ingest(collection, "plan.md", "# Unspeakable plan\n\nIt is green.")
    auditor = make_staff("auditor", "view_auditentry")
    client.force_login(auditor)
    named = AuditEntry.objects.filter(object_label="Unspeakable plan").latest("pk")
    address = f"/admin/ragsite/auditentry/{named.pk}/change/"
    chosen = {"action": "export", "_selected_action": [named.pk]}

    def told():
        listed = client.get("/admin/ragsite/auditentry/")
        found = client.get("/admin/ragsite/auditentry/", {"q": "Unspeakable"})
        opened = client.get(address)
        exported = client.post("/admin/ragsite/auditentry/", chosen)
        assert {page.status_code for page in (listed, found, opened, exported)} == {200}
        assert address in listed.content.decode()
        tells = ["nspeakable plan" in page.content.decode() for page in (listed, opened, exported)]
        return [*tells, address in found.content.decode()]

    assert told() == [True, True, True, True]
    Collection.objects.create(slug="board", name="Board", visibility="granted")
    assert told() == [False, False, False, False]


def test_documents_of_a_working_copy_are_not_recorded_one_by_one(collection, ingest):
    from retrieval.documents.drafts import lifecycle

    draft = lifecycle.begin_draft(collection)
    Draft.objects.update(status=Draft.Status.OPEN)
    ingest(Collection.objects.get(pk=draft.working_copy_id), "a.md", "# A\n\nWords.")
    assert not entries("document.added")
    assert len(entries("draft.added")) == 1
