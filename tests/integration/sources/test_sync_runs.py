"""Runs of sources when something goes wrong, and the actions that a run never takes."""

import json
import os
import socket
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from retrieval.documents.drafts import lifecycle
from retrieval.documents.submission import submit
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, Source, SourceItem, SourceRun
from retrieval.sources import comparing, sync_runs
from retrieval.sources.kinds import KINDS
from retrieval.sources.kinds.local_files import FolderConnector
from retrieval.sources.network import resolve_host
from retrieval.sources.options import read_all_options
from retrieval.sources.protocol import AddressRefused, SourceUnavailable, SourceUnreadable
from retrieval.sources.states import SourceState, find_source_status
from retrieval.sources.sync_runs import attempt_source_run
from tests.support.sources import FolderRemote, WebServer, WebsiteRemote, make_source, names, numbers, run_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf(tmp_path):
    remote = FolderRemote(tmp_path / "shelf")
    for name in "abcdefghij":
        remote.put(name, f"The pump {name} weighs 30 kilograms.")
    return remote


@pytest.fixture
def source(shelf, collection):
    return make_source(collection, "folder", shelf.options)


@pytest.fixture
def site():
    remote = WebsiteRemote()
    yield remote
    remote.close()


def test_much_is_not_removed_before_somebody_agrees(shelf, source):
    run_once(source)
    for name in "abc":
        shelf.delete(name)
    run = run_once(source)
    assert (run.status, run.removed, run.kept_back, len(names())) == ("done", 0, 3, 10)
    assert run.details["held"] == ["Shelf/a.md", "Shelf/b.md", "Shelf/c.md"]
    assert find_source_status(source).state == SourceState.HELD

    # One came back, and others went without anyone's consent.
    shelf.put("a", "The pump a was found again.")
    for name in "def":
        shelf.delete(name)
    run = run_once(source, may_remove=True)
    assert (run.removed, run.kept_back) == (2, 3)
    assert len(names()) == 8
    run = run_once(source, may_remove=True)
    assert (run.removed, run.kept_back) == (3, 0)
    assert find_source_status(source).state == SourceState.IN_SYNC


def test_an_empty_folder_removes_nothing(shelf, source):
    run_once(source)
    for name in "abcdefghij":
        shelf.delete(name)
    assert run_once(source).kept_back == len(names()) == 10


def test_a_listing_that_breaks_off_removes_nothing(shelf, source, monkeypatch):
    run_once(source)
    listing = FolderConnector.list_items

    def broken(self):
        for number, item in enumerate(listing(self)):
            if number == 9:
                raise SourceUnavailable("The share went away.")
            yield item

    monkeypatch.setattr(FolderConnector, "list_items", broken)
    run = run_once(source)
    assert (run.status, run.error, run.removed) == ("waiting", "The share went away.", 0)
    assert len(names()) == 10


def test_a_long_run_is_handed_back_and_goes_on(source, monkeypatch):
    monkeypatch.setattr(comparing, "WORKING_SECONDS", -1.0)
    run = run_once(source)
    assert (run.status, run.added, run.attempts) == ("waiting", 1, 0)
    assert numbers(sync_runs.finish_run_in_process(run)) == (10, 0, 0, 0, 0)


def test_a_lost_lease_writes_nothing(source, monkeypatch):
    run = sync_runs.request_run(source)
    fetch = FolderConnector.fetch

    def paused_meanwhile(self, item, validators):
        sync_runs.pause_source(source)
        return fetch(self, item, validators)

    monkeypatch.setattr(FolderConnector, "fetch", paused_meanwhile)
    assert attempt_source_run(run.pk) is None
    run.refresh_from_db()
    assert (run.status, names()) == ("stopped", [])
    assert sync_runs.request_due_runs() == 0
    sync_runs.resume_source(source)
    assert sync_runs.request_due_runs() == 1
    assert sync_runs.request_due_runs() == 0


