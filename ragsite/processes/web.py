"""The web server: gunicorn's settings and hooks, `gunicorn --config python:ragsite.processes.web`, and
what the site adds to its ASGI worker: bounds on connections, which go to the process that has the fewest.

Its first process loads the site and forks the others, which share what it has loaded; it replaces one that dies, and
kills one that hangs. It has no threads and no connection to the database: those would not survive a fork.
"""

from __future__ import annotations

import asyncio
import faulthandler
import functools
import gc
import importlib
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.template.loader import get_template
from django.urls import get_resolver
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from core.api.callers import network_of
from core.exceptions import RagsiteError
from ragsite.celery import app as celery_app
from ragsite.operations import shared_metrics
from ragsite.processes.machine import end_with
from retrieval.documents import sandbox
from retrieval.index import embedder_choice
from retrieval.index.embedders.onnx import OnnxEmbedder

logger = logging.getLogger(__name__)

# A process that has not answered the first one for so long is killed, and a request's body may be silent for as long.
SILENT_SECONDS = 15
# How long open streams go on when the server is told to end: `serve` waits for ten seconds in all.
STREAM_SECONDS = 3
# For answers that are being saved when the streams have had their time, and what is left to do then.
STOP_SECONDS = 5
# To the database, of all processes together when each answers; one alone may take half of them.
CONNECTIONS = 40
LEAST_CONNECTIONS = 6
# For the headers of a connection's first request; those of a later one have the time of `keepalive`.
HEADER_SECONDS = 10.0
# Connections that one address may have open to one process, and files that are left for other things than connections.
MOST_OF_AN_ADDRESS, SPARE_FILES = 200, 200
# A process leaves the next connection to others once for each that it has open, but not more often, for so long.
MOST_WAITS, WAIT_SECONDS = 5, 0.0005

_TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LOADED_BEFORE = (
    "celery.app.amqp",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "gunicorn.app.wsgiapp",
    "ragsite.processes.worker_pool",
    "django.contrib.humanize.templatetags.humanize",
    "django.contrib.messages.storage.fallback",
    "django.contrib.sessions.serializers",
    "kombu.transport.pgmq",
    "psycopg_pool",
)


class Connection(ASGIProtocol):  # type: ignore[misc]  # gunicorn has no types
    """A connection that is closed when the headers of its first request take too long, or when there are too many.

    Behind proxies all connections are of their addresses: those may have as many as they like.
    """

    _network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        of_address = self.worker.of_address
        self._network = network_of(transport.get_extra_info("peername")[0])
        of_address[self._network] += 1
        most = MOST_OF_AN_ADDRESS if not settings.REST_FRAMEWORK["NUM_PROXIES"] else sys.maxsize
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if of_address[self._network] > most or self.worker.nr_conns > files - SPARE_FILES:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self.worker.loop.call_later(HEADER_SECONDS, self._end_without_request)

    def connection_lost(self, exc: Exception | None) -> None:
        of_address = self.worker.of_address
        of_address[self._network] -= 1
        if not of_address[self._network]:
            del of_address[self._network]
        super().connection_lost(exc)

    def _end_without_request(self) -> None:
        if self.req_count <= 1 and not self._request_ready.is_set():
            self.transport.abort()


class Listener(socket.socket):
    """A socket that listens already, and of which each process takes one connection at a time, the sooner the fewer it
    has open: asyncio takes as many at once as may wait, and the first process to wake would take a whole rush.
    """

    worker: Any
    _waits = 0
    _took_one = False

    def listen(self, backlog: int = 0, /) -> None:
        """It does."""

    def accept(self) -> tuple[socket.socket, Any]:
        if self._took_one:
            self._took_one = False
            raise BlockingIOError
        if self._waits < min(self.worker.nr_conns, MOST_WAITS):
            self._waits += 1
            time.sleep(WAIT_SECONDS)
            raise BlockingIOError
        self._waits = 0
        taken = super().accept()
        self._took_one = True
        return taken


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]  # gunicorn has no types
    def init_process(self) -> None:
        self.of_address: Counter[str] = Counter()
        for each in self.sockets:
            each.sock = Listener(fileno=each.sock.detach())
            each.sock.setblocking(False)
            each.sock.worker = self
        super().init_process()


# The worker makes one for each connection, by this name.
gasgi.ASGIProtocol = Connection

# --- gunicorn's settings ---

