"""The disk is full: stored data can be read, writes are refused with 507, and no half-written data remain."""

import asyncio
import errno
import functools
import shutil
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import get_resolver
from rest_framework.test import APIClient

from chat.answering import writers
from chat.models import Answer
from chat.models.answer import CLOSED_AFTER
from chat.streaming import saving, streams, writing
from core import disk
from ragsite.celery import app as celery_app
from ragsite.processes import beat
from ragsite.processes.machine import reserve_disk_space
from retrieval.documents import ingestion, submission
from retrieval.models import Document
from tests.support.asking import token
from tests.support.libraries import library_of
from tests.support.people import make_superuser

# SmallDisk is a real file system of a few MiB. Tests are skipped, with a message, if the user may not mount one.


class SmallDisk:
    def __init__(self, path):
        self.path = path
        self._filling = path / "filling"

    def fill(self):
        """Leave no room at all."""
        with self._filling.open("ab", buffering=0) as file:
            for size in (2**16, 2**12, 1):
                while _fits(file, size):
                    pass

    def make_room(self):
        self._filling.unlink()


def _fits(file, size):
    try:
        file.write(b"x" * size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


@contextmanager
def small_disk(path, size="8m"):
    path.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "tmpfs", str(path)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = {"question": "How heavy is the pump?"}
COMPLETION = {"messages": [{"role": "user", "content": "How heavy is the pump?"}]}
TOLD = "The disk of this site is full"


library = library_of({"pump.md": "# Pump\n\nThe pump weighs 3450 grams."})


@pytest.fixture
def staff():
    return make_superuser("editor", password="a long password")


@pytest.fixture
def api(staff):
    cache.clear()
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(staff)
    return client


@pytest.fixture
def pages(staff):
    cache.clear()
    client = Client(raise_request_exception=False)
    client.force_login(staff)
    return client


@pytest.fixture
def media(tmp_path, settings):
    """Put uploads on a disk of their own. The early refusal is switched off, so that the disk really fills."""
    with small_disk(tmp_path / "media") as small:
        settings.DISK_RESERVE_BYTES = 0
        settings.MEDIA_ROOT = small.path
        yield small


@pytest.fixture
def tables(tmp_path, settings):
    """PostgreSQL keeps the answers on a disk of their own."""
    with small_disk(Path("/tmp") / f"ragsite-{tmp_path.name}", "16m") as small:
        settings.DISK_RESERVE_BYTES = 0
        folder = small.path / "tablespace"
        folder.mkdir()
        if owner := settings.EMBEDDED_POSTGRES._find_server_user():
            shutil.chown(folder, owner, owner)
        moved = ("chat_answer", "chat_streamedevent", "chat_citation")
        with connection.cursor() as cursor:
            # Rows that earlier tests deleted are still in the files.
            cursor.execute(f"TRUNCATE {', '.join(moved)} CASCADE")
            cursor.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            for table in moved:
                cursor.execute(f"ALTER TABLE {table} SET TABLESPACE small")
        yield small
        if small._filling.exists():
            small.make_room()
        with connection.cursor() as cursor:
            for table in moved:
                cursor.execute(f"ALTER TABLE {table} SET TABLESPACE pg_default")
            cursor.execute("DROP TABLESPACE small")
    small.path.rmdir()


def stored_files(media):
    return [path.name for path in (media.path / "documents").glob("*")]


def upload(api, collection, *names):
    files = [SimpleUploadedFile(name, b"It weighs 3450 grams. " * 10_000, "text/plain") for name in names]
    return api.post("/api/v1/documents/", {"collection": collection.slug, "file": files}, format="multipart")


def test_below_the_reserve_every_interface_refuses_in_its_own_form(api, pages, library, settings):
    assert api.post("/api/v1/ask/", QUESTION, format="json").status_code == 200
    before = Answer.objects.get()
    settings.DISK_RESERVE_BYTES = 2**62

    asked = api.post("/api/v1/ask/", QUESTION, format="json")
    assert (asked.status_code, list(asked.json())) == (507, ["detail"])
    assert TOLD in asked.json()["detail"]
    assert api.post("/api/v1/ask/", {**QUESTION, "stream": True}, format="json").status_code == 507
    completion = api.post("/v1/chat/completions", COMPLETION, format="json")
    assert completion.status_code == 507
    assert completion.json()["error"]["type"] == "server_error"
    assert completion.json()["error"]["code"] == "insufficient_storage"
    uploaded = upload(api, library, "one.txt", "two.txt")
    assert (uploaded.status_code, list(uploaded.json())) == (507, ["detail"])

    fragment = pages.post("/ask/", QUESTION, headers={"HX-Request": "true"})
    assert fragment.status_code == 507
    assert fragment["HX-Retarget"] == "#question-error"
    assert TOLD in fragment.content.decode()
    page = pages.post("/ask/", QUESTION)
    assert page.status_code == 507
    assert "<html" in page.content.decode()
    assert TOLD in page.content.decode()
    form = {"collection": library.pk, "file": SimpleUploadedFile("one.txt", b"It weighs 3450 grams."), "metadata": "{}"}
    admin = pages.post("/admin/retrieval/document/add/", form)
    assert admin.status_code == 507
    assert TOLD in admin.content.decode()

    assert Answer.objects.get() == before
    assert Document.objects.count() == 1
    # Reading still works.
    assert pages.get("/").status_code == 200
    assert api.get(f"/api/v1/answers/{before.pk}/").json()["answer"] == before.text
    assert api.post("/api/v1/search/", {"query": "pump"}, format="json").json()["results"]

    settings.DISK_RESERVE_BYTES = 0
    assert api.post("/api/v1/ask/", QUESTION, format="json").status_code == 200
    assert upload(api, library, "one.txt").status_code == 202


def test_a_document_waits_for_room_without_using_up_its_attempts(collection, settings):
    document = submission.submit(collection, "pump.md", b"# Pump\n\nIt weighs 3450 grams.", enqueue=False).document
    settings.DISK_RESERVE_BYTES = 2**62
    for _ in range(Document.MOST_ATTEMPTS + 1):
        ingestion.ingest_document(document.pk)
    document.refresh_from_db()
    assert (document.status, document.attempts) == ("pending", 0)
    assert TOLD in document.error
    settings.DISK_RESERVE_BYTES = 0
    ingestion.ingest_document(document.pk)
    document.refresh_from_db()
    assert document.status == "ready"


def test_an_upload_onto_a_full_disk_leaves_nothing(api, pages, collection, media):
    media.fill()
    response = upload(api, collection, "one.txt")
    assert (response.status_code, list(response.json())) == (507, ["detail"])
    form = {"collection": collection.pk, "file": SimpleUploadedFile("a.txt", b"words " * 50_000), "metadata": "{}"}
    page = pages.post("/admin/retrieval/document/add/", form)
    assert page.status_code == 507
    assert TOLD in page.content.decode()
    assert stored_files(media) == []
    assert not Document.objects.exists()
    media.make_room()
    assert upload(api, collection, "one.txt").status_code == 202
    assert len(stored_files(media)) == 1


def test_of_several_files_those_that_fit_are_kept(api, collection, media):
    # 8 MiB have room for at most 38 files of 220 kB.
    response = upload(api, collection, *(f"{number}.txt" for number in range(45)))
    assert response.status_code == 202
    told = response.json()
    assert told["accepted"]
    assert told["rejected"]
    assert all(TOLD in rejected["error"] for rejected in told["rejected"])
    assert len(stored_files(media)) == len(told["accepted"]) == Document.objects.count()


def test_a_file_whose_row_cannot_be_saved_is_not_kept(collection, settings):
    folder = Path(settings.MEDIA_ROOT) / "documents"
    before = set(folder.glob("*"))
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE retrieval_document ADD CONSTRAINT refuse CHECK (source <> 'pump.md') NOT VALID")
    try:
        with pytest.raises(Exception, match="refuse"):
            submission.submit(collection, "pump.md", b"It weighs 3450 grams.", enqueue=False)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE retrieval_document DROP CONSTRAINT refuse")
    assert set(folder.glob("*")) == before


class FillingGenerator:
    """Writes an answer while somebody else takes the last room of the disk."""

    name = "filling"
    may_refuse = True

    def __init__(self, small):
        self._small = small

    async def compose(self, *_given):
        self._small.fill()
        # More than fits into the pages that the tables have already, compressed as it will be.
        yield token("The pump weighs 3450 grams [1]. " + " ".join(uuid.uuid4().hex for _ in range(1500)))


def test_an_answer_that_cannot_be_saved_says_so(api, library, tables, monkeypatch):
    filling = FillingGenerator(tables)
    monkeypatch.setattr(writers, "find_generator", lambda _name: filling)
    monkeypatch.setattr(writing, "SAVE_PAUSES_SECONDS", (0.05,))
    response = api.post("/api/v1/ask/", QUESTION, format="json")
    assert response.status_code == 507
    assert TOLD in response.json()["detail"]
    answer = Answer.objects.get()
    assert answer.status in ("failed", "generating")
    # A reader who comes back gets the failure too; no answer is called complete.
    assert async_to_sync(last_event)(answer).name == "failed"

    tables.make_room()
    Answer.objects.filter(status="generating").update(heartbeat_at=answer.created_at - 2 * CLOSED_AFTER)
    saving.close_interrupted_answers()
    answer.refresh_from_db()
    assert answer.status == "failed"
    assert answer.error
    monkeypatch.undo()
    assert api.post("/api/v1/ask/", QUESTION, format="json").status_code == 200


async def last_event(answer):
    return await asyncio.wait_for(streams.complete_answer(answer.pk), 60)


@pytest.mark.parametrize("path", ["/api/v1/search/", "/v1/models", "/"])
def test_a_full_disk_met_outside_a_view_is_told_in_the_form_of_the_caller(path):
    request = RequestFactory().post(path)
    handler = get_resolver().resolve_error_handler(500)
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError:
        response = handler(request)
    assert response.status_code == 507
    assert "The disk of this site is full" in response.content.decode()
    assert response.headers["Content-Type"].startswith("text/html" if path == "/" else "application/json")


def test_the_schedule_goes_on(tmp_path, settings):
    with small_disk(tmp_path / "data", "64k") as small:
        settings.SCHEDULER_SEEN_FILE = small.path / "seen"
        small.fill()
        scheduler = beat.Scheduler(celery_app)
        assert "sweep" in scheduler.schedule
        scheduler.tick()
        small.make_room()
        scheduler._seen_at = 0.0
        scheduler.tick()
        assert settings.SCHEDULER_SEEN_FILE.exists()


def test_the_database_keeps_some_room_for_itself(tmp_path):
    said = []
    mib = 2**20
    with small_disk(tmp_path / "data", "64m") as small:
        keep_up = functools.partial(reserve_disk_space, small.path, 8 * mib, said.append, size_bytes=20 * mib)
        keep_up()
        assert shutil.disk_usage(small.path).free == 44 * mib
        small.fill()
        keep_up()
        assert shutil.disk_usage(small.path).free == 20 * mib
        assert said == ["The disk is full: 20 MiB were kept for this. Make room."]
        keep_up()
        assert shutil.disk_usage(small.path).free == 20 * mib
        small.make_room()
        keep_up()
        assert shutil.disk_usage(small.path).free == 44 * mib
        assert len(said) == 1


def test_errors_of_a_full_disk_are_recognised():
    refused = OSError(errno.ENOSPC, "No space left on device")
    assert disk.is_disk_full(refused)
    wrapped = ValueError("unrelated words")
    wrapped.__cause__ = refused
    assert disk.is_disk_full(wrapped)
    assert not disk.is_disk_full(OSError(errno.EACCES, "Permission denied"))
    assert not disk.is_disk_full(None)
