"""kill -9 in the middle of the work: nothing is lost, doubled, or left "running"."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx2
import psutil
import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from chat.models import Answer, StreamedEvent
from chat.streaming.sweep import close_interrupted
from retrieval.drafts import lifecycle
from retrieval.ingest import submission
from retrieval.jobs.sweep import sweep
from retrieval.models import Chunk, ChunkEmbedding, Collection, CollectionStatistics, Document, Draft
from tests.support.model_server import ModelServer, model_server
from tests.support.site import WebServer, Workers, database_url, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.worker]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as state:
        yield state


@pytest.fixture
def servers(model: ModelServer, tmp_path: Path) -> Iterator[tuple[WebServer, WebServer]]:
    """Two web servers on one database, whose answers the model writes."""
    settings = {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "tiny"}
    first = WebServer(tmp_path / "web1.log", **settings)
    second = WebServer(tmp_path / "web2.log", **settings)
    yield first, second
    first.stop()
    second.stop()


def long_text(seed: int) -> bytes:
    return "\n\n".join(
        f"Paragraph {n} of document {seed} describes pump number {seed * 1000 + n}. " * 12 for n in range(35)
    ).encode()


def assert_whole(collection: Collection) -> None:
    """Every document is read, once, and the statistics are those of its chunks."""
    assert set(Document.objects.values_list("status", flat=True)) == {Document.Status.READY}
    for document in Document.objects.select_related("text"):
        chunks = list(document.chunks.all())
        assert document.chunk_count == len(chunks)
        assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
        assert all(chunk.content == document.text.text[chunk.start : chunk.end] for chunk in chunks)
    statistics = CollectionStatistics.objects.get(pk=collection.pk)
    assert statistics.chunks == Chunk.objects.count() == ChunkEmbedding.objects.count()


def test_a_killed_worker_loses_and_doubles_nothing(collection: Collection, queue: None, workers: Workers) -> None:
    for seed in range(3):
        submission.submit(collection, f"{seed}.txt", long_text(seed))
    worker = workers.running()
    wait_until(
        lambda: Document.objects.filter(status="processing", progress_percent__gt=0).exists(), 60, "a half-read file"
    )
    worker.kill()
    interrupted = Document.objects.get(status="processing")
    assert not interrupted.chunks.exists()
    # Time passes, before another worker's heart beats: the schedule finds the document whose worker is silent.
    Document.objects.filter(status="processing").update(heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER)
    assert sweep(Document) >= 1
    workers.running()
    wait_until(lambda: Document.objects.filter(status="ready").count() == 3, 120, "all documents")
    assert_whole(collection)


def test_a_killed_database_loses_and_doubles_nothing(collection: Collection, queue: None, workers: Workers) -> None:
    workers.running()
    submission.submit(collection, "long.txt", long_text(1))
    wait_until(
        lambda: Document.objects.filter(status="processing", progress_percent__gt=0).exists(), 60, "a half-read file"
    )
    connection.close()
    psutil.Process(settings.EMBEDDED_POSTGRES._postmaster_pid()).kill()
    wait_until(lambda: not settings.EMBEDDED_POSTGRES.is_running(), 60)
    settings.EMBEDDED_POSTGRES.ensure_running()

    def is_ready() -> bool:
        Document.objects.filter(status="processing", heartbeat_at__lt=timezone.now() - timedelta(seconds=8)).update(
            heartbeat_at=timezone.now() - 2 * Document.SILENT_AFTER
        )
        Document.objects.filter(status="pending").update(retry_at=timezone.now() - timedelta(seconds=1))
        sweep(Document)
        return Document.objects.get().status == Document.Status.READY

    wait_until(is_ready, 90, f"the document\n{workers.log()}")
    assert_whole(collection)


@contextmanager
def held_lexeme(collection: Collection, lexeme: str) -> Iterator[Callable[[], bool]]:
    """Holds a word's count, so that whoever writes passages stops in the midst of it; tells whether somebody does."""
    with psycopg.connect(make_conninfo(**conninfo_to_dict(database_url()))) as holder:
        holder.execute(
            "SELECT 1 FROM retrieval_lexeme WHERE collection_id = %s AND lexeme = %s FOR UPDATE",
            [collection.pk, lexeme],
        )

        def waits() -> bool:
            with connection.cursor() as cursor:
                cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                return bool(cursor.fetchone()[0])

        yield waits


