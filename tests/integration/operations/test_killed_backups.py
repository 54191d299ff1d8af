"""Backups and restores that are killed: the next one, or the next start, removes what they left."""

import os
import signal
import subprocess
import sys

import pytest

from ragsite.postgres.embedded import find_binaries
from tests.integration.operations.test_backup import DATABASE, Site
from tests.support.databases import url_of
from tests.support.site import ROOT, WebServer

# A command that kills itself before the step that is named, or waits there until its standard input ends.
STOPPED = """
import os, signal, sys, tarfile
from django.core.management import execute_from_command_line
at, how, *command = sys.argv[1:]

def stop(*_, **__):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    print("HERE", flush=True)
    sys.stdin.read()
    raise SystemExit("It was let go.")

if at == "packing":
    tarfile.TarFile.add = stop
else:
    import django
    django.setup()
    from ragsite.operations import backups
    setattr(backups, at, stop)
execute_from_command_line(["manage.py", *command])
"""


@pytest.fixture
def site(django_db_setup, tmp_path, model_cache):
    made = Site(tmp_path / "data", model_cache)
    media = made.data_dir / "media" / "documents"
    media.mkdir(parents=True)
    (media / "original.md").write_text("original")
    (tmp_path / "backups").mkdir()
    yield made
    made.drop()


def stopped(site, at, how, *command):
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "ragsite.settings",
        "DATA_DIR": str(site.data_dir),
        "DATABASE_URL": url_of(DATABASE),
        "PATH": f"{find_binaries()}:{os.environ['PATH']}",
    }
    return subprocess.Popen(
        [sys.executable, "-c", STOPPED, at, how, *command], cwd=ROOT, env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def killed(site, at, *command):
    assert stopped(site, at, "kill", *command).wait(120) == -signal.SIGKILL


def test_what_a_killed_backup_left_is_removed_by_the_next(site, tmp_path):
    backups = tmp_path / "backups"
    killed(site, "packing", "backup", str(backups / "a.tar"))
    assert any(path.name == "database.dump" for path in site.data_dir.rglob("*"))
    (site.data_dir / "backup-of-mine").mkdir()
    (site.data_dir / "backup-of-mine" / "database.dump").write_text("kept")
    site.manage_all(("backup", str(backups / "b.tar")))
    dumps = [path for path in site.data_dir.rglob("*") if path.name == "database.dump"]
    assert dumps == [site.data_dir / "backup-of-mine" / "database.dump"]
    assert [path.name for path in backups.iterdir()] == ["b.tar"]
    assert [path.name for path in site.data_dir.rglob("original.md")] == ["original.md"]

    killed(site, "_replace_files", "restore", str(backups / "b.tar"), "--force")
    assert len([path for path in site.data_dir.rglob("*") if path.name == "database.dump"]) == 2
    site.manage_all(("restore", str(backups / "b.tar"), "--force"))
    assert [path for path in site.data_dir.rglob("*") if path.name == "database.dump"] == dumps
    assert site.originals() == [b"original"]


def test_what_it_left_is_removed_by_the_next_start_but_for_what_runs(site, tmp_path):
    backups = tmp_path / "backups"
    killed(site, "packing", "backup", str(backups / "a.tar"))
    (left,) = {path.parent for path in site.data_dir.rglob("database.dump")}
    running = {"DATABASE_URL": url_of(DATABASE), "DATA_DIR": str(site.data_dir)}
    server = WebServer(tmp_path / "web.log", **running)
    assert not left.exists()
    server.stop()

    working = stopped(site, "packing", "wait", "backup", str(backups / "c.tar"))
    assert "HERE" in working.stdout.readline()
    (held,) = {path.parent for path in site.data_dir.rglob("database.dump")}
    server = WebServer(tmp_path / "web.log", **running)
    assert held.exists()
    (told,) = site.manage_all(("backup", str(backups / "d.tar")), fails=[0])
    assert "Another backup or restore is running" in told
    server.stop()
    working.communicate("", timeout=60)
    assert not held.exists()
