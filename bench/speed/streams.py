"""Measure the load of a web server that streams many answers at once.

The answers are read over HTTP. A slow model writes them, or the site quotes documents without a model.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil
from django.conf import settings
from django.db import connection

from bench import build_site_environment
from bench.speed.slow_model import SlowModel, run_slow_model
from chat.models import Answer, Conversation
from evaluation.exceptions import EvaluationError, UntrustworthyMeasurement
from evaluation.statistics import Percentiles, percentiles
from ragsite.processes.machine import is_answering
from retrieval.documents import ingestion, submission
from retrieval.models import Collection, Document, Visibility

FIRST_BYTE = "first_byte"
SLUG = "stream-benchmark"
START_SECONDS = 90.0
STOP_SECONDS = 60.0
READING_SECONDS = 600.0
SETTLE_SECONDS = 2.0
_TEXT = "# Pump {n}\n\nThe MX-99{n:02d} is a wet-rotor pump. It weighs {n}450 grams. Its price is {n}10 euros.\n"


@dataclass(slots=True)
class StreamTimes:
    """One stream: the seconds until its first byte, and until the first event of each name.

    ``error`` is the reason if no answer came.
    """

    first: dict[str, float] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """The load of the web server at one moment.

    Memory is the sum over its processes, with shared memory divided among them. Processor times are those of the web
    server, of the database (None if it is external), and of this process, which reads the streams and runs the model.
    """

    memory_mib: float
    connections: int
    cpu_seconds: float
    database_seconds: float | None
    readers_seconds: float


@dataclass(slots=True)
class StreamBenchmark:
    """The results of :func:`measure_streams`. If ``quoted``, the site had no model, so it answered with quotations.

    ``readings`` are the streams that were read to the end. ``before``, ``peak`` and ``after`` are the web server's load
    before, during and after them. ``vanished`` are the streams whose readers disconnected; the site continued
    to write for ``stopped_seconds``. ``settled`` is the load at the end.
    """

    streams: int
    readings: Sequence[StreamTimes]
    before: ServerLoad
    peak: ServerLoad
    after: ServerLoad
    vanished: Sequence[StreamTimes]
    stopped_seconds: float
    settled: ServerLoad
    statuses: dict[str, int] = field(default_factory=dict)
    quoted: bool = False

    @property
    def errors(self) -> list[str]:
        return [reading.error for reading in self.readings if reading.error]

    @property
    def cpu_ms(self) -> float:
        return (self.after.cpu_seconds - self.before.cpu_seconds) / self.streams * 1000

    @property
    def database_ms(self) -> float | None:
        if self.before.database_seconds is None or self.after.database_seconds is None:
            return None
        return (self.after.database_seconds - self.before.database_seconds) / self.streams * 1000

    @property
    def reader_cpu_ms(self) -> float:
        return (self.after.readers_seconds - self.before.readers_seconds) / self.streams * 1000

    def compute_wait_percentiles(self, moment: str) -> Percentiles | None:
        known = [reading.first[moment] for reading in self.readings if moment in reading.first]
        return percentiles(known) if known else None


def measure_streams(
    streams: int, *, tokens: int, token_seconds: float, over_seconds: float, quoted: bool = False
) -> StreamBenchmark:
    """Open ``streams`` streams within ``over_seconds`` and read them. Then open the same number and disconnect early.

    If ``quoted`` is true, the site quotes documents and uses no language model, so only its own work is measured.
    Raises: EvaluationError if the web server does not start; UntrustworthyMeasurement if no token was streamed.
    """
    collection = _create_collection()
    try:
        with (
            run_slow_model(tokens, token_seconds) as model,
            _run_web_server("" if quoted else model.url) as (process, port),
        ):
            _read_streams(port, ["How heavy is the MX-9901?"], 0.0)
            with _ServerMonitor(process.pid) as watch:
                before = watch.measure_load()
                readings = _read_streams(port, _make_questions(streams), over_seconds)
                peak, after = watch.find_peak_load(), watch.measure_load()
            if not any("token" in reading.first for reading in readings):
                reasons = {reading.error for reading in readings}
                raise UntrustworthyMeasurement(f"Nothing was streamed: {'; '.join(sorted(reasons))[:500]}")
            vanished = _disconnect_early(port, _make_questions(streams), over_seconds)
            stopped_seconds = _wait_until_answers_stopped(model, collection)
            time.sleep(SETTLE_SECONDS)
            settled = _ServerMonitor(process.pid).measure_load()
            rows = Answer.objects.filter(collection=collection).values_list("status", flat=True)
            statuses = {status: list(rows).count(status) for status in sorted(set(rows))}
        return StreamBenchmark(
            streams, readings, before, peak, after, vanished, stopped_seconds, settled, statuses, quoted
        )
    finally:
        _delete_collection(collection)


def _make_questions(streams: int) -> list[str]:
    return [f"How heavy is the MX-99{number % 10:02d}, question {number}?" for number in range(streams)]


def _read_streams(port: int, questions: Sequence[str], over_seconds: float) -> list[StreamTimes]:
    return asyncio.run(read_all_streams(port, questions, SLUG, over_seconds=over_seconds))


def _disconnect_early(port: int, questions: Sequence[str], over_seconds: float) -> list[StreamTimes]:
    def have_all_begun(readings: Sequence[StreamTimes]) -> bool:
        return all("token" in reading.first or reading.error for reading in readings)

    return asyncio.run(read_all_streams(port, questions, SLUG, over_seconds=over_seconds, is_enough=have_all_begun))


async def read_all_streams(
    port: int,
    questions: Sequence[str],
    collection: str,
    *,
    over_seconds: float = 0.0,
    is_enough: Callable[[Sequence[StreamTimes]], bool] = lambda readings: False,
) -> list[StreamTimes]:
    """Read a stream for each question. They start one after another, within ``over_seconds``.

    All readers disconnect when ``is_enough`` returns True, or after ten minutes.
    """
    readings = [StreamTimes() for _ in questions]
    pause_seconds = over_seconds / max(1, len(questions))

    async def read(number: int) -> None:
        await asyncio.sleep(number * pause_seconds)
        await _read_stream(port, {"question": questions[number], "collection": collection}, readings[number])

    tasks = [asyncio.create_task(read(number)) for number in range(len(questions))]
    deadline = time.monotonic() + READING_SECONDS
    while not all(task.done() for task in tasks) and not is_enough(readings) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return readings


async def _read_stream(port: int, question_payload: dict[str, str], reading: StreamTimes) -> None:
    body, started = json.dumps({**question_payload, "stream": True, "anew": True}).encode(), time.monotonic()
    head = f"POST /api/v1/ask/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        answered = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n", 1)[0]
        if " 200 " not in f"{answered} ":
            reading.error = f"status {answered}"
            return
        while line := await reader.readline():
            reading.first.setdefault(FIRST_BYTE, time.monotonic() - started)
            if not line.startswith(b"event:"):
                continue
            name = line.removeprefix(b"event:").strip().decode()
            reading.first.setdefault(name, time.monotonic() - started)
            if name == "failed":
                reading.error = (await reader.readline()).decode(errors="replace").strip()
            if name in ("completed", "failed"):
                return
        reading.error = "The stream ended without an outcome."
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        reading.error = f"{type(error).__name__}: {error}"
    finally:
        if writer is not None:
            # An orderly end would first read the rest, so the connection is aborted.
            writer.transport.abort()


def _wait_until_answers_stopped(model: SlowModel, collection: Collection) -> float:
    started = time.monotonic()
    open_answers = Answer.objects.filter(
        collection=collection, status__in=[Answer.Status.PENDING, Answer.Status.GENERATING]
    )
    while model.writing or open_answers.exists():
        if time.monotonic() - started > STOP_SECONDS:
            raise UntrustworthyMeasurement(f"The model still writes {model.writing} answers that nobody reads.")
        time.sleep(0.1)
    return time.monotonic() - started


class _ServerMonitor:
    """Measures the web server's load four times a second inside a `with` block."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._loads: list[ServerLoad] = []
        self._thread = threading.Thread(target=self._measure_load_repeatedly, name="watch", daemon=True)

    def __enter__(self) -> _ServerMonitor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def measure_load(self) -> ServerLoad:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND backend_type = 'client backend' "
                "AND application_name = %s",
                [SLUG],
            )
            return ServerLoad(
                _measure_memory_mib(self._pid),
                cursor.fetchone()[0],
                _measure_cpu_seconds(self._pid),
                _measure_database_seconds(),
                time.process_time(),
            )

    def find_peak_load(self) -> ServerLoad:
        loads = [*self._loads, self.measure_load()]
        return ServerLoad(
            max(load.memory_mib for load in loads),
            max(load.connections for load in loads),
            *(loads[-1].cpu_seconds, loads[-1].database_seconds, loads[-1].readers_seconds),
        )

    def _measure_load_repeatedly(self) -> None:
        try:
            while not self._stop.wait(0.25):
                self._loads.append(self.measure_load())
        finally:
            connection.close()


