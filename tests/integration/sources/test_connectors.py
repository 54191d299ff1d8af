"""Connectors as sources: who may register and use them, what their records become, and what a broken one leaves."""

import json
import os
import re
import shutil
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse
from django.utils import timezone

from core.job_queue import enqueue_forgotten_jobs
from retrieval.models import Document, RegisteredConnector, Source, SourceItem, SourceRun
from retrieval.sources.airbyte.installation import remove_environment
from retrieval.sources.kinds.connectors import ConnectorSource
from retrieval.sources.options import read_all_options
from retrieval.sources.sync_runs import attempt_source_run, request_due_runs, request_run
from tests.integration.sources.test_killed_runs import SAVED, somebody_waits, stopped_while_saving
from tests.integration.sources.test_surfaces import act, curator, do_last, page  # noqa: F401 (fixtures)
from tests.support import fake_connector
from tests.support.connector_package import make_wheel
from tests.support.people import make_reader
from tests.support.site import SiteProcess, wait_until
from tests.support.sources import ConnectorRemote, make_source, names, numbers, run_once

pytestmark = pytest.mark.django_db
ADD = "/admin/retrieval/source/add/?kind=connector&connector=shelf"
TOKEN = "t0p-secret-token"
MANIFEST = """
version: 6.0.0
type: DeclarativeSource
check: {type: CheckStream, stream_names: []}
streams: []
definitions:
  own: {connection_specification: {type: object, properties: {place: {type: string}}}}
spec: {$ref: "#/definitions/own"}
"""


@pytest.fixture
def remote(tmp_path):
    made = ConnectorRemote(tmp_path / "records")
    for name in "abcdef":
        made.put(name, f"The pump {name} weighs 30 kilograms.")
    return made


@pytest.fixture
def source(collection, remote):
    return make_source(collection, "connector", remote.options)


def fill(source, remote, **changed):
    """Return the fields of the source's form."""
    options = {name: value for name, value in remote.options.items() if name not in ("found", "connector")}
    return {"name": "Shelf", "interval_minutes": 60, **options, "config.token": "", **changed}


def test_a_source_is_made_from_the_settings_that_the_connector_names(page, collection, remote):  # noqa: F811
    form = page.get(ADD).content.decode()
    assert "Where the files are." in form
    assert "<b>files" not in form
    assert 'name="streams"' not in form
    fields = {"collection": collection.pk, "name": "Shelf", "interval_minutes": 60, "config.folder": str(remote.path)}
    assert "This field is required." in page.post(ADD, fields).content.decode()
    page.post(ADD, {**fields, "config.token": TOKEN})
    source = Source.objects.get()
    assert source.options == {
        "connector": "shelf",
        "config.folder": str(remote.path),
        "config.mood": "",
        "config.form": "",
        "config.page": None,
    }
    assert read_all_options(source)["config.token"] == TOKEN
    assert source.is_paused
    # A run before the choice would fail, so the first is a preview.
    assert source.next_run_at > timezone.now() + timedelta(minutes=50)
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    run = do_last(source)
    assert (run.is_preview, run.status, numbers(run)) == (True, "done", (0, 0, 0, 0, 0)), run.error
    shown = page.get(change).content.decode()
    assert "The settings work. There are 2 streams." in shown
    assert 'name="streams"' in shown
    page.post(change, {**fields, "config.token": "", "streams": ["pages"]})
    source.refresh_from_db()
    mapping = ("key_fields", "title_fields", "text_fields", "url_field", "changed_field")
    assert [source.options[f"of.pages.{name}"] for name in mapping] == [
        ["id"],
        ["title"],
        ["body"],
        "url",
        "updated_at",
    ]
    run = do_last(source)
    assert (run.is_preview, numbers(run), names()) == (True, (6, 0, 0, 0, 0), []), run.error
    assert [sample["title"] for sample in run.details["samples"]] == ["Page a", "Page b", "Page c"]
    shown = page.get(change).content.decode()
    assert "The pump a weighs 30 kilograms." in shown
    # Half of the fields could show readers what the others close, so no run begins by itself.
    Source.objects.update(next_run_at=None)
    kept = {f"of.pages.{name}": "id" for name in ("key_fields", "title_fields")}
    kept |= {"of.pages.text_fields": "body", "of.pages.text_format": "md", "streams": ["pages"]}
    answered = page.post(change, {**fields, "config.token": "", **kept}, follow=True)
    assert "Nothing is read before you choose Sync now." in answered.content.decode()
    run = do_last(source)
    assert run.is_preview
    assert [sample["title"] for sample in run.details["samples"]] == ["a", "b", "c"]
    Source.objects.update(next_run_at=None)
    assert (request_due_runs(), names()) == (0, [])
    act(page, source, "sync")
    assert numbers(do_last(source)) == (6, 0, 0, 0, 0)
    source.refresh_from_db()
    assert not source.is_paused
    assert TOKEN not in f"{shown} {page.get(change).content.decode()} {[run.details for run in source.runs.all()]}"


