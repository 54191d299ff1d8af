"""Backup and restore of a site: one tar file with a manifest, a dump of the database, and the originals."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from ragsite.postgres.cluster import EmbeddedPostgresError, binaries
from retrieval.documents.storage import is_in_a_folder
from retrieval.index.distribution import has_citus
from retrieval.management.prepared import migrate
from retrieval.models import Collection

FORMAT = 1
MANIFEST, DUMP, SECRET_KEY, MEDIA = "manifest.json", "database.dump", "secret_key", "media"
_CLUSTER = "This database is one of a Citus cluster, which has backups of its own: docs/citus.md."


class BackupError(Exception):
    """A backup cannot be made or restored. For the operator."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """``migrations`` are those that were applied, as “app.name”; ``missing`` names originals that the site lacked.
    ``files`` counts those that are in the backup: none of a bucket."""

    format: int
    made_at: str
    migrations: list[str]
    documents: int
    files: int
    missing: list[str]


def make_backup(file: Path) -> Manifest:
    """Write the database and the originals of its documents, as they were at one moment, to ``file``.

    The site may run meanwhile. Originals in a bucket are left there. Raises: BackupError.
    """
    if has_citus():
        raise BackupError(_CLUSTER)
    if file.exists():
        raise BackupError(f"{file} is there already: choose another name.")
    unfinished = file.with_name(f".{file.name}.part")
    try:
        unfinished.unlink(missing_ok=True)
        # O_EXCL: not a file that somebody else made beforehand, to read what is written.
        opened = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        # In DATA_DIR, so that originals can be linked: that is quick, and keeps those that are deleted meanwhile.
        with (
            os.fdopen(opened, "wb") as output,
            tempfile.TemporaryDirectory(prefix="backup-", dir=settings.DATA_DIR) as folder,
        ):
            manifest = _collect(Path(folder))
            with tarfile.open(fileobj=output, mode="w") as archive:
                for path in Path(folder).iterdir():
                    archive.add(path, path.name)
            output.flush()
            os.fsync(output.fileno())
        unfinished.rename(file)
    except OSError as error:
        raise BackupError(f"{file} could not be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


def _collect(held: Path) -> Manifest:
    """Everything of a backup, as files in ``held``."""
    with connect() as snapshot:
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with transaction.atomic(), connection.cursor() as cursor:
            # While it is locked no document is added or deleted: the snapshot and the files are of one moment.
            cursor.execute("LOCK TABLE retrieval_document IN SHARE MODE")
            (snapshot_id,) = snapshot.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
            names = {name for (name,) in snapshot.execute("SELECT file FROM retrieval_document WHERE file <> ''")}
            missing = [name for name in sorted(names) if not _link(name, held / MEDIA)] if is_in_a_folder() else []
        arguments = ["--format=custom", f"--snapshot={snapshot_id}", f"--file={held / DUMP}"]
        dumping, environment = on_database("pg_dump", *arguments)
        dumped = subprocess.run(dumping, env=environment, capture_output=True, text=True, check=False)
        if dumped.returncode:
            raise BackupError(f"pg_dump failed: {dumped.stderr.strip()}")
    key = Path(settings.DATA_DIR) / SECRET_KEY
    if key.exists():
        shutil.copy2(key, held)
    manifest = Manifest(
        format=FORMAT,
        made_at=timezone.now().isoformat(),
        migrations=sorted(".".join(applied) for applied in MigrationRecorder(connection).applied_migrations()),
        documents=len(names),
        files=len(names) - len(missing) if is_in_a_folder() else 0,
        missing=missing,
    )
    (held / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2))
    return manifest


def _link(name: str, media: Path) -> bool:
    """Whether the original is there, and in ``media`` now."""
    original, kept = Path(settings.MEDIA_ROOT) / name, media / name
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(original, kept)
    except FileNotFoundError:
        return False
    except OSError:  # a disk without links
        shutil.copy2(original, kept)
    return True


def program(name: str) -> str:
    """Where a program of PostgreSQL is: the embedded server's, or for another server the machine's, if it has one.

    Raises: BackupError.
    """
    installed = shutil.which(name) if settings.EMBEDDED_POSTGRES is None else None
    try:
        return installed or str(binaries() / name)
    except EmbeddedPostgresError as error:
        raise BackupError(f"{name} is not installed: install PostgreSQL's client programs.") from error


def on_database(name: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """A program on the site's database, as a command and its environment, which holds the password."""
    options = {key: value for key, value in connection.settings_dict["OPTIONS"].items() if key != "pool"}
    # As Django calls psql: options of the connection, and the database behind them.
    psql, variables = DatabaseClient.settings_to_cmd_args_env({**connection.settings_dict, "OPTIONS": options}, [])
    command = [program(name), *psql[1:-1], "--no-password", "--dbname", psql[-1], *arguments]
    return command, os.environ | (variables or {})


def connect() -> psycopg.Connection:
    """A connection of its own, outside Django's pool, to be used in a `with` statement."""
    parameters = connection.get_connection_params()
    for ours in ("pool", "cursor_factory", "context"):
        parameters.pop(ours, None)
    return psycopg.connect(**parameters)


