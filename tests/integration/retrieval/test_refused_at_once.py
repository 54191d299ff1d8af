"""What cannot work is refused when it is handed in, with a sentence that says whose hands it is in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from retrieval.models import Collection, Document, Draft, Source

pytestmark = pytest.mark.django_db


def source_form(collection: Collection, url: str) -> dict[str, Any]:
    return {"collection": collection.pk, "name": "Site", "interval_minutes": 60, "metadata": "{}", "url": url}


@pytest.mark.parametrize(
    ("has_draft", "url", "said"),
    [
        (True, "https://192.0.2.1/", "changed in its draft"),
        (False, "http://127.0.0.1/", "own network"),
        (False, "http://localhost:8000/", "SOURCE_PRIVATE_HOSTS"),
    ],
)
def test_a_source_that_could_not_run_is_not_saved(
    has_draft: bool, url: str, said: str, collection: Collection, admin_client: Client
) -> None:
    if has_draft:
        copy = Collection.objects.create(slug="copy", name="Copy")
        Draft.objects.create(collection=collection, working_copy=copy, status=Draft.Status.OPEN)
    form = reverse("admin:retrieval_source_add") + "?kind=feed"
    response = admin_client.post(form, source_form(collection, url))
    assert response.status_code == 200
    assert said in response.content.decode()
    assert not Source.objects.exists()


def test_a_table_of_too_many_rows_is_refused_at_once(
    collection: Collection, admin_client: Client, settings: LazySettings
) -> None:
    settings.DOCUMENT_MAX_PASSAGES = 100
    fits = b"name,note\n" + b'"a ""quoted""","two\nlines"\n' * 99
    for number, (rows, is_refused) in enumerate([(fits, False), (b"a,b\n" * 101, True)]):
        file = SimpleUploadedFile(f"list{number}.csv", rows)
        response = admin_client.post(
            reverse("admin:retrieval_document_add"), {"collection": collection.pk, "file": file}, follow=True
        )
        assert ("is the most: split it into smaller files." in response.content.decode()) == is_refused
    assert Document.objects.count() == 1


def test_a_folder_skips_what_is_no_document(
    tmp_path: Path, collection: Collection, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "leave.md").write_text("# Leave\n\nThere are 25 days of leave.")
    (tmp_path / "check.js").write_text("// There is a check.")
    names = ("assets/site.css", "assets/company-logo.png", "assets/screen.png", "dot.gif", "assets/a.woff2")
    for name in names:
        (tmp_path / name).write_bytes(b"x" * (9000 if ".png" in name else 10))
    call_command("ingest", str(tmp_path), "--collection", collection.slug, "--json", "--at-once", "1")
    out = capsys.readouterr()
    counts = json.loads(out.out)
    assert (counts["added"], counts["failed"], counts["skipped"]) == (2, 0, len(names))
    assert "Skipped 5, which are no documents" in out.err
    assert set(Document.objects.values_list("source", flat=True)) == {"leave.md", "check.js"}
