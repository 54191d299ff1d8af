"""A streaming replica of the embedded PostgreSQL: the same programs, in a folder of its own."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.conf import settings
from django.db import connection

from ragsite.postgres.cluster import binaries
from tests.support.site import wait_until

# Servers that listen at sockets of one folder differ by their port.
PORT = 5499


class Standby:
    def __init__(self, folder: Path) -> None:
        self._embedded = settings.EMBEDDED_POSTGRES
        self._user = self._embedded._server_user()
        self._data = folder / "standby"
        self._sockets = self._embedded.socket_dir
        self._server: subprocess.Popen[bytes] | None = None
        self._log = folder / "standby.log"
        if self._user:
            shutil.chown(folder, self._user, self._user)
            folder.chmod(0o755)
        # Whole pages are written to the log while it is copied, also where the server does not write them otherwise.
        self._run(
            "pg_basebackup", "-h", str(self._sockets), "-U", "postgres", "-D", str(self._data), "-R", "-c", "fast"
        )

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/{connection.settings_dict['NAME']}?host={self._sockets}&port={PORT}"

    def start(self) -> None:
        command = [str(binaries() / "postgres"), "-D", str(self._data), "-p", str(PORT)]
        self._server = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=self._log.open("ab"),
            user=self._user,
            group=self._user,
            start_new_session=True,
        )
        wait_until(self._answers, 60, "the replica")

    def kill(self) -> None:
        processes = self._processes()
        for process in processes:
            process.kill()
        psutil.wait_procs(processes[1:], 10)
        assert self._server is not None
        self._server.wait(10)
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It takes connections, and says nothing."""
        processes = self._processes()
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def stop(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(30)

    def execute(self, statement: str) -> Any:
        with psycopg.connect(self.url, autocommit=True) as server:
            cursor = server.execute(statement)
            return cursor.fetchone() if cursor.description else None

    def replay(self) -> None:
        """Wait until it holds all that the primary does."""
        with connection.cursor() as cursor:
            # The tests' server writes its log a moment after it has said that something is saved; this makes it do so.
            cursor.execute("SELECT pg_logical_emit_message(false, 'tests', '', true)")
            position = cursor.fetchone()[0]
        wait_until(
            lambda: self.execute(f"SELECT pg_last_wal_replay_lsn() >= '{position}'") == (True,), 30, "the replica"
        )

    def _processes(self) -> list[psutil.Process]:
        assert self._server is not None
        server = psutil.Process(self._server.pid)
        return [server, *server.children(recursive=True)]

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            return self.execute("SELECT pg_is_in_recovery()") == (True,)
        return False

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(binaries() / program), *arguments]
        subprocess.run(command, user=self._user, group=self._user, check=True, capture_output=True, cwd="/")


@contextmanager
def standby(folder: Path) -> Iterator[Standby]:
    server = Standby(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
