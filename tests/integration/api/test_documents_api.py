import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from retrieval.documents.submission import read_upload
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document
from tests.support.keys import key_of

pytestmark = pytest.mark.django_db

URL = "/api/v1/documents/"
MP3 = b"ID3\x04" + bytes(20)


def file(name, data="# Title\n\nSome text to be found.\n"):
    return SimpleUploadedFile(name, data.encode() if isinstance(data, str) else data)


def upload(client, *files, **fields):
    return client.post(URL, {"file": list(files), "collection": "library", **fields}, format="multipart")


def test_an_upload_is_accepted_and_queued(staff_api, collection, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        response = upload(
            staff_api, file("01.md"), source="guides/01.md", title="Guide", url="https://example.org/guide",
            metadata='{"office": "Ghent"}',
        )  # fmt: skip
    assert response.status_code == 202
    body = response.json()
    assert body["rejected"] == []
    [accepted] = body["accepted"]
    assert accepted["status"] == "pending"
    assert accepted["source"] == "guides/01.md"
    assert accepted["changed"] is True
    document = Document.objects.get(pk=accepted["id"])
    assert (document.title, document.metadata) == ("Guide", {"office": "Ghent"})
    assert document.file.read().startswith(b"# Title")
    assert len(callbacks) == 1


def test_a_rejected_file_does_not_keep_the_others_out(staff_api, collection):
    files = [file("a.md"), file("b.mp3", MP3), file("c.md", b""), file("a.md", "# Other"), file("d.txt", "Words.")]
    response = upload(staff_api, *files)
    assert response.status_code == 202
    body = response.json()
    assert [row["source"] for row in body["accepted"]] == ["a.md", "d.txt"]
    assert [row["file"] for row in body["rejected"]] == ["b.mp3", "c.md", "a.md"]
    for row in body["rejected"]:
        assert row["file"] in row["error"]
    assert Document.objects.count() == 2


def test_a_file_too_large_is_rejected_before_it_is_read(staff_api, collection, settings):
    class Unread(SimpleUploadedFile):
        def read(self, *args):
            raise AssertionError("The file was brought into memory.")

    settings.DOCUMENT_MAX_BYTES = 2**20
    with pytest.raises(DocumentRejected):
        read_upload(Unread("big.txt", b"x" * (2**20 + 1)), "big.txt")
    response = upload(staff_api, file("big.txt", b"x" * (2**20 + 1)))
    assert response.status_code == 400
    assert "1 MiB" in response.json()["rejected"][0]["error"]


def test_the_same_file_again_is_not_read_again(staff_api, collection, ingest):
    text = "# Title\n\nSome text to be found.\n"
    document = ingest(collection, "guide.md", text)
    assert document.status == Document.Status.READY
    [accepted] = upload(staff_api, file("guide.md", text)).json()["accepted"]
    assert accepted["changed"] is False
    assert accepted["status"] == "ready"
    [accepted] = upload(staff_api, file("guide.md", text + "More.")).json()["accepted"]
    assert accepted["changed"] is True
    assert accepted["id"] == document.pk


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"collection": ""}, "collection"),
        ({"collection": "nowhere"}, "collection"),
        ({"collection": "a\x00"}, "collection"),
        ({"title": "x" * 501}, "title"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"language": "<script>"}, "language"),
        ({"metadata": "["}, "metadata"),
        ({"metadata": "[1]"}, "metadata"),
        ({"metadata": '{"k": "\\u0000"}'}, "metadata"),
        ({"metadata": "[" * 100_000}, "metadata"),
        ({"source": "x" * 1001}, "source"),
    ],
)
def test_bad_fields_are_refused_by_name(staff_api, collection, fields, name):
    response = upload(staff_api, file("a.md"), **fields)
    assert response.status_code == 400, response.content
    assert list(response.json()) == [name]
    assert not Document.objects.exists()


def test_an_odd_charset_is_no_error_of_the_server(staff_api, collection):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="collection"\r\n\r\nlibrary\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# Words\r\n--x--\r\n'
    )
    response = staff_api.post(URL, body, content_type="multipart/form-data; charset=hex; boundary=x")
    assert response.status_code == 202


def test_no_file_broken_multipart_too_many_files_and_other_types(staff_api, collection):
    assert list(upload(staff_api).json()) == ["file"]
    assert list(upload(staff_api, file("a.md"), file("b.md"), title="Of one file").json()) == ["title"]
    assert staff_api.post(URL, {"file": "text", "collection": "library"}, format="multipart").status_code == 400
    assert staff_api.post(URL, {"collection": "library"}, format="json").status_code == 415
    broken = staff_api.post(URL, b"--x\r\nrubbish", content_type="multipart/form-data; boundary=x")
    assert broken.status_code == 400
    assert staff_api.post(URL, b"", content_type="multipart/form-data").status_code == 400
    assert upload(staff_api, *[file(f"{number}.md") for number in range(101)]).status_code == 400
    assert not Document.objects.exists()


def test_documents_are_listed_by_collection_and_status(staff_api, collection, ingest):
    ready = ingest(collection, "ready.md", "# Ready\n\nWords.")
    failed = ingest(collection, "failed.txt", " \n ")
    assert failed.status == Document.Status.FAILED
    assert staff_api.get(URL).json()["count"] == 2
    listed = staff_api.get(URL, {"status": "failed"}).json()["results"]
    assert [row["id"] for row in listed] == [failed.pk]
    assert "failed.txt" in listed[0]["error"]
    assert staff_api.get(URL, {"collection": "other"}).json()["count"] == 0
    assert [row["id"] for row in staff_api.get(URL, {"source": "ready.md"}).json()["results"]] == [ready.pk]
    page = staff_api.get(URL, {"limit": 1, "offset": 1}).json()
    assert [row["id"] for row in page["results"]] == [failed.pk]
    assert page["previous"]
    wrong = staff_api.get(URL, {"status": "lost"})
    assert wrong.status_code == 400
    assert list(wrong.json()) == ["status"]


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=x", "offset=99999999999999999999", "collection=%00", "source=%ff"]
)
def test_odd_pages_are_no_errors_of_the_server(staff_api, collection, query):
    assert staff_api.get(f"{URL}?{query}").status_code in (200, 400)


def test_one_document(staff_api, collection, ingest):
    document = ingest(collection, "ready.md", "# Ready\n\nWords.")
    body = staff_api.get(f"{URL}{document.pk}/").json()
    assert body["title"] == "Ready"
    assert body["chunk_count"] == 1
    assert body["collection"] == "library"
    assert staff_api.get(f"{URL}{10**30}/").status_code == 404


def test_tokens_work_and_a_session_needs_a_csrf_token(collection, staff):
    assert upload(APIClient(HTTP_AUTHORIZATION=f"Token {key_of(staff)}"), file("a.md")).status_code == 202
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(staff)
    assert upload(browser, file("b.md")).status_code == 403
    assert json.loads(browser.get(URL).content)["count"] == 1


def test_credentials_with_nul_are_refused(api, collection):
    response = api.get(URL, HTTP_AUTHORIZATION="Basic YQBiOmM=")  # a, NUL, b
    assert response.status_code in (400, 401, 403)
