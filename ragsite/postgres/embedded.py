"""A real PostgreSQL for sites that have no database server, shared by the processes of a data directory."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ragsite.postgres.cluster import PostgresCluster

USERS_FILE = ".postgres-users"
GUARDIAN_FILE = ".postgres-guardian"


class EmbeddedPostgres(PostgresCluster):
    """The server, started for its first user and stopped after its last one."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self._users_file: IO[bytes] | None = None
        self._user_pid = 0

    def acquire(self) -> None:
        """Start the server if it is not running, and count this process as its user until it exits.

        Raises: EmbeddedPostgresError.
        """
        if self._users_file is not None and self._user_pid == os.getpid():
            return
        self.data_dir.mkdir(parents=True, exist_ok=True)
        users_file = (self.data_dir / USERS_FILE).open("a+b")
        with self._start_or_stop_lock():
            fcntl.flock(users_file, fcntl.LOCK_SH)
            self._users_file, self._user_pid = users_file, os.getpid()
            self.ensure_running()
            self.ensure_guarded()
        atexit.register(self.release)

    def release(self) -> None:
        """Stop counting this process as a user; the last user stops the server."""
        # A forked child shares its parent's lock and must not give it up.
        if self._users_file is None or self._user_pid != os.getpid():
            return
        self._users_file.close()
        self._users_file = None
        self.stop_if_unused()

    def stop_if_unused(self) -> None:
        """Stop the server unless somebody counts as its user."""
        with (self.data_dir / USERS_FILE).open("a+b") as users_file, self._start_or_stop_lock():
            try:
                fcntl.flock(users_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            if self.is_running():
                self.stop()

    def ensure_guarded(self) -> None:
        """Start the guardian if there is none: see :mod:`ragsite.postgres.guardian`."""
        with (self.data_dir / GUARDIAN_FILE).open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guardian.py"))]
        # It leaves itself behind, and returns when it has the lock.
        subprocess.run(
            [*command, str(self.data_dir), str(Path(__file__).parents[2])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )

    @contextlib.contextmanager
    def _start_or_stop_lock(self) -> Iterator[None]:
        with (self.data_dir / ".postgres-lock").open("a+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