_host = os.environ.get("HOST") or "127.0.0.1"
bind = f"{f'[{_host}]' if ':' in _host else _host}:{os.environ.get('PORT') or 8000}"
wsgi_app = "ragsite.asgi:application"
worker_class = Worker
# More processes than answers are written at once would have nothing to do.
workers = min(settings.WEB_CONCURRENCY, settings.ANSWERS_AT_ONCE)
preload_app = True
timeout = SILENT_SECONDS
# A file's time is how a process says that it lives: not on a disk that may be full, or slow.
worker_tmp_dir = str(shared_metrics.MEMORY) if shared_metrics.MEMORY else None
# `--graceful-timeout` gives them more, as the manifests do.
graceful_timeout = STREAM_SECONDS + STOP_SECONDS
keepalive = 5
limit_request_line = 8190
# `X-Forwarded-For` and `-Proto` are read by DRF and Django, as NUM_PROXIES and HTTPS say, from nobody else.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# Its thread would not survive the forks.
control_socket_disable = True
# It writes as the site does: see `on_starting`.
errorlog = None
loglevel = "warning"

# --- gunicorn's hooks ---

_restarts: Counter[str] = Counter()


def on_starting(server: Any) -> None:
    """Load what the processes share."""
    server.log.error_log.propagate = True
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    shared_metrics.share(settings.DATA_DIR)
    preload()
    from ragsite.operations.backups import remove_leftovers

    remove_leftovers()
    load_model()
    # As streams give theirs back while they wait for a model, each process keeps a few.
    size = max(LEAST_CONNECTIONS, CONNECTIONS // (workers + 1))
    for database in connections.settings.values():
        database["OPTIONS"]["pool"] = {"min_size": 1, "timeout": 10, "max_size": size}
        database["CONN_MAX_AGE"] = 0
    connections.close_all()
    # The garbage collector would write to what is loaded by now, and make copies everywhere.
    gc.collect()
    gc.freeze()


def post_fork(server: Any, worker: Any) -> None:
    from chat.streaming.admission import ADMISSION

    end_with(server.pid, f"ragsite-web-{worker.age}")
    ADMISSION.processes = server.num_workers
    # Until then streams may go on; the first process kills this one a little later.
    worker.cfg.set("graceful_timeout", max(1, server.cfg.graceful_timeout - STOP_SECONDS))
    # Before the first question comes, rather than while it waits.
    prepare_model(lambda embedder: embedder.prepare())


def post_worker_init(worker: Any) -> None:
    # A process that hangs is sent this signal. In place of gunicorn's handler, which a loop that hangs never calls:
    # this one writes where each thread is, also when Python itself cannot go on, and ends the process.
    worker.loop.remove_signal_handler(signal.SIGABRT)
    faulthandler.enable()


def child_exit(server: Any, worker: Any) -> None:
    from ragsite.operations.health_views import RESTARTS

    shared_metrics.forget_states_of(worker.pid)
    _restarts["hung" if worker.aborted else "died"] += 1
    for reason, number in _restarts.items():
        RESTARTS.labels(process="web-process", reason=reason).set(number)


def on_exit(server: Any) -> None:
    shared_metrics.remove()


# --- What is loaded before the forks ---


@functools.cache
def preload() -> None:
    """Load what any process of the site needs, without a thread or an open connection to the database."""
    for module in _LOADED_BEFORE:
        importlib.import_module(module)
    for backend in filter(None, (settings.QUERY_REFORMULATOR, *settings.RERANKERS.values())):
        importlib.import_module(backend["BACKEND"].rpartition(".")[0])
    # The tasks, and what they and every request need of Django and Celery.
    celery_app.loader.import_default_modules()
    celery_app.finalize()
    celery_app.backend  # noqa: B018 - made here, and shared
    sandbox.state()
    # Compiled, they stay so.
    for template in (settings.BASE_DIR / "templates" / "chat").glob("*.html"):
        get_template(f"chat/{template.name}")
    # All addresses, and with them the views and the administration.
    get_resolver()._populate()


@functools.cache
def load_model() -> None:
    """Open the embedder for forks to share, when the database is there: it says whose vectors are stored."""
    prepare_model(lambda embedder: embedder.open_for_forks())
    try:
        if notice := embedder_choice.embedder_notice():
            logger.warning("%s", notice)
    except (RagsiteError, ImproperlyConfigured):
        pass  # the log says so already
    connections.close_all()


def prepare_model(step: Callable[[OnnxEmbedder], None]) -> None:
    """Take ``step``, if the embedder runs in this process. What is wrong with it, /readyz says, and each answer."""
    try:
        embedder = embedder_choice.embedder()
        if isinstance(embedder, OnnxEmbedder):
            step(embedder)
    except (RagsiteError, ImproperlyConfigured, OSError) as error:
        logger.warning("The embedding model is not ready: %s", error)
