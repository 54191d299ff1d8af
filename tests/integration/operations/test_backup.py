"""A site that is lost and comes back: its folder is deleted, and restored from a file."""

import json
import os
import shutil
import subprocess
import sys
import tarfile

import psycopg
import pytest

from ragsite.postgres.embedded import find_binaries
from tests.support.databases import create_database, url_of
from tests.support.site import ROOT

QUESTION = "How many grams does the pump weigh?"
DATABASE = "backup"


# Commands in one process, as `manage.py` runs each, and what each of them wrote: to start takes seconds.
SEVERAL = """
import contextlib, io, json, sys
from django.core.management import execute_from_command_line

results = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as written, contextlib.redirect_stderr(written):
        try:
            execute_from_command_line(["manage.py", *arguments])
            status = 0
        except SystemExit as ended:
            status = ended.code
    results.append((status, written.getvalue()))
print("RESULTS", json.dumps(results))
"""


class Site:
    """A data directory and a database, used by commands alone."""

    def __init__(self, data_dir, models):
        self.data_dir = data_dir
        self._models = models
        self._begin("migrated")

    def _begin(self, template):
        self.data_dir.mkdir()
        (self.data_dir / "models").symlink_to(self._models)
        create_database(DATABASE, template)

    def drop(self):
        with psycopg.connect(url_of("postgres"), autocommit=True) as server:
            server.execute(f"DROP DATABASE {DATABASE}")

    def lose(self):
        """Delete everything, and begin empty."""
        self.drop()
        shutil.rmtree(self.data_dir)
        self._begin("template1")

    def manage_all(self, *commands, fails=()):
        """Return the output of each command; those whose number is in ``fails`` are refused."""
        results = json.loads(self._run(["-c", SEVERAL, json.dumps(commands)]).partition("RESULTS ")[2])
        assert [number for number, (status, _) in enumerate(results) if status] == list(fails), results
        return [written for _, written in results]

    def _run(self, command):
        path = f"{find_binaries()}:{os.environ['PATH']}"
        environment = {**os.environ, "DATA_DIR": str(self.data_dir), "DATABASE_URL": url_of(DATABASE), "PATH": path}
        result = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
        output = result.stdout + result.stderr
        assert result.returncode == 0, output
        return output

    def killed(self, file, *steps):
        """Return the signal that ended each restore, the message of `serve` then, and the accounts."""
        return json.loads(self._run(["-c", KILLED, str(file), *steps]).partition("RESULTS ")[2])

    def originals(self):
        return sorted(path.read_bytes() for path in (self.data_dir / "media" / "documents").iterdir())


@pytest.fixture
def site(django_db_setup, tmp_path, model_cache):
    made = Site(tmp_path / "data", model_cache)
    yield made
    made.drop()


def _broken_tar(file):
    """Return the backup with half of its database."""
    broken = file.with_name("broken.tar")
    with tarfile.open(file) as whole, tarfile.open(broken, "w") as cut:
        for member in whole:
            content = whole.extractfile(member)
            if member.name == "database.dump":
                member.size //= 2
            cut.addfile(member, content)
    return broken


# A restore that is killed at each step in turn, before what is named is done; then what there is to do about it.
KILLED = """
import json, os, signal, sys
import django
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
from ragsite.operations import backups

def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def restore(file, at):
    if at == "COMMIT":
        read = backups.subprocess.run
        backups.subprocess.run = lambda *given, **named: (read(*given, **named), killed())
    else:
        setattr(backups, at, killed)
    call_command("restore", file, force=True, verbosity=0)

results = []
for at in sys.argv[2:]:
    child = os.fork()
    if not child:
        restore(sys.argv[1], at)
    status = os.waitpid(child, 0)[1]
    accounts = list(User.objects.order_by("pk").values_list("username", flat=True))
    # Closes the connection, which the next child must not share.
    results.append((os.WTERMSIG(status), backups.describe_interrupted_restore(), accounts))
print("RESULTS", json.dumps(results))
"""
TO_FINISH = "A restore was interrupted. Run `manage.py restore FILE --force` again to finish it."


def test_a_site_comes_back_from_a_restore_that_was_killed_and_from_the_loss_of_everything(site, tmp_path):
    file = tmp_path / "site.tar"
    (tmp_path / "pump.md").write_text("# Pump\n\nThe pump weighs 3450 grams.")
    _, made, told, again = site.manage_all(
        ("ingest", str(tmp_path / "pump.md"), "--collection", "manuals"),
        ("create_key", "robot", "--service"),
        ("backup", str(file)),
        ("backup", str(file)),
        fails=[3],
    )
    key = made.split()[-1]
    secret = (site.data_dir / "secret_key").read_text()
    assert "1 documents, 1 originals" in told
    assert "is there already" in again
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(site.data_dir.glob("backup-*"))
    originals = site.originals()

    # Later files are not in the backup. An incomplete backup replaces no data.
    (site.data_dir / "media" / "documents" / "late.md").write_text("late")
    (tmp_path / "text.tar").write_text("nothing")
    _, refused, broken, text = site.manage_all(
        ("create_key", "late", "--service"),
        ("restore", str(file)),
        ("restore", str(_broken_tar(file)), "--force"),
        ("restore", str(tmp_path / "text.tar"), "--force"),
        fails=[1, 2, 3],
    )
    assert "has data already" in refused
    assert "The database could not be replaced: pg_restore: error" in broken
    assert "cannot be read" in text

    # psql commits only after it has read the whole dump: the site is unchanged.
    assert site.killed(file, "COMMIT", "_replace_files", "migrate") == [
        [9, "", ["robot", "late"]],
        [9, TO_FINISH, ["robot"]],
        [9, TO_FINISH, ["robot"]],
    ]
    serve, _ = site.manage_all(("serve", "--port", "0"), ("restore", str(file), "--force"), fails=[0])
    assert TO_FINISH in serve
    assert site.originals() == originals

    site.lose()
    code = (
        "from django.db import DatabaseError\n"
        "from ragsite.accounts.keys import compute_digest\n"
        "from ragsite.models import ApiKey, AuditEntry\n"
        f"print(ApiKey.objects.filter(digest=compute_digest({key!r})).count(), 'key')\n"
        "try:\n"
        "    AuditEntry.objects.all().delete()\n"
        "except DatabaseError as error:\n"
        "    print(error)\n"
    )
    restored, answered, log, told = site.manage_all(
        ("restore", str(file)), ("ask", QUESTION), ("export_audit",), ("shell", "-c", code)
    )
    assert "1 documents" in restored
    assert site.originals() == originals
    assert (site.data_dir / "secret_key").read_text() == secret
    assert (site.data_dir / "demo-loaded").exists()
    assert "3450 grams" in answered
    assert all(action in log for action in ("key.added", "backup.made", "backup.restored"))
    assert "1 key" in told
    assert "append-only" in told