def test_one_bad_file_does_not_stop_the_others(shelf, source):
    (shelf.path / "broken.pdf").write_bytes(b"No PDF at all.")
    (shelf.path / "empty.md").write_bytes(b"")
    run = run_once(source)
    assert (run.status, numbers(run)) == ("done", (10, 0, 0, 0, 2))
    assert [name for name, _why in run.details["failures"]] == ["broken.pdf", "empty.md"]
    assert "is not a PDF" in run.details["failures"][0][1]
    assert find_source_status(source).state == SourceState.INCOMPLETE
    run = run_once(source)
    assert (numbers(run), len(run.details["failures"])) == ((0, 0, 10, 0, 2), 2)
    # The log has one entry for each event, not for each minute without one.
    last = run_once(source)
    assert [each.pk for each in source.runs.all()] == [last.pk, run.pk - 1]


def test_what_was_deleted_here_comes_back_and_what_was_uploaded_stays(shelf, source, collection):
    submit(collection, "Shelf/a.md", b"Uploaded by hand.")
    run = run_once(source)
    assert numbers(run) == (9, 0, 0, 0, 1)
    assert "was uploaded" in run.details["failures"][0][1]
    with pytest.raises(DocumentRejected, match="comes from the source Shelf"):
        submit(collection, "Shelf/b.md", b"Written over.")
    Document.objects.filter(source__in=["Shelf/a.md", "Shelf/b.md"]).delete()
    assert numbers(run_once(source)) == (2, 0, 8, 0, 0)


def test_a_collection_with_a_draft_is_left_alone(source, collection):
    run_once(source)
    Document.objects.update(status=Document.Status.READY)
    draft = lifecycle.begin_draft(collection)
    run = run_once(source)
    assert run.status == "failed"
    assert "wait until the draft is published or discarded" in run.error
    lifecycle.resume_draft(draft.pk)
    draft.refresh_from_db()
    lifecycle.discard_draft(draft)
    assert run_once(source).status == "done"


def test_a_source_that_keeps_documents_removes_none_and_counts_them(shelf, source, admin_client):
    run_once(source)
    for name in "abc":
        shelf.delete(name)
    held = run_once(source)
    assert (held.kept_back, held.kept, len(names())) == (3, 0, 10)

    source.keeps_missing = True
    source.save()
    preview = run_once(source, is_preview=True)
    assert (preview.kept, preview.kept_back, preview.removed) == (3, 0, 0)
    # Consent that was given before the switch does not count.
    for run in (run_once(source, may_remove=True), run_once(source)):
        assert (run.status, run.kept, run.kept_back, run.removed, len(names())) == ("done", 3, 0, 0, 10)
        assert run.details["kept"] == ["Shelf/a.md", "Shelf/b.md", "Shelf/c.md"]
    assert find_source_status(source).state == SourceState.IN_SYNC
    page = admin_client.get(reverse("admin:retrieval_source_change", args=[source.pk])).content.decode()
    assert "3 documents are no longer in the source. They are kept" in page
    assert "Kept, although no longer in the source: 3" in page
    assert "Remove them" not in page

    # What comes back is the same document.
    shelf.put("a", "The pump a weighs 32 kilograms.")
    run = run_once(source)
    assert (numbers(run), run.kept) == ((0, 1, 7, 0, 0), 2)
    for name in "defghij":
        shelf.delete(name)
    run = run_once(source)
    assert (run.kept, len(names())) == (9, 10)

    # Without the switch, the brake is back.
    source.keeps_missing = False
    source.save()
    run = run_once(source)
    assert (run.kept, run.kept_back, run.removed, len(names())) == (0, 9, 0, 10)


@pytest.mark.parametrize("with_documents", [False, True])
def test_a_deleted_source_keeps_or_removes_its_documents(source, with_documents):
    run_once(source)
    assert sync_runs.delete_source(source, with_documents=with_documents) == (10 if with_documents else 0)
    assert Document.objects.filter(origin=None).count() == (0 if with_documents else 10)
    assert not SourceItem.objects.exists()


def test_folders_outside_and_links_that_lead_there_are_not_read(shelf, source, tmp_path, settings):
    secret = tmp_path / "secret.md"
    secret.write_text("The key.")
    (shelf.path / "link.md").symlink_to(secret)
    (shelf.path / "up").symlink_to(tmp_path)
    os.symlink(shelf.path / "a.md", shelf.path / "same.md")
    assert run_once(source).added == 11
    assert "Shelf/link.md" not in names()
    settings.SOURCE_FOLDERS = [tmp_path / "other"]
    run = run_once(source)
    assert (run.status, len(names())) == ("failed", 11)
    assert "SOURCE_FOLDERS" in run.error


