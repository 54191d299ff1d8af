"""Files of an archive or a mail: documents of their own, as their parent's file has them."""

import io
import zipfile

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.urls import reverse

from core.exceptions import LeaseLost
from retrieval.documents import ingestion
from retrieval.documents.drafts.copying import copy_documents
from retrieval.documents.submission import submit
from retrieval.models import Chunk, Collection, Document, Table
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = "name,weight_g\nSeal,12\nShaft,900\n"


def packed(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


def read_all(collection):
    """Read all waiting documents; return the documents by source with their status."""
    waiting = Document.objects.filter(collection=collection, status=Document.Status.PENDING)
    while (document := waiting.first()) is not None:
        ingestion.ingest_document(document.pk)
    return dict(Document.objects.filter(collection=collection).values_list("source", "status"))


def test_members_follow_their_archive(collection, ingest, client, admin_client):
    files = {f"p{n}__exe": b"MZ\x90\x00" for n in range(12)}
    archive = ingest(collection, "pack.zip", packed(notes__txt="The pump hums.\n", parts__csv=PARTS, **files))
    assert archive.status == Document.Status.READY
    assert read_all(collection) == dict.fromkeys(("pack.zip", "pack.zip/notes.txt", "pack.zip/parts.csv"), "ready")
    notes, parts = Document.objects.filter(parent=archive).order_by("source")
    assert Table.objects.get(document=parts).row_count == 2
    page = client.get(reverse("retrieval:document", args=[archive.pk])).content.decode()
    assert reverse("retrieval:document", args=[parts.pk]) in page
    assert (
        reverse("retrieval:document", args=[archive.pk])
        in client.get(reverse("retrieval:document", args=[notes.pk])).content.decode()
    )

    named = ", ".join(f"p{number}.exe" for number in range(10))
    told = f"12 unreadable files ({named} and 2 more)"
    assert told in page
    assert told in admin_client.get(f"/admin/retrieval/document/{archive.pk}/change/").content.decode()
    shown = admin_client.get("/api/v1/documents/").json()["results"]
    assert [(each["parent"], told in each["notice"]) for each in shown] == [
        (None, True), (archive.pk, False), (archive.pk, False)
    ]  # fmt: skip

    # In the new version one file is the same, one has changed, one is new; reading it again changes no document.
    newer = packed(notes__txt="The pump hums.\n", parts__csv=PARTS + "Bolt,3\n", more__md="# More\n\nWords.\n")
    ingest(collection, "pack.zip", newer)
    assert Document.objects.get(pk=notes.pk).status == "ready"
    assert set(read_all(collection).values()) == {"ready"}
    assert Table.objects.get(document=parts).row_count == 3
    before = list(Document.objects.order_by("pk").values_list("pk", "content_hash"))
    archive.refresh_from_db()
    Document.objects.filter(pk=archive.pk).update(status="pending", attempts=0, retry_at=None)
    ingestion.ingest_document(archive.pk)
    assert list(Document.objects.order_by("pk").values_list("pk", "content_hash")) == before

    # One is gone from the file; then the file is gone.
    ingest(collection, "pack.zip", packed(more__md="# More\n\nWords.\n"))
    assert set(read_all(collection)) == {"pack.zip", "pack.zip/more.md"}
    archive.delete()
    assert not Document.objects.filter(collection=collection).exists()
    assert not Chunk.objects.filter(collection=collection).exists()


def test_an_interrupted_reading_submits_what_is_missing(collection, ingest, monkeypatch):
    submitted = []

    def lose_the_lease(held, source, *rest, **more):
        if submitted:
            raise LeaseLost("interrupted")
        submitted.extend([source] if "/" in source else [])
        return submit(held, source, *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr("retrieval.documents.members.submit", lose_the_lease)
        archive = ingest(collection, "pack.zip", packed(a__txt="Hums.\n", b__txt="Leaks.\n"))
    assert Document.objects.filter(parent=archive).count() == 1
    assert archive.status == Document.Status.PROCESSING
    Document.objects.filter(pk=archive.pk).update(status="pending", lease=None)
    assert set(read_all(collection).values()) == {"ready"}
    assert Document.objects.filter(parent=archive).count() == 2


def test_what_narrows_a_mail_narrows_what_came_in_it(collection, ingest):
    data = packed(a__txt="The secret hums.\n")
    member = Document.objects.get(parent=ingest(collection, "pack.zip", data, metadata={"groups": ["board"]}))
    reader = make_reader("reader")
    assert not Document.objects.readable_by(reader).filter(pk=member.pk).exists()
    submit(collection, "pack.zip", packed(a__txt="The secret hums.\n", b__txt="More.\n"), metadata={})
    assert Document.objects.readable_by(reader).filter(pk=member.pk).exists()
    submit(collection, "pack.zip", data, metadata={"groups": ["board"]})
    assert not Document.objects.readable_by(reader).filter(pk=member.pk).exists()
    reader.groups.add(Group.objects.create(name="board"))
    assert Document.objects.readable_by(reader).filter(pk=member.pk).exists()


def test_archives_in_archives_are_bounded(collection, ingest):
    data = packed(a__txt="Hums.\n")
    for _ in range(3):
        data = packed(inner__zip=data)
    ingest(collection, "pack.zip", data)
    assert read_all(collection)["pack.zip/inner.zip"] == "ready"
    deepest = Document.objects.get(source="pack.zip/inner.zip/inner.zip")
    assert (deepest.status, Document.objects.count()) == ("failed", 3)
    assert deepest.error.startswith("pack.zip/inner.zip/inner.zip lies in 3 archives or mails")


def test_a_member_takes_no_other_documents_place(collection, ingest):
    other = ingest(collection, "pack.zip/a.txt", "Mine.\n")
    archive = ingest(collection, "pack.zip", packed(a__txt="Theirs.\n"))
    assert archive.error == "pack.zip holds pack.zip/a.txt, but there is another document of that name."
    archive.delete()
    assert Document.objects.filter(pk=other.pk).exists()


def test_a_copy_of_a_collection_has_its_own_members(collection, ingest):
    archive = ingest(collection, "pack.zip", packed(a__txt="Hums.\n"))
    read_all(collection)
    copy = Collection.objects.create(name="Copy", slug="copy")
    copy_documents(list(Document.objects.filter(collection=collection)), copy)
    held = Document.objects.get(collection=copy, source="pack.zip/a.txt")
    assert held.parent == Document.objects.get(collection=copy, source="pack.zip")
    archive.delete()
    assert Document.objects.filter(pk=held.pk).exists()


@pytest.mark.parametrize("visibility", [None, "signed_in", "granted"])
def test_the_command_says_which_collection_it_made_and_who_may_ask_it(db, tmp_path, visibility):
    path = tmp_path / "note.txt"
    path.write_text("The pump hums.\n")
    chosen = {"visibility": visibility} if visibility else {}
    for is_new in (True, False):
        said = io.StringIO()
        call_command("ingest", str(path), collection="notes", stdout=said, **chosen)
        assert ("Made the collection notes, which may be asked by" in said.getvalue()) is is_new
        assert Collection.objects.get(slug="notes").visibility == (visibility or "public")


def test_the_command_reads_what_came_in_a_file(collection, tmp_path):
    path = f"{tmp_path}/pack.zip"
    with open(path, "wb") as file:
        file.write(packed(a__txt="Hums.\n", inner__zip=packed(b__txt="Leaks.\n")))
    call_command("ingest", path, collection=collection.slug, verbosity=0)
    assert set(Document.objects.values_list("source", "status")) == {
        (source, "ready") for source in ("pack.zip", "pack.zip/a.txt", "pack.zip/inner.zip", "pack.zip/inner.zip/b.txt")
    }
