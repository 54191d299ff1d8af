"""A person's data, exported and erased; old conversations and deleted documents, removed."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from allauth.socialaccount.models import SocialAccount
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.utils import timezone

from chat.conversations.retention import delete_old_conversations, forget_deleted_documents
from chat.models import Answer, Conversation, DeletedDocument, Feedback, StreamedEvent
from chat.streaming import answer_cache
from ragsite.accounts.people import erase_person
from ragsite.models import ApiKey, AuditEntry, Invitation
from ragsite.operations.audit_log import record_action
from ragsite.tasks import delete_old
from retrieval.models import CollectionGrant
from retrieval.rights.search_filters import build_unrestricted_filters
from tests.support.asking import answered, client_of
from tests.support.keys import key_of
from tests.support.people import make_staff, make_superuser

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss():
    return make_superuser("boss", password="a long password")


@pytest.fixture
def reader():
    return User.objects.create_user("reader", password="a long password", email="reader@example.org")


def asked(owner, question="Why?", **fields):
    conversation = Conversation.objects.create(owner=owner, title=question)
    return Answer.objects.create(
        conversation=conversation, question=question, text="So.", status=Answer.Status.COMPLETED, **fields
    )


def test_a_person_downloads_what_is_kept(client, reader, boss):
    client.force_login(reader)
    Feedback.objects.create(answer=asked(reader, "Where is my desk?"), helpful=False, comment="It moved.")
    asked(boss, "Who leaves?")
    secret = key_of(reader)
    response = client.get("/account/data/export/")
    told = json.loads(response.content)
    assert told["account"]["email"] == "reader@example.org"
    [conversation] = told["conversations"]
    assert conversation["answers"][0]["question"] == "Where is my desk?"
    assert conversation["answers"][0]["feedback"]["comment"] == "It moved."
    assert [key["name"] for key in told["api_keys"]] == ["test"]
    assert {"key.added", "sign_in.succeeded"} <= {entry["action"] for entry in told["audit_log"]}
    text = response.content.decode()
    assert "Who leaves?" not in text
    assert secret not in text
    assert ApiKey.objects.get().digest not in text
    assert reader.password not in text
    assert AuditEntry.objects.filter(action="person.exported", actor__name="reader").exists()


def test_a_person_erases_themselves_and_what_remains_is_named(client, reader, boss):
    client.force_login(reader)
    elsewhere = client_of(reader)
    asked(reader)
    kept = asked(boss)
    key_of(reader)
    record_action("test.happened", reader)
    page = client.get("/account/data/").content.decode()
    assert "Conversations, with their questions" in page
    assert "audit log" in page
    refused = client.post("/account/data/", {"name": "boss"})
    assert "This is not the name of your account." in refused.content.decode()
    assert User.objects.filter(pk=reader.pk).exists()
    erased = client.post("/account/data/", {"name": "reader"})
    assert "with a pseudonym instead of the name." in erased.content.decode()
    assert not User.objects.filter(username="reader").exists()
    assert [answer.pk for answer in Answer.objects.all()] == [kept.pk]
    assert not ApiKey.objects.exists()
    assert not Session.objects.exists()
    for page in ("/account/data/", "/account/keys/"):
        assert client.get(page).status_code == elsewhere.get(page).status_code == 302
    told = StringIO()
    call_command("export_audit", stdout=told)
    rows = [json.loads(line) for line in told.getvalue().splitlines()]
    assert "reader" not in told.getvalue()
    [entry] = [row for row in rows if row["action"] == "person.erased"]
    assert entry["object"]["person"]["name"].startswith("erased-")
    [happened] = [row for row in rows if row["action"] == "test.happened"]
    assert happened["object"]["person"] == entry["object"]["person"]


def test_no_row_that_bears_the_name_tells_it_afterwards(reader, boss, collection):
    CollectionGrant.objects.create(collection=collection, user=reader, role=CollectionGrant.Role.MANAGER)
    Invitation.objects.create(email="Reader@example.org", token_hash="0")
    SocialAccount.objects.create(user=reader, provider="oidc", uid="1", extra_data={"name": "reader"})
    for name in ("reader", "reader@example.org"):
        about = {"user": boss, "action_flag": 1, "content_type": ContentType.objects.get_for_model(Invitation)}
        LogEntry.objects.create(object_repr=name, **about)
    granted = '[{"added": {"name": "grant", "object": "reader: manager"}}]'
    LogEntry.objects.create(object_repr="Library", change_message=granted, user=boss, action_flag=2)
    erase_person(reader)
    told = StringIO()
    call_command("export_audit", stdout=told)
    logged = str(list(LogEntry.objects.values("object_repr", "change_message")))
    for name in ("reader", "reader@example.org"):
        assert name not in told.getvalue().lower()
        assert name not in logged
    assert not Invitation.objects.exists()


def test_an_administrator_erases_a_person_after_a_look(client, reader, boss):
    client.force_login(boss)
    asked(reader)
    chosen = {"action": "erase_person", "_selected_action": [reader.pk]}
    assert "Conversations, with their questions" in client.post("/admin/auth/user/", chosen).content.decode()
    assert User.objects.filter(pk=reader.pk).exists()
    client.post("/admin/auth/user/", chosen | {"confirmed": "yes"})
    assert not User.objects.filter(pk=reader.pk).exists()
    client.post("/admin/auth/user/", {"action": "erase_person", "_selected_action": [boss.pk], "confirmed": "yes"})
    assert "This is the last account" in client.post("/account/data/", {"name": "boss"}).content.decode()
    assert User.objects.filter(pk=boss.pk).exists()


def test_staff_who_are_no_superusers_neither_export_nor_erase(client, reader):
    from django.contrib.auth.models import Permission

    clerk = make_staff("clerk")
    clerk.user_permissions.add(*Permission.objects.filter(content_type__model="user"))
    client.force_login(clerk)
    for action in ("erase_person", "export_person"):
        sent = {"action": action, "_selected_action": [reader.pk], "confirmed": "yes"}
        assert "attachment" not in client.post("/admin/auth/user/", sent).get("Content-Disposition", "")
    assert User.objects.filter(pk=reader.pk).exists()


def test_old_conversations_go_with_all_that_hangs_on_them(reader, settings):
    old, new = asked(reader), asked(reader)
    Feedback.objects.create(answer=old, helpful=True)
    StreamedEvent.objects.create(answer=old, attempt=1, sequence=1, name="token", payload={})
    Conversation.objects.filter(pk=old.conversation_id).update(updated_at=timezone.now() - timedelta(days=31))
    assert delete_old_conversations() == 0
    settings.CONVERSATION_DAYS = 30
    delete_old()
    assert [answer.pk for answer in Answer.objects.all()] == [new.pk]
    assert not Feedback.objects.exists()
    assert not StreamedEvent.objects.exists()
    assert AuditEntry.objects.get(action="retention.conversations_deleted").details == {"number": 1}


@pytest.mark.django_db(transaction=True)
def test_a_deleted_document_is_gone_from_traces_streams_and_the_answer_cache(collection, ingest, reader):
    secret = ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    question = "How many grams does the pump weigh?"
    answer = answered(question, user=reader, visitor="")
    assert answer_cache.find_reusable_answer(answer.cache_key) is not None
    assert "3450 grams" not in json.dumps(answer.trace)
    assert "3450" in str(list(answer.events.values()))
    key = answer_cache.build_key(question, build_unrestricted_filters())
    # Traces of earlier releases named passages.
    Answer.objects.update(trace={**answer.trace, "passages": {"7": {"preview": "3450 grams"}}})
    secret.delete()
    assert answer_cache.build_key(question, build_unrestricted_filters()) != key
    assert forget_deleted_documents() == 1
    answer.refresh_from_db()
    assert "3450 grams" not in json.dumps(answer.trace)
    assert answer_cache.find_reusable_answer(answer.cache_key) is None
    assert not answer.events.exists()
    assert not DeletedDocument.objects.exists()
    assert "3450" not in answered(question, user=reader, visitor="").text
