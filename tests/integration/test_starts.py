"""Starts of `manage.py serve` that cannot succeed, or are interrupted: each ends with one sentence and a status."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import psycopg
import pytest

from ragsite.postgres.embedded import EmbeddedPostgres, find_binaries
from tests.support.site import ROOT, free_port, wait_until


class Start:
    """`manage.py COMMAND` in a terminal of its own, with a data directory."""

    def __init__(self, data_dir, *command, prefix=(), **environment):
        self.log = data_dir.with_name(f"{data_dir.name}-{free_port()}.log")
        self._log = self.log.open("wb")
        inherited = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "SECRET_KEY")}
        self.popen = subprocess.Popen(
            [*prefix, sys.executable, "manage.py", *(command or ("serve", "--port", str(free_port())))],
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**inherited, "DATA_DIR": str(data_dir), "RAGSITE_DOTENV": "false", "LANG": "C.UTF-8", **environment},
        )  # fmt: skip

    def says(self, words):
        return words in self.log.read_text()

    def wait_for(self, words):
        wait_until(lambda: self.says(words) or self.popen.poll() is not None, 120, words)
        assert self.says(words), self.log.read_text()

    def ended(self, seconds=120):
        """Return its last output, one sentence or two; assert that it failed without a traceback."""
        status = self.popen.wait(seconds)
        written = self.log.read_text()
        assert status not in (0, -signal.SIGSEGV, -signal.SIGKILL), written
        assert "Traceback" not in written, written
        return written.strip().splitlines()[-1]

    def end(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            self.popen.wait(60)
        self._log.close()


@pytest.fixture
def tmp_path():
    """Not below pytest's own folder: each of its runs closes that to the account of PostgreSQL again."""
    folder = Path(tempfile.mkdtemp(prefix="ragsite-starts-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(tmp_path, model_cache):
    started = []

    def begin(*command, folder="data", **options):
        data_dir = tmp_path / folder
        if not data_dir.exists():
            data_dir.mkdir()
            (data_dir / "models").symlink_to(model_cache)
        started.append(Start(data_dir, *command, **options))
        return started[-1]

    yield begin
    for each in reversed(started):
        each.end()
    # Children of one that was killed.
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(tmp_path) in f"{process.environ().get('DATA_DIR')} {process.cmdline()}":
                process.kill()


@pytest.mark.parametrize("holds", ["nothing", "a key", "a file in its place"])
def test_a_data_directory_that_cannot_be_written(start, tmp_path, holds):
    data_dir = tmp_path / "data"
    if holds == "a file in its place":
        data_dir.write_text("")
    else:
        data_dir.mkdir()
        if holds == "a key":
            (data_dir / "secret_key").write_text("x" * 60)
        data_dir.chmod(0o555)
    # Root may write everywhere, unless it has no capability.
    prefix = ["setpriv", "--bounding-set=-all"] if os.geteuid() == 0 else []
    for command in ((), ("backup", str(tmp_path / "a.tar")), ("migrate",)):
        sentence = start(*command, prefix=prefix).ended()
        assert "DATA_DIR" in sentence
        assert str(data_dir) in sentence


def test_ctrl_c_during_a_first_start_ends_all_that_was_begun(start, tmp_path):
    first = start()
    first.wait_for("Preparing the database")
    os.killpg(first.popen.pid, signal.SIGINT)
    assert first.ended() == "Interrupted. The same command begins again where this one ended."
    data_dir = str(tmp_path / "data")
    wait_until(lambda: not [each for each in psutil.process_iter(["cmdline"]) if data_dir in str(each.info)], 60)
    # A process that the terminal does not reach, such as by `kill -INT`, continues from there.
    again = start()
    again.wait_for("Reading the demo documents")
    again.popen.send_signal(signal.SIGINT)
    assert again.ended().startswith("Interrupted.")


def test_a_second_site_on_the_same_files_is_refused(start):
    first = start()
    first.wait_for("Starting PostgreSQL")
    assert "stop it first, or set another DATA_DIR" in start().ended()
    first.popen.kill()
    first.popen.wait(30)
    # The lock ends with the process, whatever its children still do.
    again = start()
    again.wait_for("Starting PostgreSQL")


def test_a_setting_that_is_wrong_is_named(start):
    assert "OIDC_CLIENT_ID" in start(OIDC_SERVER_URL="https://sso.example/").ended()


def test_a_postgresql_without_pgvector(start, tmp_path):
    """It uses the embedded server's programs, without the files of the extension."""
    package = find_binaries().parents[1]
    programs = tmp_path / "packages" / package.name / "pginstall"
    shutil.copytree(package / "pginstall", programs, symlinks=True)
    for libraries in package.parent.glob(f"{package.name}.libs"):
        shutil.copytree(libraries, tmp_path / "packages" / libraries.name, symlinks=True)
    for control in programs.rglob("vector.control"):
        control.unlink()
    server = EmbeddedPostgres(tmp_path / "server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragsite.postgres.embedded.find_binaries", lambda: programs / "bin")
        server.data_dir.mkdir()
        server.ensure_running()
        try:
            with psycopg.connect(server.url) as connection:
                assert not connection.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'").fetchall()
            for command in ((), ("migrate",)):
                assert "has no pgvector" in start(*command, DATABASE_URL=server.url).ended()
        finally:
            server.stop()
