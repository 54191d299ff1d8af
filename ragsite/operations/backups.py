"""Back up and restore a site: a tar file with a manifest, a dump of the database, and the original files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from ragsite.postgres.embedded import EmbeddedPostgresError, find_binaries
from ragsite.processes import machine
from retrieval.documents.storage import is_storage_a_folder
from retrieval.index.distribution import has_citus
from retrieval.management.prepared import migrate

_OWN_APPS = ("chat", "evaluation", "ragsite", "retrieval")
MANIFEST, DUMP, SECRET_KEY, MEDIA = "manifest.json", "database.dump", "secret_key", "media"
# The table `ragsite_unfinished_restore` exists until the restore is complete, so that a start of the site finds an
# interrupted one.
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
_COMMIT = b"CREATE TABLE IF NOT EXISTS public.ragsite_unfinished_restore (); COMMIT;"


class BackupError(CommandError):
    """An error: the backup cannot be made or restored. The operator reads the message."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup.

    ``migrations`` are the applied ones, as "app.name". ``files`` counts the original files that are not in object
    storage.
    """

    made_at: str
    migrations: list[str]
    documents: int
    files: int


@contextlib.contextmanager
def _create_work_folders(*folders: Path) -> Iterator[list[Path]]:
    """Yield one temporary folder in each of ``folders``, after removing those that killed processes left.

    Raises: BackupError while another backup or restore runs.
    """
    data_dir = Path(settings.DATA_DIR)
    lock = machine.lock_file(data_dir / ".backup-lock")
    if lock is None:
        raise BackupError("Another backup or restore is running: wait until it has ended.")
    # Folders of other sites have another prefix, and stay.
    prefix = f".ragsite-{hashlib.sha256(bytes(data_dir)).hexdigest()[:8]}-"
    with lock, contextlib.ExitStack() as stack:
        for left in (left for folder in {data_dir, *folders} for left in folder.glob(f"{prefix}*")):
            shutil.rmtree(left, ignore_errors=True)
        yield [Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=folder))) for folder in folders]


def remove_unfinished_backup_folders() -> None:
    with contextlib.suppress(BackupError), _create_work_folders():
        pass


def make_backup(file: Path) -> Manifest:
    """Write the database and the original files to ``file``, in the state of one moment.

    The site may keep running. Files in object storage are not included. Raises: BackupError.
    """
    _raise_if_citus()
    if file.exists():
        raise BackupError(f"{file} is there already: choose another name.")
    try:
        # Hard links to the original files work in DATA_DIR, and keep the content if a file is deleted.
        with _create_work_folders(Path(settings.DATA_DIR), file.parent) as (held, unfinished):
            manifest = _copy_files_and_dump_database(held)
            whole = unfinished / file.name
            with whole.open("wb") as output:
                with tarfile.open(fileobj=output, mode="w") as archive:
                    for path in held.iterdir():
                        archive.add(path, path.name)
                output.flush()
                os.fsync(output.fileno())
            whole.chmod(0o600)
            whole.rename(file)
    except OSError as error:
        raise BackupError(f"{file} could not be written: {error}") from error
    return manifest


def _copy_files_and_dump_database(folder: Path) -> Manifest:
    snapshot = connection.copy()
    with contextlib.closing(snapshot), snapshot.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        with transaction.atomic(), connection.cursor() as locking:
            # While the table is locked, no document can change, so snapshot and files have the same state.
            locking.execute("LOCK TABLE retrieval_document IN SHARE MODE")
            cursor.execute("SELECT pg_export_snapshot(), count(*) FROM retrieval_document")
            snapshot_id, documents = cursor.fetchone()
            media = Path(settings.MEDIA_ROOT)
            if is_storage_a_folder() and media.exists():
                shutil.copytree(media, folder / MEDIA, copy_function=_link)
        dumping, environment = _build_postgres_command("pg_dump", "--format=custom", f"--snapshot={snapshot_id}")
        dumped = subprocess.run(
            [*dumping, f"--file={folder / DUMP}"], env=environment, capture_output=True, text=True, check=False
        )
    if dumped.returncode:
        raise BackupError(f"pg_dump failed: {dumped.stderr.strip()}")
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(Path(settings.DATA_DIR) / SECRET_KEY, folder)
    manifest = Manifest(
        made_at=timezone.now().isoformat(),
        migrations=sorted(".".join(applied) for applied in MigrationRecorder(connection).applied_migrations()),
        documents=documents,
        files=sum(path.is_file() for path in (folder / MEDIA).rglob("*")),
    )
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2))
    return manifest


def _link(original: str, kept: str) -> None:
    try:
        os.link(original, kept)
    except OSError:
        shutil.copy2(original, kept)


def _raise_if_citus() -> None:
    if has_citus():
        raise BackupError("This database is one of a Citus cluster, which has backups of its own: docs/citus.md.")


def _find_program(name: str) -> str:
    installed = shutil.which(name) if settings.EMBEDDED_POSTGRES is None else None
    try:
        return installed or str(find_binaries() / name)
    except EmbeddedPostgresError as error:
        raise BackupError(f"{name} is not installed: install PostgreSQL's client programs.") from error


def _build_postgres_command(program: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    options = {key: value for key, value in connection.settings_dict["OPTIONS"].items() if key != "pool"}
    psql, variables = DatabaseClient.settings_to_cmd_args_env({**connection.settings_dict, "OPTIONS": options}, [])
    command = [_find_program(program), *psql[1:-1], "--no-password", "--dbname", psql[-1], *arguments]
    return command, os.environ | (variables or {})


def restore_backup(file: Path, *, replace: bool = False) -> Manifest:
    """Restore a backup, and migrate the database if the backup is from an older release.

    Existing data are replaced only if ``replace``. After an interruption, the site does not start until a restore has
    finished. Raises: BackupError.
    """
    _raise_if_citus()
    try:
        with tarfile.open(file) as archive, _create_work_folders(Path(settings.DATA_DIR)) as (unpacked,):
            archive.extractall(unpacked, filter="data")
            manifest = _read_manifest(unpacked / MANIFEST)
            _raise_if_restore_not_allowed(replace=replace)
            _restore_database(unpacked / DUMP)
            _replace_files(unpacked)
    except (tarfile.TarError, EOFError, FileNotFoundError) as error:
        raise BackupError(f"{file} cannot be read: {error}") from error
    # If this file exists, the site does not load the demo documents.
    (Path(settings.DATA_DIR) / "demo-loaded").touch()
    migrate()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE public.ragsite_unfinished_restore")
    return manifest


def describe_interrupted_restore() -> str:
    """Return how to finish a restore that was interrupted; "" if no restore was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('public.ragsite_unfinished_restore') IS NOT NULL")
        is_interrupted = cursor.fetchone() == (True,)
    connection.close()
    return (
        "A restore was interrupted. Run `manage.py restore FILE --force` again to finish it." if is_interrupted else ""
    )