def test_a_worker_killed_amid_a_publication_publishes_nothing(
    collection: Collection, ingest: Callable[..., Document], queue: None, workers: Workers
) -> None:
    ingest(collection, "pump.md", "# Pump\n\nThe pump weighs 3450 grams.")
    ingest(collection, "valve.md", "# Valve\n\nThe valve closes at ten bar.")
    worker = workers.running()
    draft = lifecycle.begin(collection)
    wait_until(lambda: Draft.objects.get().status == Draft.Status.OPEN, 30, "the working copy")
    working_copy = Collection.objects.get(draft=draft)
    working_copy.documents.get(source="valve.md").delete()
    submission.submit(working_copy, "fan.md", b"# Fan\n\nThe fan cools the pump.")
    wait_until(lambda: not working_copy.documents.exclude(status="ready").exists(), 30, "the new document")
    with held_lexeme(collection, "pump") as somebody_waits:
        lifecycle.publish(draft)
        wait_until(somebody_waits, 30, "a publication under way")
        worker.kill()
    assert Draft.objects.get().status == Draft.Status.PUBLISHING
    assert set(collection.documents.values_list("source", flat=True)) == {"pump.md", "valve.md"}
    assert sweep(Draft) == 0, "its heart beat a moment ago"
    Draft.objects.update(heartbeat_at=timezone.now() - 2 * Draft.SILENT_AFTER)
    assert sweep(Draft) == 1
    workers.running()
    wait_until(lambda: not Collection.objects.filter(draft=draft).exists(), 60, f"the publication\n{workers.log()}")
    assert Draft.objects.get().status == Draft.Status.PUBLISHED
    assert set(collection.documents.values_list("source", flat=True)) == {"pump.md", "fan.md"}
    assert_whole(collection)


def events_of(response: httpx2.Response) -> Iterator[tuple[str, str, dict[str, object]]]:
    """(id, name, payload) of each server-sent event."""
    event_id = name = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield event_id, name, json.loads(line[6:])


def read_and_kill(server: WebServer, asked: dict[str, object], *, after: int) -> None:
    """Read a streamed answer, and kill its server after so many events. Raises: httpx2.HTTPError for the lost line."""
    with httpx2.stream("POST", f"{server.url}/api/v1/ask/", json=asked) as response:
        for number, _event in enumerate(events_of(response), start=1):
            if number == after:
                server.kill()


def test_what_one_web_server_began_another_goes_on_with_and_outlives_it(
    collection: Collection, ingest: Callable[..., Document], model: ModelServer, servers: tuple[WebServer, WebServer]
) -> None:
    ingest(collection, "pump.md", "# Pump\n\nIt weighs 3450 grams.")
    model.pieces = [f"word{n} " for n in range(30)] + ["[1]"]
    model.delay_seconds = 0.1
    first, second = servers
    _a_reader_goes_on_at_another(first, second)
    assert len(model.requests) == 1
    Answer.objects.all().delete()

    asked = {"question": "How heavy is the pump, in grams?", "stream": True}
    with pytest.raises(httpx2.HTTPError):
        read_and_kill(first, asked, after=8)
    assert not first.answers()
    answer = Answer.objects.get()
    assert answer.status == Answer.Status.GENERATING
    assert StreamedEvent.objects.filter(answer=answer).exists()
    # Time passes: the heart of the killed process has stopped.
    Answer.objects.update(heartbeat_at=timezone.now() - timedelta(minutes=2))
    session = httpx2.Client(base_url=second.url)
    model.delay_seconds = 0.0
    assert close_interrupted() == 1
    answer.refresh_from_db()
    assert answer.status == Answer.Status.FAILED
    assert "ask again" in answer.error
    again = session.post("/api/v1/ask/", json={"question": asked["question"]}).json()
    assert again["answer"].startswith("word0")
    assert Counter(Answer.objects.values_list("status", flat=True)) == {"failed": 1, "completed": 1}

    # Told to end, the other one waits a little for its streams, and gives back what is not written by then.
    model.pieces, model.delay_seconds = [f"piece{n} " for n in range(200)], 0.1
    told: list[str] = []
    asked = {"question": "What does the pump weigh?", "stream": True}
    with contextlib.suppress(httpx2.HTTPError), session.stream("POST", "/api/v1/ask/", json=asked) as response:
        for _id, name, _payload in events_of(response):
            told.append(name)
            if len(told) == 8:
                second.popen.terminate()
    assert second.popen.wait(15) == 0
    assert set(told) == {"searched", "token"}
    left = Answer.objects.get(question=asked["question"])
    assert (left.status, left.attempts, left.lease) == (Answer.Status.PENDING, 1, None)


def _a_reader_goes_on_at_another(first: WebServer, second: WebServer) -> None:
    client = httpx2.Client()
    page = client.get(first.url)
    token = page.cookies["csrftoken"]
    client.post(
        f"{first.url}/ask/",
        data={"question": "How heavy is the pump?", "csrfmiddlewaretoken": token},
        headers={"HX-Request": "true", "X-CSRFToken": token, "Referer": first.url},
    ).raise_for_status()
    answer = Answer.objects.get()
    path = f"/answers/{uuid.UUID(str(answer.pk))}/stream/"
    ids: list[str] = []
    with client.stream("GET", first.url + path, timeout=60) as response:
        for line in response.iter_lines():
            if line.startswith("id: "):
                ids.append(line[4:])
            if len(ids) == 8:
                break
    with client.stream("GET", second.url + path, headers={"Last-Event-ID": ids[-1]}, timeout=60) as response:
        ids += [line[4:] for line in response.iter_lines() if line.startswith("id: ")]
    numbers = [int(event_id.split("-")[1]) for event_id in ids]
    assert numbers == list(range(1, len(numbers) + 1))
    answer.refresh_from_db()
    assert answer.status == Answer.Status.COMPLETED
