"""Readers of folders, shares and records, and the form of a source that takes them over."""

import json
import re
from contextlib import contextmanager

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.urls import reverse

from retrieval.documents.drafts import lifecycle
from retrieval.models import Document, Source
from retrieval.sources.kinds import KINDS, file_modes
from tests.support.people import make_reader
from tests.support.sources import ConnectorRemote, FolderRemote, WebServer, make_source, remote_of, run_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(db):
    made = {name: make_reader(name) for name in ("ann", "bob")}
    made["ann"].groups.add(Group.objects.create(name="Sales"))
    EmailAddress.objects.create(user=made["bob"], email="bob@example.org", verified=True)
    return made


def seen_by(user):
    found = Document.objects.readable_by(user).values_list("source", flat=True)
    return sorted(name.partition("/")[2].partition(".")[0] for name in found)


def test_a_folder_follows_the_modes_of_its_files(tmp_path, collection, people, monkeypatch):
    monkeypatch.setattr(file_modes, "_find_group_name", lambda number: "staff")
    shelf = FolderRemote(tmp_path / "shelf")
    for name, mode in (("open", 0o644), ("group", 0o640), ("own", 0o600)):
        shelf.put(name, f"The pump {name} weighs 30 kilograms.")
        (shelf.path / f"{name}.md").chmod(mode)
    shelf.path.chmod(0o755)
    options = {**shelf.options, "takes_readers": True, "reader_names": "staff = Sales"}
    source = make_source(collection, "folder", options)
    run_once(source)
    assert (seen_by(people["ann"]), seen_by(people["bob"])) == (["group", "open"], ["open"])
    # A new mode changes neither the time nor the size of a file.
    (shelf.path / "open.md").chmod(0o600)
    run = run_once(source)
    assert (run.changed, run.unchanged, run.details["closed"]) == (0, 3, [["*", 1]])
    assert seen_by(people["bob"]) == []


def test_a_record_names_its_readers_in_a_field(tmp_path, collection, people):
    remote = ConnectorRemote(tmp_path / "records")
    remote.put("a", "The first pump.", who=["Sales", "x@example.org"])
    remote.put("b", "The second pump.", who="BOB@example.org, Care")
    remote.put("c", "The third pump.")
    options = {**remote.options, "takes_readers": True, "of.pages.readers_field": "who"}
    source = make_source(collection, "connector", options)
    run = run_once(source)
    opened = dict(run.details["opened"])
    assert opened["Sales"] == opened["bob@example.org"] == 1
    assert "x@example.org" not in opened
    assert "x@example.org" in run.details["about_readers"][0]
    titles = dict(Document.objects.values_list("title", "pk"))
    seen = {name: set(Document.objects.readable_by(user).values_list("pk", flat=True)) for name, user in people.items()}
    assert seen == {"ann": {titles["Page a"]}, "bob": {titles["Page b"]}}

    # A record's own groups and its readers narrow alike, also when only one of them changes.
    remote.put("a", "The first pump.", who=["Sales", "Care"], author="Care")
    own_groups = {"of.pages.metadata_fields": ["groups=author"]}
    Source.objects.filter(pk=source.pk).update(options={**source.options, **own_groups})
    run_once(source)
    document = Document.objects.get(title="Page a")
    assert document.metadata["groups"] == ["Care"]
    remote.put("a", "The first pump.", who=["Sales"], author="Care")
    run_once(source)
    document.refresh_from_db()
    assert document.metadata["groups"] == []
    remote.put("a", "The first pump.", who=["Sales"], author="Sales")
    run_once(source)
    document.refresh_from_db()
    assert document.metadata["groups"] == ["Sales"]

    # Without the field nobody knows who reads: what is known stays, and what is new is closed.
    Source.objects.filter(pk=source.pk).update(options={**source.options, "of.pages.readers_field": ""})
    remote.put("d", "The fourth pump.")
    run = run_once(source)
    assert "name the field of the readers" in run.details["about_readers"][0]
    assert Document.objects.get(title="Page d").metadata["groups"] == []
    assert Document.objects.readable_by(people["ann"]).filter(title="Page a").exists()


class Nextcloud(WebServer):
    """A folder with two files, and the shares of the account."""

    def __init__(self):
        super().__init__()
        self.shares = []
        self._server.RequestHandlerClass.do_PROPFIND = lambda request: self._list(request)

    def _list(self, request):
        request.rfile.read(int(request.headers["Content-Length"]))
        entries = "".join(
            f"<response><href>/remote.php/dav/files/ann/Handbook/{name}</href><propstat><prop><resourcetype/>"
            f"<getetag>{name}</getetag></prop></propstat></response>"
            for name in ("a.md", "b.md")
        )
        request.send(f'<multistatus xmlns="DAV:">{entries}</multistatus>'.encode(), 207)

    def answer(self, request):
        if request.path.startswith("/ocs/"):
            assert request.headers["OCS-APIRequest"] == "true"
            request.send(json.dumps({"ocs": {"data": self.shares}}).encode())
        else:
            request.send(b"# Pumps\n\nThe pump weighs 30 kilograms.")


