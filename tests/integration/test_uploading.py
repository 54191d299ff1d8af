"""Files sent by the script of the upload form: an answer for each, and rights as for the form."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from retrieval.models import Collection, Document

pytestmark = pytest.mark.django_db
ADD = "/admin/retrieval/document/add/"


def send(client, collection, **body):
    return client.post(ADD, {"collection": collection.pk, **body}, headers={"Accept": "application/json"})


def test_each_file_is_answered_and_a_duplicate_is_named(admin_client, collection):
    first = send(admin_client, collection, file=SimpleUploadedFile("a.md", b"# Pumps\n\nWords."), source="folder/a.md")
    (row,) = first.json()["files"]
    assert row["added"]
    assert "data-unsettled" in row["badge"]
    same = send(admin_client, collection, file=SimpleUploadedFile("b.md", b"# Pumps\n\nWords."))
    assert same.json()["files"][0] == {
        "added": False,
        "sentence": "Not added: b.md is the same file as folder/a.md, which is there already.",
        "badge": "",
    }
    refused = send(admin_client, collection, file=SimpleUploadedFile("c.ps", b"%!PS-Adobe"))
    assert "c.ps is a PostScript file" in refused.json()["files"][0]["sentence"]
    nothing = send(admin_client, collection)
    assert (nothing.status_code, nothing.json()["sentence"]) == (400, "Choose a file, or write a text.")
    pasted = send(admin_client, collection, text="# Valves\n\nMore words.", text_name="Valves")
    assert pasted.json()["files"][0]["added"]
    assert set(Document.objects.values_list("source", flat=True)) == {"folder/a.md", "Valves.md"}


def test_the_form_is_for_those_who_may_add_documents(client, admin_client, collection):
    for address in (reverse("chat:home"), reverse("admin:retrieval_collection_change", args=[collection.pk])):
        assert b"data-uploading" in admin_client.get(address).content
    assert b"data-uploading" not in client.get(reverse("chat:home")).content
    other = Collection.objects.create(name="Other", slug="other")
    assert send(client, other, text="Words.").status_code == 302
    assert not Document.objects.exists()