def test_records_become_documents_with_address_and_metadata(collection, source, remote):
    source.metadata = {"groups": ["board"]}
    source.options["of.pages.metadata_fields"] = ["author", "groups", "place=where.city"]
    source.save()
    told = {"url": "https://wiki.example/a", "updated_at": "2026-11-01", "groups": ["all"], "author": "Ann"}
    remote.put("a", "The pump.", **told, where=[{"city": "Ede"}, {"city": "Assen"}])
    remote.put("b", "The pump b.", url="javascript:alert(1)")
    assert run_once(source).status == "done"
    document = Document.objects.get(source="Shelf/page-a.md")
    assert (document.title, document.url) == ("Page a", "https://wiki.example/a")
    assert document.file.read() == b"# Page a\n\nThe pump.\n"
    # What a record says of its readers never replaces what the source says.
    expected = {"groups": ["board"], "author": "Ann", "place": ["Ede", "Assen"], "changed": "2026-11-01"}
    assert document.metadata == expected
    assert Document.objects.get(source="Shelf/page-b.md").url == ""

    Document.objects.filter(pk=document.pk).update(metadata={**expected, "own": 1})
    remote.put("a", "The pump.", **{**told, "author": None, "url": "https://wiki.example/b"})
    run = run_once(source)
    assert numbers(run) == (0, 1, 5, 0, 0), run.details
    document.refresh_from_db()
    assert document.url == "https://wiki.example/b"
    assert document.metadata == {"groups": ["board"], "changed": "2026-11-01", "own": 1}


def test_a_record_that_should_name_its_groups_and_does_not_is_open_to_nobody(source, remote):
    source.options["of.pages.metadata_fields"] = ["groups=team"]
    source.save()
    remote.put("a", "The pump a.", team="care")
    run_once(source)
    groups = dict(Document.objects.values_list("source", "metadata__groups"))
    assert (groups["Shelf/page-a.md"], groups["Shelf/page-b.md"]) == ("care", [])
    reader = make_reader("reader")
    assert not Document.objects.readable_by(reader).exists()
    reader.groups.add(Group.objects.create(name="care"))
    assert Document.objects.readable_by(reader).values_list("source", flat=True).get() == "Shelf/page-a.md"


def test_a_record_without_text_is_no_document_and_one_without_identifier_stops_the_run(source, remote):
    run_once(source)
    remote.put("a", " ")
    run = run_once(source)
    assert (run.removed, len(names())) == (1, 5), run.details
    (remote.path / "b.json").write_text('{"title": "Page b"}')
    run = run_once(source)
    assert (run.status, len(names())) == ("failed", 5)
    assert "Record 2 has no id" in run.error


def test_the_last_record_of_an_identifier_counts(source, remote):
    (remote.path / "g.json").write_text(json.dumps({"id": "a", "title": "Page a", "body": "It was replaced."}))
    assert numbers(run_once(source)) == (6, 0, 0, 0, 0)
    assert b"It was replaced." in Document.objects.get(source="Shelf/page-a.md").file.read()


@pytest.mark.parametrize("mood", ["dies", "stutters", "gives up"])
def test_a_reading_that_breaks_off_removes_and_adds_nothing(source, remote, mood):
    run_once(source)
    remote.put("g", "This is new.")
    source.options["config.mood"] = mood
    source.set_secret(json.dumps({"config.token": TOKEN}))
    source.save()
    run = run_once(source)
    assert run.status in ("waiting", "failed")
    assert run.error
    assert len(names()) == 6
    assert TOKEN not in f"{run.error} {run.details}"
    assert any("Signing in with •••" in line for line in run.details["notes"])


def test_a_secret_goes_with_its_settings(page, source, remote):  # noqa: F811
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    page.post(change, fill(source, remote, name="Rack"))
    source.refresh_from_db()
    assert (source.name, read_all_options(source)["config.token"]) == ("Rack", "right")
    said = page.post(change, fill(source, remote, **{"config.folder": "/elsewhere"}), follow=True).content.decode()
    source.refresh_from_db()
    assert "config.token" not in read_all_options(source)
    assert "secret was removed" in said
    assert "Settings are missing: Token." in do_last(source).error