@pytest.fixture
def nextcloud():
    remote = Nextcloud()
    yield remote
    remote.close()


def test_a_folder_of_nextcloud_follows_its_shares(nextcloud, collection, people):
    nextcloud.shares = [{"path": "/Handbook", "share_type": 1, "share_with": "Sales", "permissions": 1}]
    options = {"url": f"{nextcloud.url}/remote.php/dav/files/ann/Handbook/", "username": "ann", "password": "x"}
    source = make_source(
        collection, "webdav", {**options, "takes_readers": True, "reader_names": "robert = bob@example.org"}
    )
    run_once(source)
    assert (seen_by(people["ann"]), seen_by(people["bob"])) == (["a", "b"], [])
    nextcloud.shares = [{"path": "/Handbook/b.md", "share_type": 0, "share_with": "robert", "permissions": 1}]
    run = run_once(source)
    assert (run.unchanged, seen_by(people["ann"]), seen_by(people["bob"])) == (2, [], ["b"])


def test_another_server_of_webdav_says_nothing(tmp_path, collection, people):
    with remote_of("webdav", tmp_path / "dav") as remote:
        remote.put("a", "The pump weighs 30 kilograms.")
        run = run_once(make_source(collection, "webdav", {**remote.options, "takes_readers": True}))
    assert run.status == "done"
    assert "none of Nextcloud or ownCloud" in run.details["about_readers"][0]
    assert seen_by(people["ann"]) == []


@contextmanager
def draft_of(collection):
    lifecycle.begin_draft(collection)
    yield
    lifecycle.discard_draft(collection.drafts.filter_open().get())


def test_the_form_checks_names_and_a_switch_that_goes_off(admin, collection, tmp_path, people):
    shelf = FolderRemote(tmp_path / "shelf")
    shelf.put("a", "The pump weighs 30 kilograms.")
    (shelf.path / "a.md").chmod(0o600)
    add = reverse("admin:retrieval_source_add") + "?kind=folder"
    values = {"collection": collection.pk, "name": "Shelf", "interval_minutes": 0, "metadata": "{}", **shelf.options}
    values |= {"takes_readers": "on", "reader_names": "staff Sales"}
    said = admin.post(add, values).content.decode()
    assert "“staff Sales” must be a name there, “=”, and a group, a mail address or “*” here." in said
    assert not Source.objects.exists()
    admin.post(add, {**values, "reader_names": "staff = Sales"})
    source = Source.objects.get()
    assert source.options["reader_names"] == ["staff = Sales"]
    run_once(source)
    assert seen_by(people["bob"]) == []

    change = reverse("admin:retrieval_source_change", args=[source.pk])
    form = admin.get(change).content.decode()
    assert re.search(r'name="takes_readers"[^>]{0,200} checked', form)
    assert ">staff = Sales</textarea>" in form.replace("\n", "")
    off = {name: value for name, value in values.items() if name not in ("takes_readers", "collection")}
    off["reader_names"] = "staff = Sales"
    Document.objects.update(status="ready")
    with draft_of(collection):
        assert "errorlist" in admin.post(change, off).content.decode()
        source.refresh_from_db()
        assert source.has_readers_by_source
    admin.post(change, off)
    source.refresh_from_db()
    assert not source.has_readers_by_source
    assert seen_by(people["bob"]) == ["a"]


def test_only_kinds_that_can_tell_readers_have_the_switch():
    for name, kind in KINDS.items():
        has_switch = "takes_readers" in kind.form.base_fields or name == "connector"
        assert kind.tells_readers == has_switch, name


def test_the_terminal_names_what_opened_and_closed(tmp_path, collection, people, capsys):
    shelf = FolderRemote(tmp_path / "shelf")
    shelf.path.chmod(0o755)
    shelf.put("a", "The pump weighs 30 kilograms.")
    (shelf.path / "a.md").chmod(0o644)
    make_source(collection, "folder", {**shelf.options, "takes_readers": True})
    call_command("sync", "Shelf")
    assert "documents opened to: everybody 1." in capsys.readouterr().out
    (shelf.path / "a.md").chmod(0o600)
    call_command("sync", "Shelf", "--dry-run")
    assert "documents closed to: everybody 1." in capsys.readouterr().out
    assert seen_by(people["bob"]) == ["a"]