def find_migration_problem(applied: Iterable[tuple[str, str]], subject: str = "database") -> str:
    """Return what to do if this version cannot migrate a database with the ``applied`` migrations; "" if it can."""
    own = {key: migration for key, migration in MigrationLoader(None).disk_migrations.items() if key[0] in _OWN_APPS}
    done = {key for key in applied if key[0] in _OWN_APPS}
    missing = {key for key, each in own.items() if key not in done and not done.issuperset(each.replaces or [key])}
    unknown = sorted(done.difference(own, *(each.replaces for each in own.values())))
    is_half_squashed = any(own[key].replaces for key in missing if key[0] in {app for app, _ in done})
    if is_half_squashed or (unknown and missing):
        return (
            f"This {subject} is of a state before 0.1.0, which this version cannot migrate: go on with the code that "
            "made it, or start with an empty DATA_DIR or database and add the documents again."
        )
    if unknown:
        return (
            f"This {subject} is of a newer version, whose {'.'.join(unknown[0])} this one does not know: "
            "install that version, or restore a backup that this one made."
        )
    return ""


def _read_manifest(file: Path) -> Manifest:
    try:
        manifest = Manifest(**json.loads(file.read_text()))
    except (FileNotFoundError, TypeError, ValueError) as error:
        raise BackupError("This is not a backup of Ragsite: it has no manifest that can be read.") from error
    if trouble := find_migration_problem((name.partition(".")[::2] for name in manifest.migrations), "backup"):
        raise BackupError(trouble)
    return manifest


def _raise_if_restore_not_allowed(*, replace: bool) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        if cursor.fetchone()[0]:
            raise BackupError("The site is running: stop it first.")
        is_filled = "auth_user" in connection.introspection.table_names(cursor)
    if not replace and (is_filled or any(Path(settings.MEDIA_ROOT).rglob("*.*"))):
        raise BackupError("This site has data already: restoring would replace it. Use --force to do so.")


def _restore_database(dump: Path) -> None:
    """Replace the database in one transaction, which psql rolls back if this process ends too early."""
    connection.close()
    reading = [_find_program("pg_restore"), "--file=-", "--no-owner", "--no-privileges", "--no-comments", str(dump)]
    writing, environment = _build_postgres_command(
        "psql", "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"
    )
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
    if is_storage_a_folder():
        media, before = Path(settings.MEDIA_ROOT), unpacked / "media.before"
        (unpacked / MEDIA).mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            media.rename(before)
        (unpacked / MEDIA).rename(media)
    if (key := unpacked / SECRET_KEY).exists():
        key.chmod(0o600)
        key.replace(Path(settings.DATA_DIR) / SECRET_KEY)
