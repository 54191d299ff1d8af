"""Configure gunicorn, the web server (`--config python:ragsite.processes.web`), and limit connections.

Gunicorn's first process forks the others, so it must have no threads or connections.
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

from core.api.callers import find_network
from core.exceptions import RagsiteError
from ragsite.celery import app as celery_app
from ragsite.operations import shared_metrics
from ragsite.processes.machine import end_with_parent
from retrieval.documents import sandbox
from retrieval.index import embedder_choice
from retrieval.index.embedders.onnx import OnnxEmbedder

logger = logging.getLogger(__name__)

# A process that is silent for this time is killed, and a request whose body is silent is refused.
SILENT_SECONDS = 15
# Streams may continue for this time after the signal to stop. `serve` waits ten seconds in all.
STREAM_SECONDS = 3
STOP_SECONDS = 5
CONNECTIONS = 40
LEAST_CONNECTIONS = 6
# A new connection must send the headers of its first request within this time.
HEADER_SECONDS = 10.0
# A process accepts at most MOST_OF_AN_ADDRESS connections from one address, and keeps SPARE_FILES open files for other
# uses.
MOST_OF_AN_ADDRESS, SPARE_FILES = 200, 200
# Before a process accepts a connection, it waits WAIT_SECONDS once for each connection that it already has, but at most
# MOST_WAITS times. So idle processes accept first.
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
    """An HTTP connection. It is closed if its first headers take too long, or if there are too many connections.

    Behind proxies, whose addresses many users share, connections are not counted by address.
    """

    _network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        of_address = self.worker.of_address
        self._network = find_network(transport.get_extra_info("peername")[0])
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


class ThrottledListener(socket.socket):
    """A listening socket whose process accepts one connection at a time, with a delay if it is busy.

    By default, asyncio accepts all waiting connections in the process that wakes up first.
    """

    worker: Any
    _waits = 0
    _took_one = False

    def listen(self, backlog: int = 0, /) -> None:
        """Do nothing, because the socket is listening already."""

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


class SiteWorker(gasgi.ASGIWorker):  # type: ignore[misc]  # gunicorn has no types
    def init_process(self) -> None:
        self.of_address: Counter[str] = Counter()
        for each in self.sockets:
            each.sock = ThrottledListener(fileno=each.sock.detach())
            each.sock.setblocking(False)
            each.sock.worker = self
        super().init_process()


gasgi.ASGIProtocol = Connection


_host = os.environ.get("HOST") or "127.0.0.1"
bind = f"{f'[{_host}]' if ':' in _host else _host}:{os.environ.get('PORT') or 8000}"
wsgi_app = "ragsite.asgi:application"
worker_class = SiteWorker
# More processes than answers would leave some idle.
workers = min(settings.WEB_CONCURRENCY, settings.ANSWERS_AT_ONCE)
preload_app = True
timeout = SILENT_SECONDS
# Each worker changes the time of a file in this folder, which shows gunicorn that the worker lives. The folder is in
# memory, so that a full or slow disk does not delay the change.
worker_tmp_dir = str(shared_metrics.MEMORY) if shared_metrics.MEMORY else None
graceful_timeout = STREAM_SECONDS + STOP_SECONDS
keepalive = 5
limit_request_line = 8190
# DRF and Django read these headers according to NUM_PROXIES and HTTPS, so gunicorn must not.
secure_scheme_headers: dict[str, str] = {}
forwarder_headers = ""
# The control socket needs a thread, which would not exist in forked processes.
control_socket_disable = True
errorlog = None
loglevel = "warning"


_restarts: Counter[str] = Counter()


def on_starting(server: Any) -> None:
    server.log.error_log.propagate = True
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    shared_metrics.share_metrics_between_processes(settings.DATA_DIR)
    preload_modules()
    from ragsite.operations.backups import remove_unfinished_backup_folders

    remove_unfinished_backup_folders()
    load_model()
    # A stream that waits for a model has no database connection, so a few are enough.
    size = max(LEAST_CONNECTIONS, CONNECTIONS // (workers + 1))
    for database in connections.settings.values():
        database["OPTIONS"]["pool"] = {"min_size": 1, "timeout": 10, "max_size": size}
        database["CONN_MAX_AGE"] = 0
        # Instead of Django, `ragsite.postgres.backend` checks the connections of the pool.
        database["CONN_HEALTH_CHECKS"] = False
    connections.close_all()
    # The garbage collector writes to all objects except frozen ones. These writes would end the sharing of memory with
    # forks, so all objects are frozen.
    gc.collect()
    gc.freeze()


def post_fork(server: Any, worker: Any) -> None:
    from chat.streaming.admission import ADMISSION

    end_with_parent(server.pid, f"ragsite-web-{worker.age}")
    ADMISSION.processes = server.num_workers
    # Streams may continue for this time; a little later, gunicorn's first process kills this one.
    worker.cfg.set("graceful_timeout", max(1, server.cfg.graceful_timeout - STOP_SECONDS))
    call_with_local_embedder(lambda embedder: embedder.prepare())


def post_worker_init(worker: Any) -> None:
    # gunicorn's handler of this signal needs the event loop, which is stuck. The handler below works even then.
    worker.loop.remove_signal_handler(signal.SIGABRT)
    faulthandler.enable()


def child_exit(server: Any, worker: Any) -> None:
    from ragsite.operations.health_views import RESTARTS

    shared_metrics.forget_states_of(worker.pid)
    _restarts["hung" if worker.aborted else "died"] += 1
    for reason, number in _restarts.items():
        RESTARTS.labels(process="web-process", reason=reason).set(number)


def on_exit(server: Any) -> None:
    shared_metrics.remove_shared_metrics()


@functools.cache
def preload_modules() -> None:
    for module in _LOADED_BEFORE:
        importlib.import_module(module)
    for backend in filter(None, (settings.QUERY_REFORMULATOR, *settings.RERANKERS.values())):
        importlib.import_module(backend["BACKEND"].rpartition(".")[0])
    celery_app.loader.import_default_modules()
    celery_app.finalize()
    celery_app.backend  # noqa: B018 - made here, and shared
    sandbox.read_sandbox_state()
    for template in (settings.BASE_DIR / "templates" / "chat").glob("*.html"):
        get_template(f"chat/{template.name}")
    get_resolver()._populate()


@functools.cache
def load_model() -> None:
    """Open the site's embedder before the web processes fork, and log if stored vectors are from another one."""
    call_with_local_embedder(lambda embedder: embedder.open_for_forks())
    try:
        if notice := embedder_choice.describe_embedder_choice():
            logger.warning("%s", notice)
    except (RagsiteError, ImproperlyConfigured):
        pass
    connections.close_all()


def call_with_local_embedder(step: Callable[[OnnxEmbedder], None]) -> None:
    """Call ``step`` with the site's embedder, if it runs in this process. Errors are only logged."""
    try:
        embedder = embedder_choice.get_embedder()
        if isinstance(embedder, OnnxEmbedder):
            step(embedder)
    except (RagsiteError, ImproperlyConfigured, OSError) as error:
        logger.warning("The embedding model is not ready: %s", error)