def test_a_website_is_read_as_it_asks(site, collection):
    for name in ("pump", "valve", "hidden/plan", "draft", "twin", "moved", "report.txt", "gone"):
        site.put(name, f"About the {name}.")
    site.pages["/robots.txt"] = "User-agent: *\nDisallow: /hidden/*plan\n"
    site.pages["/draft"] = '<html><meta name="robots" content="noindex"><a href="/deep">deep</a></html>'
    site.pages["/deep"] = '<html><p>Deep.</p><a rel="nofollow" href="/unseen">x</a><a href="/pump#top">y</a></html>'
    site.pages["/unseen"] = "<html>Unseen</html>"
    site.pages["/twin"] = (
        '<html><title>pump</title><link rel="canonical" href="/pump?utm_source=x"><p>About the pump.</p></html>'
    )
    site.headers["/moved"] = {"Status": "301", "Location": "/valve"}
    site.headers["/report.txt"] = {"Content-Type": "text/plain"}
    site.failing["/gone"] = 410
    run = run_once(make_source(collection, "website", {**site.options, "exclude": "index\nx*"}, name="Site"))
    assert names() == ["Site/deep.html", "Site/pump.html", "Site/report.txt", "Site/valve.html"], run.details
    assert "/hidden/plan" not in site.requests
    assert Document.objects.get(source="Site/pump.html").url == f"{site.url}/pump"


def test_a_page_that_fails_takes_nothing_along(site, collection):
    site.put("pump", "About pumps.")
    site.pages["/pump"] = '<html><p>Pumps.</p><a href="/inner">more</a></html>'
    site.pages["/inner"] = "<html><p>Inner.</p></html>"
    source = make_source(collection, "website", site.options)
    assert run_once(source).added == 2
    site.failing["/pump"] = 500
    run = run_once(source)
    assert (numbers(run), len(names())) == ((0, 0, 1, 0, 1), 2)
    site.failing["/"] = 404
    run = run_once(source)
    assert (run.status, len(names())) == ("failed", 2)
    site.failing["/"] = 503
    assert (run_once(source).status, len(names())) == ("waiting", 2)


def test_a_sitemap_is_read(site, collection):
    site.put("pump", "About pumps.")
    site.put("valve", "About valves.")
    site.pages["/robots.txt"] = f"Sitemap: {site.url}/maps.xml\n"
    site.pages["/maps.xml"] = f"<sitemapindex><sitemap><loc>{site.url}/map.xml</loc></sitemap></sitemapindex>"
    entries = "".join(f"<url><loc>{address}</loc></url>" for address in (f"{site.url}/pump", "http://elsewhere.test/x"))
    site.pages["/map.xml"] = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    source = make_source(collection, "website", {**site.options, "way": "sitemap"})
    assert (numbers(run_once(source)), names()) == ((1, 0, 0, 0, 0), ["Shelf/pump.html"])


@pytest.mark.parametrize(
    ("address", "allowed", "is_refused"),
    [
        ("127.0.0.1", [], True),
        ("10.1.2.3", [], True),
        ("169.254.169.254", [], True),
        ("::ffff:127.0.0.1", [], True),
        ("64:ff9b::7f00:1", [], True),
        ("64:ff9b::8.8.8.8", [], False),
        ("64:ff9b:1::10.0.0.1", [], True),
        ("64:ff9b:1:a00:0:100:808:808", [], True),
        ("::10.0.0.1", [], True),
        ("::7f00:1", [], True),
        ("::8.8.8.8", [], False),
        ("::ffff:0:10.0.0.1", [], True),
        ("::ffff:0:169.254.169.254", [], True),
        ("2002:a00:1::", [], True),
        ("::", [], True),
        ("fec0::1", [], True),
        ("fec0::1", ["fec0::/10"], False),
        ("2606:4700::1111", [], False),
        ("2002:7f00:1::", [], True),
        ("100.64.0.1", [], True),
        ("0.0.0.0", [], True),
        ("224.0.0.1", [], True),
        ("10.1.2.3", ["10.1.0.0/16"], False),
        ("10.2.2.3", ["10.1.0.0/16"], True),
        ("127.0.0.1", ["wiki.test"], False),
        ("93.184.215.14", [], False),
    ],
)
def test_machines_inside_are_asked_only_where_a_setting_says_so(address, allowed, is_refused, settings, monkeypatch):
    settings.SOURCE_PRIVATE_HOSTS = allowed
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_arguments, **_options: [(0, 0, 0, "", (address, 80))])
    if is_refused:
        with pytest.raises(AddressRefused, match="own network"):
            resolve_host("wiki.test", 80)
    else:
        assert resolve_host("wiki.test", 80) == [address]


