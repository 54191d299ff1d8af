"""A site that is lost and comes back: its folder is deleted, and restored from a file."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragsite.postgres.embedded import GUARDIAN_FILE, EmbeddedPostgres
from tests.support.site import ROOT, wait_until

QUESTION = "How many grams does the pump weigh?"


class Site:
    """A site of its own, with its embedded database, that is used by commands alone."""

    def __init__(self, data_dir: Path, models: Path) -> None:
        self.data_dir = data_dir
        self._models = models
        self._server = EmbeddedPostgres(data_dir)
        self.start()

    def start(self) -> None:
        """Keep the database running between the commands, each of which would start and stop it."""
        self.data_dir.mkdir()
        self._models.mkdir(parents=True, exist_ok=True)
        (self.data_dir / "models").symlink_to(self._models)
        self._server.acquire()

    def stop(self) -> None:
        self._server.release()

    def manage(self, *arguments: str, fails: bool = False) -> str:
        environment = {**os.environ, "DATA_DIR": str(self.data_dir), "RAGSITE_DOTENV": "false"}
        environment.pop("DATABASE_URL", None)
        result = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        output = result.stdout + result.stderr
        assert (result.returncode != 0) is fails, output
        return output

    def lose(self) -> None:
        """Delete everything, and begin with nothing."""
        self.stop()
        # The guardian may stop the database in our place, and would find it deleted under its hands.
        wait_until(self._is_left, seconds=120, what="the guardian to leave")
        shutil.rmtree(self.data_dir)
        self.start()

    def _is_left(self) -> bool:
        with (self.data_dir / GUARDIAN_FILE).open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return not self._server.is_running()

    def originals(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in (self.data_dir / "media" / "documents").iterdir())


@pytest.fixture
def site(server_folder: Path, model_cache: Path) -> Iterator[Site]:
    made = Site(server_folder / "data", model_cache)
    yield made
    made.stop()


def test_a_lost_site_comes_back_and_answers(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "site.tar"
    (tmp_path / "pump.md").write_text("# Pump\n\nThe pump weighs 3450 grams.")
    site.manage("ingest", str(tmp_path / "pump.md"), "--collection", "manuals")
    key = site.manage("create_key", "robot", "--service").split()[-1]
    secret = (site.data_dir / "secret_key").read_text()
    assert "3450 grams" in site.manage("ask", QUESTION)
    assert "1 documents, 1 originals" in site.manage("backup", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(site.data_dir.glob("backup-*"))
    originals = site.originals()
    assert "is there already" in site.manage("backup", str(file), fails=True)
    # What came after the backup is not in it.
    (tmp_path / "valve.md").write_text("# Valve\n\nThe valve opens at 7 bar.")
    site.manage("ingest", str(tmp_path / "valve.md"), "--collection", "manuals")

    assert "has data already" in site.manage("restore", str(file), fails=True)
    site.manage("restore", str(file), "--force")
    assert site.originals() == originals
    assert "7 bar" not in site.manage("ask", "At how many bar does the valve open?")

    site.lose()
    assert "1 documents" in site.manage("restore", str(file))
    assert site.originals() == originals
    assert (site.data_dir / "secret_key").read_text() == secret
    assert (site.data_dir / "demo-loaded").exists()
    assert "3450 grams" in site.manage("ask", QUESTION)
    log = site.manage("export_audit")
    assert [action for action in ("key.added", "backup.made", "backup.restored") if action in log] == [
        "key.added",
        "backup.made",
        "backup.restored",
    ]
    code = (
        "from ragsite.keys.issuing import digest_of; from ragsite.models import ApiKey, AuditEntry;"
        f"print(ApiKey.objects.filter(digest=digest_of({key!r})).count());"
        "AuditEntry.objects.all().delete()"
    )
    told = site.manage("shell", "-c", code, fails=True)
    assert "append-only" in told
    assert told.splitlines()[-1] != "0"


def test_a_broken_backup_replaces_nothing(site: Site, tmp_path: Path) -> None:
    file, broken = tmp_path / "site.tar", tmp_path / "broken.tar"
    (tmp_path / "pump.md").write_text("# Pump\n\nThe pump weighs 3450 grams.")
    site.manage("ingest", str(tmp_path / "pump.md"), "--collection", "manuals")
    site.manage("backup", str(file))
    with tarfile.open(file) as whole, tarfile.open(broken, "w") as cut:
        for member in whole:
            content = whole.extractfile(member)
            if member.name == "database.dump":
                member.size //= 2
            cut.addfile(member, content)
    assert "pg_restore failed" in site.manage("restore", str(broken), "--force", fails=True)
    assert "not a backup" in site.manage("restore", str(_empty_tar(tmp_path)), "--force", fails=True)
    (tmp_path / "text.tar").write_text("nothing")
    assert "cannot be read" in site.manage("restore", str(tmp_path / "text.tar"), "--force", fails=True)
    assert "3450 grams" in site.manage("ask", QUESTION)


def _empty_tar(folder: Path) -> Path:
    with tarfile.open(folder / "empty.tar", "w"):
        return folder / "empty.tar"
