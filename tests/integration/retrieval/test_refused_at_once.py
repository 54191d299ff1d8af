"""Unusable uploads are refused at once, with a sentence that says who can fix it."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from retrieval.models import Collection, Document, Draft, Source

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
        (True, "feed", FEED, "changed in its draft"),
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
