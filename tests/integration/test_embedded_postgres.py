"""The embedded server under rough treatment. These tests share a server of their own."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from ragsite.postgres.embedded import LONGEST_SOCKET_DIR, EmbeddedPostgres, EmbeddedPostgresError
from tests.support.site import wait_until

ROOT = Path(__file__).resolve().parents[2]
# A run of tests in the background of a shell ignores the interrupt, and so would its children.
USER = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
from ragsite.postgres.embedded import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1])).acquire_server()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def shared():
    """Return a server that was killed during its first start; the first test sets it up."""
    with tempfile.TemporaryDirectory(prefix="ragsite-server-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "postgres.new" / "base").mkdir(parents=True)
        server = EmbeddedPostgres(Path(folder))
        yield server
        server.release_server()
        wait_until(lambda: is_over(server), 60, "the end of the server")


@pytest.fixture
def server(shared):
    """Return the running server, of which this process is the only user."""
    shared.acquire_server()
    shared.ensure_running()
    return shared


@pytest.fixture
def stopped(shared):
    """Return the server after its last user has left."""
    shared.acquire_server()
    shared.release_server()
    wait_until(lambda: is_over(shared), 60, "the end of the server")
    return shared


def is_over(server):
    return not server.is_running() and guardian(server) is None


def start_user(server):
    command = [sys.executable, "-c", USER, str(server.data_dir)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def another_user(server):
    process = start_user(server)
    assert process.stdout.readline() == "ready\n"
    return process


def postmaster(server):
    return psutil.Process(server._read_postmaster_pid())


def test_two_at_once_set_one_server_up_and_the_last_one_stops_it(shared):
    users = [start_user(shared) for _ in range(2)]
    for user in users:
        assert user.stdout.readline() == "ready\n"
    for user in users:
        with psycopg.connect(shared.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        user.send_signal(signal.SIGINT)
        user.wait(60)
    # The last user stops it or, if that one saw it at work, the guardian.
    wait_until(lambda: is_over(shared), 60, "the end of the server")


def test_it_carries_pgvector_and_is_tuned(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        assert tuple(map(int, row[0].split("."))) >= (0, 8, 6)
        assert connection.execute("SHOW jit").fetchone() == ("off",)
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)
    # The stored data fit in its memory, up to a quarter of the machine's.
    assert [server._compute_buffers_mib(memory) for memory in (1_000, 8_000, 64_000)] == [250, 1024, 1024]
    large = server.cluster / "base" / "large"
    large.touch()
    os.truncate(large, 5_000 * 2**20)
    assert server._compute_buffers_mib(8_000) == 2_000
    assert 5_000 <= server._compute_buffers_mib(64_000) < 5_100
    large.unlink()


def test_killed_it_starts_again_with_all_its_rows(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    process = postmaster(server)
    process.kill()
    process.wait(60)
    assert not server.is_running()
    server.ensure_running()
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_a_recycled_process_id_is_not_mistaken_for_the_server(server):
    server.stop()
    # The process has the server's account and is no ancestor of it: PostgreSQL would take it for a running server.
    other = subprocess.Popen(["sleep", "60"], user=server._find_server_user())
    try:
        lock_file = f"{other.pid}\n{server.cluster}\n{int(time.time())}\n5432\n{server.socket_dir}\n\n0 0\nready\n"
        (server.cluster / "postmaster.pid").write_text(lock_file)
        assert not server.is_running()
        server.ensure_running()
        assert server.is_running()
    finally:
        other.kill()
        other.wait(60)


@pytest.mark.parametrize("name", ["with space", "x" * LONGEST_SOCKET_DIR, "quo'te"])
def test_awkward_folders_get_their_socket_elsewhere(tmp_path, name):
    server = EmbeddedPostgres(tmp_path / name)
    assert not server.socket_dir.is_relative_to(tmp_path)
    assert len(os.fsencode(server.socket_dir)) <= LONGEST_SOCKET_DIR


def test_a_cluster_that_cannot_start_says_why(server):
    server.stop()
    configuration_file = server.cluster / "postgresql.conf"
    before = configuration_file.read_text()
    configuration_file.write_text(f"{before}\nno_such_setting = 1\n")
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        server.ensure_running()
    configuration_file.write_text(before)


def guardian(server):
    """Return the process that waits for the server's last user."""
    found = (p for p in psutil.process_iter(["cmdline"]) if str(server.data_dir) in (p.info["cmdline"] or []))
    return next((p for p in found if "postgres/guardian.py" in " ".join(p.info["cmdline"])), None)


def waits_for_lock(process):
    """Return whether the kernel lists the process as waiting for a file lock."""
    return process is not None and any(
        line.split()[1] == "->" and str(process.pid) in line.split()
        for line in Path("/proc/locks").read_text().splitlines()
    )


def test_it_outlives_the_first_user_and_none_when_all_are_killed(stopped):
    users = [another_user(stopped), another_user(stopped)]
    users[0].kill()
    users[0].wait(60)
    wait_until(lambda: waits_for_lock(guardian(stopped)), 60, "the guardian waiting for the other user")
    assert stopped.is_running()
    assert guardian(stopped) is not None
    users[1].kill()
    users[1].wait(60)
    wait_until(lambda: is_over(stopped), 60, "the end of the server and of the guardian")


def test_a_killed_guardian_is_replaced(server):
    first = guardian(server)
    first.kill()
    first.wait(60)
    server.ensure_guardian_running()
    second = guardian(server)
    assert second is not None
    server.ensure_guardian_running()
    assert guardian(server) == second


def test_who_comes_while_the_guardian_stops_it_finds_it_running(server):
    for _ in range(2):
        server.release_server()
        server.acquire_server()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        wait_until(lambda: guardian(server) is not None, 60, "a guardian")
