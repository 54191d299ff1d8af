"""The web server: ``python -m ragsite.web``, as many processes as `WEB_CONCURRENCY` says on one address.

The first process loads the site and forks the others, which share what it has loaded. It holds the address, so that a
connection that comes while one of them is killed and replaced waits for another, and watches each by a socket of its
own. It serves nothing itself, and has no threads and no connection to the database: those would not survive a fork.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import mmap
import os
import resource
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django
import h11
import uvicorn
from django.conf import settings
from django.db import connections
from uvicorn.protocols.http.h11_impl import H11Protocol

from chat.streaming.admission import ADMISSION
from ragsite.observability import shared_metrics, telemetry
from ragsite.postgres.pools import pool_of
from ragsite.supervision.forked import share_memory
from ragsite.supervision.preloading import load_model, preload, prepare_model
from ragsite.supervision.processes import Process, RestartsFile, Supervisor
from ragsite.supervision.watchdog import HttpProbe, Watchdog, headers_of_a_proxy, request_text
from retrieval.api.callers import network_of

# For answers that are being saved when the streams have had their time.
SAVE_SECONDS = 3.0
# For what is left to do when the streams have had their time; then processes are killed.
STOP_SECONDS = 5.0
# Connections that wait for a process to take them.
BACKLOG = 2048
# So often a process with more connections than another leaves it the next one, so long.
MOST_WAITS, WAIT_SECONDS = 5, 0.001
TICK_SECONDS, IDLE_TICK_SECONDS = 0.1, 0.5
# To the database, of all processes together when each answers; one alone may take half of them.
CONNECTIONS = 40
LEAST_CONNECTIONS = 6
# For the headers of a request, from the connection or from their first byte.
HEADER_SECONDS = 10.0
# Connections that one address may have open to one process, and files that are left for other things than connections.
MOST_OF_AN_ADDRESS, SPARE_FILES = 200, 200
_TOO_MANY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Turns:
    """How many connections each process has open, in memory that all of them share."""

    def __init__(self, processes: int) -> None:
        self._open = memoryview(mmap.mmap(-1, 4 * processes)).cast("I")
        self._own = 0
        self._waits = 0

    def belong_to(self, number: int) -> None:
        self._own = number
        self.count(0)

    def count(self, connections: int) -> None:
        self._open[self._own] = connections

    def is_mine(self) -> bool:
        """Whether this process takes the next connection: one with fewer is left a few milliseconds to do so."""
        if self._open[self._own] > min(self._open) and self._waits < MOST_WAITS:
            self._waits += 1
            time.sleep(WAIT_SECONDS)
            return False
        self._waits = 0
        return True

    def took_one(self) -> None:
        self._open[self._own] += 1


class Listener(socket.socket):
    """A socket that listens already, and which each process takes connections from in its turn, one at a time.

    asyncio takes as many at once as may wait in the backlog: the first process to wake would take a whole rush.
    """

    turns: Turns | None = None

    def listen(self, backlog: int = 0, /) -> None:
        """It does."""

    def accept(self) -> tuple[socket.socket, Any]:
        if self.turns is None:
            return super().accept()
        if not self.turns.is_mine():
            raise BlockingIOError
        taken = super().accept()
        self.turns.took_one()
        return taken


class BoundedConnection(H11Protocol):
    """A connection that is closed when a request's headers take too long, or when there are too many.

    Behind proxies all connections are of their addresses: those may have as many as they like.
    """

    network = ""
    _headers_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is None:
            return  # the supervisor's own
        self.network = network_of(self.client[0])
        most = MOST_OF_AN_ADDRESS if not settings.REST_FRAMEWORK["NUM_PROXIES"] else sys.maxsize
        of_this = sum(getattr(each, "network", "") == self.network for each in self.connections)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if of_this > most or len(self.connections) > files - SPARE_FILES:
            transport.write(_TOO_MANY)
            transport.close()
        else:
            self._time_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_headers()

    def _time_headers(self) -> None:
        """Begin the time of a request's headers, or end it when they are complete."""
        is_waiting = self.conn.their_state is h11.IDLE
        if is_waiting and self._headers_late is None:
            self._headers_late = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
        elif not is_waiting and self._headers_late is not None:
            self._headers_late.cancel()
            self._headers_late = None


class Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, turns: Turns) -> None:
        super().__init__(config)
        self._turns = turns

    async def main_loop(self) -> None:
        """As uvicorn's, which ticks ten times a second, but calmer while nobody is connected."""
        while not await self.on_tick(0):
            await asyncio.sleep(TICK_SECONDS if self.server_state.connections else IDLE_TICK_SECONDS)

    async def on_tick(self, counter: int) -> bool:
        self._turns.count(len(self.server_state.connections))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams have their grace; what is not written by then is left to other processes. Nothing runs after this:
        the signal that ended the server ends the process."""
        # Models cannot be imported before Django is set up.
        from chat.streaming.writing import leave_to_others

        await super().shutdown(sockets)
        await leave_to_others(SAVE_SECONDS)


@dataclass(frozen=True, slots=True)
class WebProcess:
    """One of the processes: ``bell`` tells it that another one has changed the queue of answers."""

    number: int
    public: Listener
    private: Listener
    bell: socket.socket
    turns: Turns

    @property
    def name(self) -> str:
        return f"web-{self.number + 1}"

    def run(self) -> None:
        """Serve until told to stop."""
        ADMISSION.belong_to(self.number)
        self.turns.belong_to(self.number)
        shared_metrics.count_as(self.name)
        telemetry.start(self.name)
        # Before the first question comes, rather than while it waits.
        prepare_model(lambda embedder: embedder.prepare())
        config = uvicorn.Config(
            "ragsite.asgi:application",
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="warning",
            backlog=1,
            http=BoundedConnection,
            # `X-Forwarded-For` and `-Proto` are read by DRF and Django, as NUM_PROXIES and HTTPS say, from nobody else.
            proxy_headers=False,
            timeout_graceful_shutdown=settings.WEB_GRACEFUL_SECONDS,
        )
        asyncio.run(self._serve(Server(config, self.turns)))

    async def _serve(self, server: uvicorn.Server) -> None:
        asyncio.get_running_loop().add_reader(self.bell, self._hear)
        warming = asyncio.create_task(self._ask_first_page())
        await server.serve([self.public, self.private])
        warming.cancel()

    async def _ask_first_page(self) -> None:
        """It takes longer than any later one: not while somebody waits for it."""
        reader, writer = await asyncio.open_unix_connection(self.private.getsockname())
        writer.write(request_text("/", headers_of_a_proxy()))
        await reader.read()
        writer.close()

    def _hear(self) -> None:
        self.bell.recv(4096)
        ADMISSION.wake_own()


def use_pool(processes: int) -> None:
    """Have each process keep a few connections, as streams give theirs back while they wait for a model."""
    if not settings.DATABASE_POOL_SIZE:
        size = max(LEAST_CONNECTIONS, CONNECTIONS // (processes + 1))
        for alias, database in connections.settings.items():
            database["OPTIONS"]["pool"] = pool_of(size, is_replica=alias != "default")
            database["CONN_MAX_AGE"] = 0


def serve(public: Listener, processes: int) -> None:
    """Stay until told to stop."""
    _soft, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with shared_metrics.shared_folder(settings.DATA_DIR) as folder:
        shared_metrics.share(folder)
        preload()
        load_model()
        use_pool(processes)
        public.turns = turns = Turns(processes)
        web = [
            WebProcess(number, public, _listen_in(folder, number), bell, turns)
            for number, bell in enumerate(ADMISSION.share(processes))
        ]
        supervised = [_supervised(each) for each in web]
        stop_seconds = settings.WEB_GRACEFUL_SECONDS + STOP_SECONDS
        supervisor = Supervisor(supervised, os.environ, settings.BASE_DIR, _say, stop_seconds)
        restarts = RestartsFile(settings.DATA_DIR, supervised, of="-web")
        connections.close_all()
        share_memory()

        def on_tick() -> None:
            ADMISSION.free_forgotten()
            restarts.keep_up()

        supervisor.run(on_tick)


def listen(host: str, port: int) -> Listener:
    """Raises: OSError when the address cannot be had."""
    listener = Listener(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    socket.socket.listen(listener, BACKLOG)
    return listener


def _listen_in(folder: Path, number: int) -> Listener:
    listener = Listener(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / f"{number}.sock"))
    socket.socket.listen(listener, BACKLOG)
    return listener


def _supervised(web: WebProcess) -> Process:
    probe = HttpProbe(socket.AF_UNIX, web.private.getsockname(), headers_of_a_proxy())
    on_end = functools.partial(_clear_after, web)
    return Process(web.name, work=web.run, on_end=on_end, watchdog=Watchdog(probe))


def _clear_after(web: WebProcess) -> None:
    ADMISSION.forget(web.number)
    shared_metrics.forget_states_of(web.name)


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m ragsite.web", description=__doc__)
    parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    django.setup(set_prefix=False)
    try:
        public = listen(arguments.host, arguments.port)
    except OSError as error:
        sys.exit(f"{arguments.host}:{arguments.port} cannot be used: {error.strerror}.")
    serve(public, settings.WEB_CONCURRENCY)


if __name__ == "__main__":
    main()
