"""A Citus cluster of three servers for the tests: ``python -m tests.support.citus_cluster PGDIR COMMAND...``.

PGDIR is a PostgreSQL with Citus and pgvector (``PGDIR/bin/initdb``). The command finds the coordinator under
TEST_CITUS_URL; the servers and their data go with it.
"""

import os
import pwd
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_preload_libraries = 'citus'
max_connections = 200
max_prepared_transactions = 200
shared_buffers = 128MB
wal_level = logical
fsync = off
"""


def run(pgdir, program, *arguments, user=None):
    """One of PostgreSQL's programs, as the account that owns the data: root may not be it."""
    if os.getuid() == 0 and not user:
        raise PermissionError("PostgreSQL does not run as root.")
    subprocess.run(
        [str(pgdir / "bin" / program), *arguments],
        check=True,
        user=user if os.getuid() == 0 else None,
        env=_environment(pgdir),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        # A server started keeps what it was given.
        close_fds=True,
    )


def _environment(pgdir):
    """In which the PostgreSQL's own programs are found, and its libraries."""
    path = f"{pgdir}/bin:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": f"{pgdir}/lib:{pgdir}/libs"}


@contextmanager
def cluster(pgdir, workers=2):
    """Yield the address of the coordinator's database, as long as the servers run."""
    account = pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else os.getuid()
    with tempfile.TemporaryDirectory(prefix="ragsite-citus-") as folder:
        os.chown(folder, account, -1)
        ports = _free_ports(workers + 1)
        try:
            for port in ports:
                data = Path(folder) / str(port)
                options = ["-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C"]
                run(pgdir, "initdb", "-D", str(data), *options, user=account)
                with (data / "postgresql.conf").open("a") as configuration:
                    configuration.write(f"port = {port}\n{SETTINGS}")
                run(pgdir, "pg_ctl", "-D", str(data), "-l", str(data / "log"), "-w", "start", user=account)
                with psycopg.connect(_url(port, "postgres"), autocommit=True) as server:
                    server.execute("CREATE DATABASE ragsite")
                with psycopg.connect(_url(port, "ragsite"), autocommit=True) as server:
                    server.execute("CREATE EXTENSION citus")
            with psycopg.connect(_url(ports[0], "ragsite"), autocommit=True) as server:
                server.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [ports[0]])
                for port in ports[1:]:
                    server.execute("SELECT citus_add_node('127.0.0.1', %s)", [port])
            yield _url(ports[0], "ragsite")
        finally:
            for port in reversed(ports):
                data = Path(folder) / str(port)
                if (data / "postmaster.pid").exists():
                    run(pgdir, "pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop", user=account)


def _free_ports(number):
    probes = [socket.socket() for _ in range(number)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _url(port, database):
    return f"postgresql://postgres@127.0.0.1:{port}/{database}"


def main():
    pgdir, command = Path(sys.argv[1]).resolve(), sys.argv[2:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # the servers are stopped on the way out
    with cluster(pgdir) as url:
        return subprocess.run(
            command, env={**_environment(pgdir), "TEST_CITUS_URL": url, "TEST_CITUS_PGDIR": str(pgdir)}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
