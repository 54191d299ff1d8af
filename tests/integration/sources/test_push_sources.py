"""Sources of the kind Push, and their keys, on pages and in the terminal."""

import json

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse
from rest_framework.test import APIClient

from core.key_limits import KeyScope
from ragsite.models import ApiKey
from retrieval.models import Document, Source, SourceRun
from retrieval.sources import sync_runs
from tests.support.asking import client_of
from tests.support.keys import key_of
from tests.support.people import make_curator, make_staff

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(collection):
    return Source.objects.create(collection=collection, name="Wiki", kind="push", interval_minutes=0)


def send(secret, source, external_id="page-1"):
    api = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}")
    address = reverse("retrieval_api:pushed_document", args=[source.pk, external_id])
    return api.put(address, {"text": f"Text of {external_id}.", "title": f"Page {external_id}"}, format="json")


def test_a_source_is_made_in_the_admin_and_shows_what_was_sent(admin_client, collection, admin_user):
    add = reverse("admin:retrieval_source_add")
    assert "?kind=push" in admin_client.get(add).content.decode()
    form = admin_client.get(f"{add}?kind=push").content.decode()
    for name in ("interval_minutes", "keeps_missing", "include"):
        assert f'name="{name}"' not in form
    admin_client.post(f"{add}?kind=push", {"collection": collection.pk, "name": "Wiki", "metadata": "{}"})
    source = Source.objects.get()
    assert (source.kind, source.interval_minutes) == ("push", 0)

    change = reverse("admin:retrieval_source_change", args=[source.pk])
    page = admin_client.get(change).content.decode()
    assert f"http://testserver/api/v1/documents/by-source/{source.pk}/ID" in page
    assert f"curl -X PUT http://testserver/api/v1/documents/by-source/{source.pk}/page-1" in page
    assert "Nothing yet." in page
    for text in ("Sync now", "Preview", "Pause", "Minutes between runs"):
        assert text not in page

    secret = key_of(admin_user, source=source)
    for number in range(52):
        assert send(secret, source, f"<page> {number}").status_code == 202
    APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}").delete(
        reverse("retrieval_api:pushed_document", args=[source.pk, "<page> 51"])
    )
    page = admin_client.get(change).content.decode()
    assert "&lt;page&gt; 51</td><td>deleted</td>" in page
    assert "&lt;page&gt; 50</td><td>added</td>" in page
    assert f"<code>{ApiKey.objects.get().public_id}…</code>" in page
    assert "Page &lt;page&gt; 50</a>: waiting" in page
    assert "The newest 50 of 52." in page
    assert "receives documents" in admin_client.get(reverse("admin:retrieval_source_changelist")).content.decode()


def test_it_is_never_read(source, collection, capsys, admin_client):
    Source.objects.filter(pk=source.pk).update(interval_minutes=5)
    assert sync_runs.request_due_runs() == 0
    with pytest.raises(sync_runs.SourceRunRefused, match="programs send documents"):
        sync_runs.request_run(source)
    act = reverse("admin:retrieval_source_act", args=[source.pk, "sync"])
    assert "is not read" in admin_client.post(act, follow=True).content.decode()
    call_command("sync", "--json")
    assert json.loads(capsys.readouterr().out) == []
    assert not SourceRun.objects.exists()


def test_the_page_is_for_those_who_may_see_the_sources(source, collection, admin_user):
    send(key_of(admin_user, source=source), source, "zalvorquim")
    user = make_curator("carla")
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    assert "zalvorquim" in client_of(user).get(change).content.decode()
    collection.visibility = "granted"
    collection.save()
    assert "zalvorquim" not in client_of(user).get(change, follow=True).content.decode()


@pytest.mark.parametrize("with_documents", [False, True])
def test_a_deleted_source_keeps_or_removes_its_documents(source, admin_user, with_documents):
    secret = key_of(admin_user, source=source)
    send(secret, source)
    assert sync_runs.delete_source(source, with_documents=with_documents) == int(with_documents)
    assert Document.objects.filter(origin=None).count() == int(not with_documents)
    assert not ApiKey.objects.exists()


def test_a_key_of_a_source_is_made_on_the_page_of_keys(source, admin_client, client, admin_user):
    page = reverse("account_keys")
    wanted = {"name": "Export", "scopes": ["search", "admin"], "days": 90, "source": source.pk}
    made = admin_client.post(page, wanted).content.decode()
    key = ApiKey.objects.get()
    assert (key.scopes, key.source, list(key.collections.all())) == (
        ["documents:write"], source, [source.collection],
    )  # fmt: skip
    assert key.is_limited
    assert "only to send documents to Wiki" in made
    listed = admin_client.get(reverse("admin:ragsite_apikey_change", args=[key.pk])).content.decode()
    assert ">Wiki<" in listed


def test_sources_are_offered_to_those_alone_who_may_send(source, collection):
    user = make_staff("carla")
    page, field = reverse("account_keys"), 'name="source"'
    assert field not in client_of(user).get(page).content.decode()
    user.user_permissions.add(Permission.objects.get(codename="add_document"))
    assert field in client_of(user).get(page).content.decode()
    collection.visibility = "granted"
    collection.save()
    assert field not in client_of(user).get(page).content.decode()
    wanted = {"name": "Export", "scopes": ["search"], "days": 90, "source": source.pk}
    client_of(user).post(page, wanted)
    assert not ApiKey.objects.filter(source=source).exists()


def test_a_key_of_a_source_is_made_in_the_terminal(source, admin_user, collection, capsys):
    call_command("create_key", "admin", "--source", str(source.pk))
    key = ApiKey.objects.get()
    assert (key.source, key.scopes) == (source, [KeyScope.DOCUMENTS_WRITE])
    assert send(capsys.readouterr().out.strip(), source).status_code == 202
    folder = Source.objects.create(collection=collection, name="Folder", kind="folder")
    with pytest.raises(CommandError, match="no source"):
        call_command("create_key", "admin", "--source", str(folder.pk))