# Before the dump's own statements. Django's tables are in the schema public; a broker may have one of its own.
_BEGIN = b"""
SET client_min_messages = warning;
BEGIN;
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
END $$;
CREATE SCHEMA public AUTHORIZATION pg_database_owner;
"""
# After them. The table is there as long as files and migrations are not what the database is.
_COMMIT = b"""
CREATE TABLE IF NOT EXISTS public.ragsite_unfinished_restore ();
COMMIT;
"""


def restore_backup(file: Path, *, replace: bool = False) -> Manifest:
    """Make the site what it was when the backup was made; the database of an older release is migrated.

    What is there is replaced only with ``replace``. Until the new database is whole, the site stays as it is; from then
    on it does not start before files and migrations are done, too, and restoring again does them. Raises: BackupError.
    """
    if has_citus():
        raise BackupError(_CLUSTER)
    try:
        with tarfile.open(file) as archive:
            manifest = _read_manifest(archive)
            _check_target(replace=replace)
            with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.DATA_DIR) as folder:
                archive.extractall(folder, filter="data")
                _restore_database(Path(folder) / DUMP)
                _replace_files(Path(folder))
    except (tarfile.TarError, EOFError, FileNotFoundError) as error:
        raise BackupError(f"{file} cannot be read: {error}") from error
    # A site that begins anew would read its demo documents.
    (Path(settings.DATA_DIR) / "demo-loaded").touch()
    migrate()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE public.ragsite_unfinished_restore")
    return manifest


def interrupted_restore() -> str:
    """What to do about a restore that was interrupted, in a sentence; empty when none was."""
    with connect() as link:
        row = link.execute("SELECT to_regclass('public.ragsite_unfinished_restore') IS NOT NULL").fetchone()
    if row != (True,):
        return ""
    return "A restore was interrupted. Run `manage.py restore FILE --force` again to finish it."


def _read_manifest(archive: tarfile.TarFile) -> Manifest:
    """Raises: BackupError for what is no backup of this site, one of a newer release, or one of another form."""
    try:
        file = archive.extractfile(MANIFEST)
        manifest = Manifest(**json.load(file))  # type: ignore[arg-type]  # None, of a folder of this name, cannot be read
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BackupError("This is not a backup of Ragsite: it has no manifest that can be read.") from error
    if manifest.format != FORMAT:
        raise BackupError(f"This backup has form {manifest.format}; this release reads form {FORMAT}.")
    here = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    # A squashed migration is recorded with the ones that it replaces.
    known = {".".join(key) for own, migration in here.items() for key in (own, *migration.replaces)}
    if unknown := sorted(set(manifest.migrations) - known):
        raise BackupError(f"The backup is of a newer release, whose {unknown[0]} this one does not know.")
    return manifest


def _check_target(*, replace: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        if cursor.fetchone()[0]:
            raise BackupError("The site is running: stop it first.")
        is_filled = "auth_user" in connection.introspection.table_names(cursor) and (
            get_user_model()._default_manager.exists() or Collection.objects.exists()
        )
    media = Path(settings.MEDIA_ROOT)
    if not replace and (is_filled or (is_in_a_folder() and media.is_dir() and any(media.rglob("*.*")))):
        raise BackupError("This site has data already: restoring would replace it. Use --force to do so.")


def _restore_database(dump: Path) -> None:
    """Replace the database, in one transaction: when this process ends before the commit, psql ends without it."""
    connection.close()
    reading = [program("pg_restore"), "--file=-", "--no-owner", "--no-privileges", "--no-comments", str(dump)]
    writing, environment = on_database("psql", "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1")
    with tempfile.TemporaryFile() as errors:
        psql = subprocess.Popen(writing, env=environment, stdin=subprocess.PIPE, stderr=errors)
        assert psql.stdin is not None
        is_read = False
        with contextlib.suppress(BrokenPipeError), psql.stdin:
            psql.stdin.write(_BEGIN)
            psql.stdin.flush()
            is_read = subprocess.run(reading, stdout=psql.stdin, stderr=errors, check=False).returncode == 0
            if is_read:
                psql.stdin.write(_COMMIT)
        if psql.wait() or not is_read:
            errors.seek(0)
            raise BackupError(f"The database could not be replaced: {errors.read().decode(errors='replace').strip()}")


def _replace_files(unpacked: Path) -> None:
    if is_in_a_folder():
        media, restored = Path(settings.MEDIA_ROOT), unpacked / MEDIA
        before = media.with_name("media.before")
        restored.mkdir(exist_ok=True)
        shutil.rmtree(before, ignore_errors=True)
        if media.exists():
            media.rename(before)
        restored.rename(media)
        shutil.rmtree(before, ignore_errors=True)
    key = unpacked / SECRET_KEY
    if key.exists():
        key.chmod(0o600)
        key.replace(Path(settings.DATA_DIR) / SECRET_KEY)
