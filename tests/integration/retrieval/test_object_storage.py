"""The documents' files in a bucket, on moto's server, which checks every signature."""

import os

import pytest
from django.core.files.storage import storages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import override_settings
from rest_framework.test import APIClient

from core.readiness import Health
from ragsite.operations.backups import make_backup
from retrieval import readiness
from retrieval.documents import ingestion, submission
from retrieval.documents.reconciliation import ProblemKind, find_orphaned_files
from retrieval.documents.reconciliation import find_inconsistencies as check_indexes
from retrieval.models import Document
from tests.support.people import make_superuser
from tests.support.source_servers import S3Remote

pytestmark = pytest.mark.django_db(transaction=True)
TEXT = "# Pump\n\nThe pump weighs 3450 grams.\n"


@pytest.fixture
def server():
    remote = S3Remote()
    yield remote
    remote.close()


@pytest.fixture
def bucket(server):
    options = {
        "bucket_name": "shelf",
        "endpoint_url": server.options["endpoint"],
        "region_name": "us-east-1",
        "access_key": server.options["access_key"],
        "secret_key": server.options["secret_key"],
        "location": "site",
    }
    backend = {"BACKEND": "retrieval.documents.object_storage.ObjectStorage", "OPTIONS": options}
    with override_settings(STORAGES={**storages.backends, "default": backend}):
        yield server


def keys(server):
    return [each["Key"] for each in server._s3.list_objects_v2(Bucket="shelf").get("Contents", [])]


def test_a_document_lives_in_the_bucket(bucket, collection, ingest, client):
    document = ingest(collection, "pump.md", TEXT)
    assert document.status == Document.Status.READY
    assert keys(bucket) == [f"site/{document.file.name}"]
    assert b"".join(client.get(f"/documents/{document.pk}/original/").streaming_content) == TEXT.encode()

    ingest(collection, "pump.md", TEXT + "It is red.\n")
    document.refresh_from_db()
    assert keys(bucket) == [f"site/{document.file.name}"]
    assert readiness.check_files().state is Health.OK

    bucket._s3.put_object(Bucket="shelf", Key="site/documents/left.md", Body=b"")
    bucket._s3.delete_object(Bucket="shelf", Key=f"site/{document.file.name}")
    assert [(each.kind, each.examples) for each in check_indexes()] == [
        (ProblemKind.MISSING_FILES, (str(document.pk),))
    ]
    # Another site may use the bucket.
    assert find_orphaned_files() == []

    document.delete()
    assert keys(bucket) == ["site/documents/left.md"]


def test_a_server_that_is_away_is_told_and_nothing_is_left(bucket, collection, ingest, client):
    kept = ingest(collection, "kept.md", TEXT)
    staff = make_superuser("editor", password="a long password")
    api = APIClient(raise_request_exception=False)
    api.force_authenticate(staff)
    waiting = submission.submit(collection, "waiting.md", TEXT.encode(), enqueue=False).document
    bucket.close()
    for _ in range(6):
        Document.objects.filter(pk=waiting.pk).update(retry_at=None)
        ingestion.ingest_document(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.status == Document.Status.PENDING
    assert "does not answer" in waiting.error
    answered = api.post(
        "/api/v1/documents/", {"collection": "library", "file": SimpleUploadedFile("new.md", TEXT.encode())}
    )
    assert answered.status_code == 503, answered.content
    assert "storage of the files does not answer" in answered.json()["detail"]
    assert not Document.objects.filter(source="new.md").exists()
    page = client.get(f"/documents/{kept.pk}/original/")
    assert page.status_code == 503
    assert "The files cannot be reached" in page.content.decode()
    assert readiness.check_files().state is Health.DEGRADED
    # Documents that were read are searched all the same.
    assert api.post("/api/v1/search/", {"query": "pump grams"}, format="json").json()["results"]
    kept.delete()
    assert not Document.objects.filter(pk=kept.pk).exists()


@pytest.mark.skipif("TEST_CITUS_URL" in os.environ, reason="A Citus cluster has backups of its own.")
def test_backups_leave_files_in_a_bucket_there(server, collection, ingest, request, tmp_path):
    bucket = request.getfixturevalue("bucket")
    document = ingest(collection, "pump.md", TEXT)
    with document.file.storage.open(document.file.name) as file:
        assert file.read() == TEXT.encode()

    manifest = make_backup(tmp_path / "site.tar")
    assert (manifest.documents, manifest.files) == (1, 0)
    assert keys(bucket) == [f"site/{document.file.name}"]