def test_one_of_two_secrets_can_be_changed_alone(page, source, remote):  # noqa: F811
    properties = {**fake_connector.SPEC["properties"], "key": {"type": "string", "airbyte_secret": True}}
    RegisteredConnector.objects.update(spec={**fake_connector.SPEC, "properties": properties})
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    page.post(change, fill(source, remote, **{"config.key": "second"}))
    source.refresh_from_db()
    stored = read_all_options(source)
    assert (stored["config.token"], stored["config.key"]) == ("right", "second")
    page.post(change, fill(source, remote, **{"config.key": "third", "config.folder": "/elsewhere"}))
    source.refresh_from_db()
    assert "config.token" not in read_all_options(source), "It was given for another place."


def test_without_the_setting_nothing_is_offered_or_run(page, admin_client, source, settings):  # noqa: F811
    settings.SOURCE_CONNECTORS = False
    assert "SOURCE_CONNECTORS" in admin_client.get("/admin/retrieval/registeredconnector/").content.decode()
    shown = admin_client.get(ADD).content.decode()
    assert "This site runs no connectors of others." in shown
    assert "config.folder" not in shown
    assert "SOURCE_CONNECTORS" in run_once(source).error
    with pytest.raises(CommandError, match="SOURCE_CONNECTORS"):
        call_command("connector", "install", "shelf")
    assert names() == []


def test_curators_use_only_what_is_meant_for_them_and_register_nothing(
    page,  # noqa: F811
    admin_client,
    collection,
    source,
    remote,
):
    listed = "/admin/retrieval/registeredconnector/"
    connector = RegisteredConnector.objects.get()
    own = reverse("admin:retrieval_registeredconnector_change", args=[connector.pk])
    for address in (listed, f"{listed}add/", own):
        assert (page.get(address).status_code, admin_client.get(address).status_code) == (403, 200)
    assert "connector=shelf" in page.get("/admin/retrieval/source/add/").content.decode()
    RegisteredConnector.objects.update(is_for_curators=False)
    assert "connector=shelf" not in page.get("/admin/retrieval/source/add/").content.decode()
    assert "connector=shelf" in admin_client.get("/admin/retrieval/source/add/").content.decode()
    fields = {"collection": collection.pk, "name": "Mine", "interval_minutes": 60, "config.folder": "/etc"}
    page.post(ADD, {**fields, "config.token": "x"})
    change = reverse("admin:retrieval_source_change", args=[source.pk])
    assert page.post(change, fill(source, remote, **{"config.folder": "/etc"})).status_code == 403
    assert str(remote.path) not in page.get(change).content.decode()
    assert Source.objects.get().options["config.folder"] == str(remote.path)


def test_a_superuser_registers_a_manifest(admin_client):
    add = "/admin/retrieval/registeredconnector/add/"
    fields = {"name": "service", "kind": "manifest"}
    custom = f"{MANIFEST}own: {{class_name: x}}\nmore:\n  - class_name: source.Own\n"
    for wrong, said in (
        ("a: [", "This is not YAML"),
        ("a: 1", "no list of streams"),
        ("", "no list of streams"),
        (custom, "needs code of its own"),
    ):
        assert said in admin_client.post(add, {**fields, "manifest": wrong}).content.decode()
    assert "required" in admin_client.post(add, {"name": "p", "kind": "package"}).content.decode()
    admin_client.post(add, {**fields, "manifest": MANIFEST})
    connector = RegisteredConnector.objects.get()
    assert (connector.state, connector.registered_by.username) == ("absent", "admin")
    assert connector.spec["properties"] == {"place": {"type": "string"}}
    assert connector.package_requirement.startswith("airbyte-cdk==")
    assert "connector install service" in admin_client.get("/admin/retrieval/registeredconnector/").content.decode()
    assert ConnectorSource.find_setup_obstacles() != []


@pytest.fixture
def package(tmp_path, settings, monkeypatch):
    settings.DATA_DIR = tmp_path / "data"
    for name, value in make_wheel(tmp_path / "wheels").items():
        monkeypatch.setenv(name, value)
    values = {"kind": "package", "package": "airbyte-source-fake", "version": "1.0"}
    return RegisteredConnector.objects.create(name="made", **values)


def list_states():
    said = StringIO()
    call_command("connector", "list", stdout=said)
    return said.getvalue()