def test_a_redirect_into_the_own_network_is_refused(site, collection, settings, monkeypatch):
    """The start page is allowed by its name; the machine of its target is not."""
    inside, lookup = WebServer(), socket.getaddrinfo
    inside.pages["/"] = "<html>Inside</html>"
    port = site.url.rpartition(":")[2]

    def look_up(host, *arguments, **options):
        return lookup("127.0.0.1" if host == "shop.test" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    settings.SOURCE_PRIVATE_HOSTS = ["shop.test"]
    site.headers["/"] = {"Status": "302", "Location": f"{inside.url}/"}
    source = make_source(collection, "website", {**site.options, "url": f"http://shop.test:{port}/", "exclude": ""})
    run = run_once(source)
    inside.close()
    assert inside.requests == []
    assert (run.failed, names()) == (1, [])
    assert "own network" in run.details["failures"][0][1]


def test_the_schedule_begins_what_is_due(source):
    assert sync_runs.request_due_runs() == 1
    source.refresh_from_db()
    assert timedelta(minutes=59) < source.next_run_at - timezone.now() <= timedelta(minutes=60)
    assert sync_runs.request_due_runs() == 0
    with pytest.raises(sync_runs.SourceRunRefused):
        sync_runs.request_run(source)
    [run] = source.runs.all()
    attempt_source_run(run.pk)
    Source.objects.filter(pk=source.pk).update(next_run_at=timezone.now())
    assert sync_runs.request_due_runs() == 1


def test_only_so_many_runs_are_under_way_at_once(source, collection, shelf):
    other = sync_runs.request_run(make_source(collection, "folder", shelf.options, name="Other"))
    SourceRun.objects.filter(pk=other.pk).update(status="running", heartbeat_at=timezone.now())
    run = sync_runs.request_run(source)
    assert attempt_source_run(run.pk, takes_turns=True) is None
    run.refresh_from_db()
    assert (run.status, run.attempts, run.retry_at is not None) == ("waiting", 0, True)


def test_the_command_tells_what_it_did(source, shelf, capsys):
    def call(*arguments):
        out = StringIO()
        call_command("sync", *arguments, "--json", stdout=out)
        return json.loads(out.getvalue())

    [result] = call("Shelf", "--dry-run")
    assert (result["status"], result["added"], names()) == ("done", 10, [])
    [result] = call(str(source.pk))
    assert (result["added"], result["details"]["added"][0]) == (10, "a.md")
    shelf.go_away()
    with pytest.raises(SystemExit):
        call()


def test_options_are_checked_and_secrets_are_not_stored_in_plain(collection, settings):
    assert KINDS["folder"].form(data={"path": "/etc"}).errors.keys() == {"path"}
    for address in ("http://me:secret@example.org", "ftp://example.org/"):
        assert "url" in KINDS["website"].form(data={"url": address}).errors
    options = {"url": "https://example.org/", "way": "crawl", "depth": 1, "delay": 1, "password": "t0p-secret"}
    source = make_source(collection, "website", options)
    assert "t0p-secret" not in f"{source.secret} {source.options}"
    assert read_all_options(source)["password"] == "t0p-secret"
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert read_all_options(source)["password"] == "t0p-secret"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(SourceUnreadable, match="type it again"):
        read_all_options(source)
