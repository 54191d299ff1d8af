"""Sources in the admin: who may do what, and that no secret is shown."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.urls import reverse
from django.utils import timezone

from ragsite.models import AuditEntry
from retrieval.documents.drafts import lifecycle
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document, Source, SourceRun
from retrieval.sources.options import read_all_options, save_source
from retrieval.sources.sync_runs import attempt_source_run
from tests.support.asking import client_of
from tests.support.sources import FolderRemote, make_source, names, run_once

pytestmark = pytest.mark.django_db

WEBSITE = {"url": "https://example.org/", "password": "t0p-secret"}


@pytest.fixture
def shelf(tmp_path):
    remote = FolderRemote(tmp_path / "shelf")
    for name in "abcdef":
        remote.put(name, f"The pump {name} weighs 30 kilograms.")
    return remote


@pytest.fixture
def curator():
    user = User.objects.create_user("carla", password="a long password", is_staff=True)
    user.groups.add(Group.objects.get_or_create(name="Curators")[0])
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="retrieval"))
    return user


@pytest.fixture
def page(curator):
    return client_of(curator)


def act(client, source, action):
    return client.post(reverse("admin:retrieval_source_act", args=[source.pk, action]), follow=True)


def do_last(source):
    return attempt_source_run(source.runs.all()[0].pk)


def test_a_source_is_configured_and_set_going_in_the_admin(page, collection, shelf):
    add = reverse("admin:retrieval_source_add")
    assert "?kind=folder" in page.get(add).content.decode()
    wrong = {"collection": collection.pk, "name": "Shelf", "interval_minutes": 5, "path": "/etc"}
    assert "SOURCE_FOLDERS" in page.post(f"{add}?kind=folder", wrong).content.decode()
    right = {**wrong, "path": str(shelf.path), "exclude": "f.*\n", "metadata": '{"department": "sales"}'}
    page.post(f"{add}?kind=folder", right)
    source = Source.objects.get()
    assert (source.kind, source.options["exclude"]) == ("folder", ["f.*"])
    assert source.metadata == {"department": "sales"}
    change = reverse("admin:retrieval_source_change", args=[source.pk])

    act(page, source, "preview")
    assert "data-live" in page.get(change).content.decode()
    do_last(source)
    assert "What a run would do" in page.get(change).content.decode()
    act(page, source, "sync")
    do_last(source)
    assert len(names()) == 5
    for name in "abc":
        shelf.delete(name)
    act(page, source, "sync")
    do_last(source)
    assert "Remove them" in page.get(change).content.decode()
    act(page, source, "remove")
    do_last(source)
    assert len(names()) == 2
    assert "waiting" not in act(page, source, "pause").content.decode()
    source.refresh_from_db()
    assert source.is_paused
    assert "is already being read" not in act(page, source, "sync").content.decode()
    assert "is already being read" in act(page, source, "sync").content.decode()

    document = Document.objects.first()
    assert change in page.get(reverse("admin:retrieval_document_change", args=[document.pk])).content.decode()
    told = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"source.added", "source.changed", "source.previewed", "source.removals_allowed"} <= told
    question = page.get(reverse("admin:retrieval_source_delete", args=[source.pk])).content.decode()
    assert "2 documents came from this source" in question
    page.post(reverse("admin:retrieval_source_delete", args=[source.pk]), {"documents": "remove"})
    assert (Source.objects.count(), names()) == (0, [])


def test_a_waiting_run_says_what_it_waits_for(page, admin_client, collection, shelf):
    source = make_source(collection, "folder", shelf.options)
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    act(page, source, "sync")
    told = page.get(change).content.decode()
    assert "A run was asked for. A worker begins it in a moment." in told
    assert "waits for its turn" in told

    closed = Collection.objects.create(slug="closed", name="Closed", visibility="granted")
    busy = make_source(closed, "folder", shelf.options)
    Source.objects.filter(pk=busy.pk).update(name="Secret shelf")
    run = SourceRun.objects.create(source=busy, status=SourceRun.Status.RUNNING, heartbeat_at=timezone.now())
    assert "one source is read at a time, now Secret shelf." in admin_client.get(change).content.decode()
    told = page.get(change).content.decode()
    assert "one source is read at a time, now another one." in told
    assert "Secret shelf" not in told
    run.end(SourceRun.Status.DONE)

    SourceRun.objects.filter(source=source).update(error="It is away.", retry_at=timezone.now())
    assert "The last attempt failed: It is away. The next one is at" in page.get(change).content.decode()
    SourceRun.objects.filter(source=source).update(status=SourceRun.Status.RUNNING)
    assert "A run is under way." in page.get(change).content.decode()


def test_a_password_is_kept_and_never_shown(page, collection):
    source = make_source(collection, "website", {"way": "crawl", "depth": 1, "delay": 1, **WEBSITE})
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    shown = page.get(change).content.decode()
    fields = {"name": "Shelf", "interval_minutes": 60, "url": "https://example.org/new", "way": "crawl", "depth": 2}
    page.post(change, {**fields, "delay": 1, "password": ""})
    source.refresh_from_db()
    assert source.options["depth"] == 2
    assert read_all_options(source)["password"] == "t0p-secret"
    for said in (shown, page.get(change).content.decode()):
        assert "t0p-secret" not in said
        assert source.secret not in said


def test_the_metadata_of_a_source_are_those_of_its_documents(collection, shelf):
    source = make_source(collection, "folder", shelf.options)
    source.metadata = {"department": "sales"}
    save_source(source)
    run_once(source)
    # A document's own stay; what came in it has the same.
    first, *others = Document.objects.order_by("pk")
    first.metadata["author"] = "Ann"
    first.save()
    others[0].parent, others[0].origin = first, None
    others[0].save()
    assert all(document.metadata["department"] == "sales" for document in (first, *others))
    source.metadata = {"office": "Ghent"}
    save_source(source)
    metadata = list(Document.objects.order_by("pk").values_list("metadata", flat=True))
    assert metadata == [{"author": "Ann", "office": "Ghent"}, *[{"office": "Ghent"}] * (len(metadata) - 1)]
    others[0].delete()
    Document.objects.update(status=Document.Status.READY)
    lifecycle.begin_draft(collection)
    source.metadata = {}
    with pytest.raises(DocumentRejected):
        save_source(source)


def test_sources_are_there_for_those_who_curate_the_collection_alone(page, collection, shelf):
    source = make_source(collection, "folder", shelf.options)
    run_once(source)
    Collection.objects.filter(pk=collection.pk).update(visibility="granted")
    assert page.post(reverse("admin:retrieval_source_act", args=[source.pk, "sync"])).status_code == 404
    assert source.runs.count() == 1