def test_a_package_is_installed_into_an_environment_of_its_own(package, collection, tmp_path):
    said = StringIO()
    assert "absent" in list_states()
    call_command("connector", "install", "made", stdout=said)
    assert "Successfully installed airbyte-source-fake-1.0" in said.getvalue()
    package.refresh_from_db()
    assert (package.state, package.program, package.spec) == ("ready", "source-fake", fake_connector.SPEC)
    assert "ready" in list_states()
    remote = ConnectorRemote(tmp_path / "records")
    remote.put("a", "The pump a weighs 30 kilograms.")
    source = make_source(collection, "connector", {**remote.options, "connector": "made"})
    assert numbers(run_once(source)) == (1, 0, 0, 0, 0)
    shutil.rmtree(tmp_path / "data" / "connectors" / "made")
    assert "not installed on this machine" in list_states()
    assert "connector install made" in run_once(source).error

    RegisteredConnector.objects.filter(pk=package.pk).update(version="2.0")
    with pytest.raises(CommandError, match="airbyte-source-fake==2"):
        call_command("connector", "install", "made", stdout=said)
    package.refresh_from_db()
    assert (package.state, package.is_ready) == ("failed", False)
    assert "No matching distribution" in package.error
    assert [path.name for path in (tmp_path / "data" / "connectors").iterdir() if path.suffix == ".new"] == []


def test_only_environments_of_deleted_connectors_are_removed(package, tmp_path):
    folder = tmp_path / "data" / "connectors"
    for name in ("made", "deleted", ".running"):
        (folder / name / "bin").mkdir(parents=True)
    assert re.findall(r"^(\w+)\t.*deleted", list_states(), re.MULTILINE) == ["deleted"]
    said = StringIO()
    call_command("connector", "clean", stdout=said)
    assert said.getvalue() == "Removed the environment of deleted.\n"
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"made", ".running"}
    assert "deleted" not in list_states()


def test_an_environment_is_kept_whose_connector_is_added_while_it_is_removed(package, tmp_path):
    environment = tmp_path / "data" / "connectors" / "made"
    environment.mkdir(parents=True)
    remove_environment("made")
    assert environment.is_dir()


@pytest.mark.django_db(transaction=True)
def test_a_killed_installation_begins_anew(package, tmp_path):
    data = tmp_path / "data"
    process = SiteProcess(["django", "connector", "install", "made"], tmp_path / "log", DATA_DIR=str(data), **ON)
    building = data / "connectors" / ".made.new"
    wait_until((building / "bin" / "python").exists, 60, f"the environment\n{process.log.read_text()}")
    assert "installing" in list_states()
    with pytest.raises(CommandError, match="Another process is installing made"):
        call_command("connector", "install", "made")
    process.kill()
    package.refresh_from_db()
    assert (package.state, (data / "connectors" / "made").exists()) == ("installing", False)
    assert "broke off" in list_states()
    call_command("connector", "install", "made", stdout=StringIO())
    package.refresh_from_db()
    assert package.is_ready
    assert not building.exists()


ON = {"SOURCE_CONNECTORS": "true"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["reading", "saving"])
def test_a_killed_run_loses_and_doubles_nothing(collection, source, remote, tmp_path, settings, moment):
    if moment == "reading":
        source.options["config.mood"] = "hangs"
        source.set_secret(json.dumps({"config.token": TOKEN}))
        source.save()
    data = Path(settings.DATA_DIR)
    running = data / "connectors" / ".running"

    def is_reading():
        return running.is_dir() and any(running.iterdir())

    with stopped_while_saving():
        process = SiteProcess(["django", "sync", "Shelf", "--json"], tmp_path / "log", DATA_DIR=str(data), **ON)
        reached = is_reading if moment == "reading" else somebody_waits
        wait_until(reached, 60, f"the moment\n{process.log.read_text()}")
        process.kill()
    wait_until(lambda: not somebody_waits(), 10)
    run = SourceRun.objects.get()
    assert (run.status, len(names())) == ("running", 0 if moment == "reading" else SAVED)
    if moment == "reading":
        source.options["config.mood"] = ""
        source.set_secret(json.dumps({"config.token": TOKEN}))
        source.save()
        for folder in running.iterdir():
            os.utime(folder, (0, 0))
    SourceRun.objects.update(heartbeat_at=timezone.now() - SourceRun.SILENT_AFTER - timedelta(seconds=1))
    assert enqueue_forgotten_jobs(SourceRun) == 1
    finished = attempt_source_run(run.pk)
    assert (finished.status, numbers(finished)) == ("done", (6, 0, 0, 0, 0)), finished.error
    assert len(names()) == SourceItem.objects.count() == 6
    assert not is_reading()
    assert numbers(attempt_source_run(request_run(source).pk)) == (0, 0, 6, 0, 0)
