"""Unusable uploads are refused at once, with a sentence that says who can fix it."""

import json
import re
from contextlib import suppress

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.urls import reverse

from retrieval.models import Collection, Document, Draft, Source
from retrieval.sources.kinds import KINDS

pytestmark = pytest.mark.django_db


FEED = {"content": "page", "url": "https://192.0.2.1/"}
GIT = {"repository": "http://127.0.0.1/", "base_url": "http://127.0.0.1/"}
MAILBOX = {"host": "localhost", "port": 993, "security": "tls", "folder": "INBOX"}


def add_source(admin, collection, kind, options):
    """Return the page that answers; empty when the source was saved."""
    form = {"collection": collection.pk, "name": "Site", "interval_minutes": 60, "metadata": "{}", **options}
    return str(admin.post(f"{reverse('admin:retrieval_source_add')}?kind={kind}", form).content.decode())


@pytest.mark.parametrize(
    ("has_draft", "kind", "options", "said"),
    [
        (True, "feed", FEED, "Its sources wait until the draft is published or discarded"),
        (False, "feed", {**FEED, "url": "http://127.0.0.1/"}, "own network"),
        (False, "git", GIT, "SOURCE_PRIVATE_HOSTS"),
        (False, "mailbox", MAILBOX, "SOURCE_PRIVATE_HOSTS"),
    ],
)
def test_a_source_that_could_not_run_is_not_saved(has_draft, kind, options, said, collection, admin_client):
    if has_draft:
        copy = Collection.objects.create(slug="copy", name="Copy")
        Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    assert add_source(admin_client, collection, kind, options).count(said) == 1
    assert not Source.objects.exists()


def test_the_draft_that_a_source_waits_for_is_linked(collection, admin_client):
    copy = Collection.objects.create(slug="copy", name="Copy")
    draft = Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    page = add_source(admin_client, collection, "feed", FEED)
    assert f'<a href="{reverse("admin:retrieval_draft_change", args=[draft.pk])}">' in page
    assert "instead" not in page


def test_a_kind_that_this_site_does_not_allow_says_so_before_its_form(admin_client, settings, tmp_path):
    settings.SOURCE_FOLDERS, settings.SOURCE_PRIVATE_HOSTS = [], []
    page = admin_client.get(reverse("admin:retrieval_source_add")).content.decode()
    assert page.count("This site may read no folder of its server yet. Ask an administrator") == 1
    with_address = [kind for kind in KINDS.values() if kind.has_address]
    assert page.count("Addresses inside your network need a setting.") == len(with_address)
    assert page.count("This site runs no connectors of others. Ask an administrator") == 1
    assert "<code>SOURCE_CONNECTORS</code>" in page
    assert "<code>SOURCE_FOLDERS</code>" in page
    assert "<code>SOURCE_PRIVATE_HOSTS</code>" in page
    settings.SOURCE_FOLDERS, settings.SOURCE_PRIVATE_HOSTS = [tmp_path], ["127.0.0.1"]
    settings.SOURCE_CONNECTORS = True
    assert "an administrator" not in admin_client.get(reverse("admin:retrieval_source_add")).content.decode()


def test_the_field_of_an_address_is_as_wide_as_an_address(admin_client):
    page = admin_client.get(f"{reverse('admin:retrieval_source_add')}?kind=feed").content.decode()
    assert re.search(r'<input type="url" name="url"[^>]* class="vURLField"', page)


def test_the_address_that_readers_open_may_be_inside_the_sites_own_network(collection, admin_client):
    assert add_source(admin_client, collection, "git", {**GIT, "repository": "https://nowhere.invalid/"}) == ""
    assert Source.objects.get().options["base_url"] == "http://127.0.0.1/"


def test_a_table_of_too_many_rows_is_refused_at_once(collection, admin_client, settings):
    settings.DOCUMENT_MAX_PASSAGES = 100
    fits = b"name,note\n" + b'"a ""quoted""","two\nlines"\n' * 99
    for number, (rows, is_refused) in enumerate([(fits, False), (b"a,b\n" * 101, True)]):
        file = SimpleUploadedFile(f"list{number}.csv", rows)
        response = admin_client.post(
            reverse("admin:retrieval_document_add"), {"collection": collection.pk, "file": file}, follow=True
        )
        assert ("is the most: split it into smaller files." in response.content.decode()) == is_refused
    assert Document.objects.count() == 1


def test_a_folder_skips_the_pictures_that_a_page_beside_them_shows(tmp_path, collection, capsys):
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide/index.rst").write_text("Leave\n=====\n\n.. image:: flow.png\n\nThere are 25 days of leave.\n")
    for name in ("guide/flow.png", "guide/scan.png", "flow.png"):
        (tmp_path / name).write_bytes(b"\x89PNG\r\n\x1a\n" + b"x" * 9000)
    with suppress(CommandError, SystemExit):
        call_command("ingest", str(tmp_path), "--collection", collection.slug, "--json", "--at-once", "1")
    # What no page shows may be a scan.
    assert "Skipped 1, which are no documents: guide/flow.png" in capsys.readouterr().err
    assert not Document.objects.filter(source="guide/flow.png").exists()


def test_a_folder_skips_what_is_no_document(tmp_path, collection, capsys):
    (tmp_path / "assets").mkdir()
    (tmp_path / "leave.md").write_text("# Leave\n\nThere are 25 days of leave.")
    (tmp_path / "check.js").write_text("// There is a check.")
    names = ("assets/site.css", "assets/company-logo.png", "assets/screen.png", "dot.gif", "assets/a.woff2", "c.mng")
    for name in names:
        (tmp_path / name).write_bytes(b"x" * (9000 if ".png" in name else 10))
    call_command("ingest", str(tmp_path), "--collection", collection.slug, "--json", "--at-once", "1")
    out = capsys.readouterr()
    counts = json.loads(out.out)
    assert (counts["added"], counts["failed"], counts["skipped"]) == (2, 0, len(names))
    assert "Skipped 6, which are no documents" in out.err
    assert set(Document.objects.values_list("source", flat=True)) == {"leave.md", "check.js"}