def _list_processes(pid: int) -> list[psutil.Process]:
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess as error:
        raise EvaluationError("The web server has ended.") from error


def _measure_memory_mib(pid: int) -> float:
    return sum(float(process.memory_full_info().pss) for process in _list_processes(pid)) / 2**20


def _measure_cpu_seconds(pid: int) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _list_processes(pid))


def _measure_database_seconds() -> float | None:
    """Return the processor time of the embedded database server, also of ended processes; None for another server."""
    if settings.EMBEDDED_POSTGRES is None:
        return None
    pid = int((settings.EMBEDDED_POSTGRES.cluster / "postmaster.pid").read_text().split()[0])
    first = psutil.Process(pid)
    seconds = sum(first.cpu_times()[:4])
    for process in first.children():
        with suppress(psutil.NoSuchProcess):
            seconds += sum(process.cpu_times()[:2])
    return seconds


@contextmanager
def _run_web_server(model_url: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_MODEL": "slow" if model_url else "",
        "OPENAI_API_KEY": "",
        "OPENAI_MAX_TOKENS": "8000",
        "CHAT_REQUIRES_LOGIN": "false",
        "HTTPS": "false",
        "ALLOWED_HOSTS": "127.0.0.1",
        "ASK_RATE": "1000000/min",
        "NUM_PROXIES": "1",
        # With a model, all answers are written simultaneously. Quoted answers wait in the queue, which is long enough.
        **({"ANSWERS_AT_ONCE": "4096"} if model_url else {}),
        **build_site_environment(CALLER_SHARE=1.0, ANSWERS_WAITING=32 if model_url else 4096, QUERY_REFORMULATOR={}),
        "WEB_CONCURRENCY": str(settings.WEB_CONCURRENCY),
        "PGAPPNAME": SLUG,
    }
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gunicorn",
                "--config",
                "python:ragsite.processes.web",
                "--bind",
                f"127.0.0.1:{port}",
            ],
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_for(process, port, log.fileno())
            yield process, port
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if is_answering("127.0.0.1", port, "/healthz"):
            return
        time.sleep(0.2)
    said = os.pread(log, 2000, 0).decode(errors="replace")
    raise EvaluationError(f"The web server did not start: {said.strip() or 'it said nothing.'}")


def _create_collection() -> Collection:
    collection, _ = Collection.objects.get_or_create(
        slug=SLUG,
        defaults={"name": "Stream benchmark", "text_search_configuration": "english", "visibility": Visibility.PUBLIC},
    )
    for number in range(10):
        text = _TEXT.format(n=number)
        submitted = submission.submit(collection, f"pump-{number}.md", text.encode(), enqueue=False)
        ingestion.ingest_document(submitted.document.pk)
    return collection


def _delete_collection(collection: Collection) -> None:
    Conversation.objects.filter(collection=collection).delete()
    Document.objects.filter(collection=collection).delete()
    collection.delete()
