from __future__ import annotations

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

import psycopg
from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from psycopg import sql

from ragsite.backup.archive import DUMP, MEDIA, SECRET_KEY, BackupError, Manifest, read_manifest
from ragsite.backup.programs import run_program
from retrieval.distribution.cluster import has_citus
from retrieval.exceptions import FilesUnavailable
from retrieval.ingest.storage import copy_to_bucket, is_in_a_folder
from retrieval.management.prepared import migrate

# Behind the name of the site's database: the one that is being restored, and the one that it replaces.
RESTORED, BEFORE = "_restored", "_before"


def restore_backup(file: Path, *, replace: bool = False) -> Manifest:
    """Make the site what it was when the backup was made; the database of an older release is migrated.

    What is there is replaced when the new database is whole, and only with ``replace``. The former database is deleted
    last: until then the site does not start, and restoring again finishes what was interrupted. Raises: BackupError.
    """
    try:
        with tarfile.open(file) as archive:
            manifest = read_manifest(archive)
            _check_release(manifest)
            _check_target(replace=replace)
            data_dir = Path(settings.DATA_DIR)
            with tempfile.TemporaryDirectory(prefix="restore-", dir=data_dir) as unpacked:
                archive.extractall(unpacked, filter="data")
                if not is_in_a_folder():
                    # Names are random: what is there already is the same. What belongs to no document stays.
                    _fill_bucket(Path(unpacked) / MEDIA)
                _restore_database(Path(unpacked) / DUMP)
                _replace_files(Path(unpacked))
    except FilesUnavailable as error:
        raise BackupError(str(error)) from error
    except (tarfile.TarError, EOFError, FileNotFoundError) as error:
        raise BackupError(f"{file} cannot be read: {error}") from error
    # A site that begins anew would read its demo documents.
    (data_dir / "demo-loaded").touch()
    migrate()
    with connect_to_server() as server:
        _execute(server, "DROP DATABASE IF EXISTS {}", _site_database() + BEFORE)
    return manifest


def interrupted_restore() -> str:
    """What to do about a restore that was interrupted, in a sentence; empty when none was."""
    try:
        with connect_to_server() as server:
            left = [name for ending in (BEFORE, RESTORED) if _exists(server, name := _site_database() + ending)]
    except BackupError:
        # Restoring needs such a connection, too: none was interrupted.
        return ""
    message = (
        f"A restore was interrupted: the database {' and '.join(left)} is left. Run `manage.py restore FILE --force` "
        "again to finish it, or go back to the site as it was (docs/operations.md, “Backup and restore”)."
    )
    return message if left else ""


def _check_release(manifest: Manifest) -> None:
    known = {".".join(key) for key in MigrationLoader(None, ignore_no_migrations=True).disk_migrations}
    if unknown := sorted(set(manifest.migrations) - known):
        raise BackupError(f"The backup is of a newer release, whose {unknown[0]} this one does not know.")


def _check_target(*, replace: bool) -> None:
    with connect_to_server() as server:
        if not _exists(server, _site_database()):
            # Interrupted between two names.
            _execute(server, "CREATE DATABASE {}", _site_database())
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
            """
        )
        if cursor.fetchone()[0]:
            raise BackupError("The site is running: stop it first.")
        if has_citus():
            raise BackupError(
                "This database is one of a Citus cluster: restore into a new database of the coordinator, set Citus up "
                "in it, and distribute it (docs/citus.md)."
            )
        cursor.execute("SELECT to_regclass('auth_user') IS NOT NULL")
        is_set_up = cursor.fetchone()[0]
        if is_set_up:
            cursor.execute("SELECT EXISTS (SELECT FROM auth_user) OR EXISTS (SELECT FROM retrieval_collection)")
        has_data = is_set_up and cursor.fetchone()[0]
    media = Path(settings.MEDIA_ROOT)
    has_files = is_in_a_folder() and media.is_dir() and any(media.rglob("*.*"))
    if (has_data or has_files) and not replace:
        raise BackupError("This site has data already: restoring would replace it. Use --force to do so.")


def _restore_database(dump: Path) -> None:
    """Restore into a database beside the site's own, and take its name: a backup that is broken replaces nothing."""
    name = _site_database()
    fresh, before = name + RESTORED, name + BEFORE
    connection.close()
    with connect_to_server() as server:
        _execute(server, "DROP DATABASE IF EXISTS {}", fresh)
        _execute(server, "CREATE DATABASE {} TEMPLATE template0", fresh)
        try:
            run_program(
                "pg_restore",
                *("--no-owner", "--no-privileges", "--no-comments", "--exit-on-error", "--single-transaction"),
                str(dump),
                database=fresh,
            )
        except BackupError:
            _execute(server, "DROP DATABASE IF EXISTS {}", fresh)
            raise
        if _exists(server, before):
            # The site as it was before a restore that was interrupted, which made the present one.
            _execute(server, "DROP DATABASE IF EXISTS {}", name)
        else:
            _execute(server, "ALTER DATABASE {} RENAME TO {}", name, before)
        _execute(server, "ALTER DATABASE {} RENAME TO {}", fresh, name)


def _site_database() -> str:
    return str(connection.settings_dict["NAME"])


def _exists(server: psycopg.Connection, name: str) -> bool:
    return server.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is not None


def _execute(server: psycopg.Connection, statement: LiteralString, *names: str) -> None:
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def connect_to_server() -> Iterator[psycopg.Connection]:
    """A connection to another database of the same server, from which this one can be replaced. Raises: BackupError."""
    parameters = connection.get_connection_params()
    names = ("user", "password", "host", "port", "sslmode", "sslcert", "sslkey", "sslrootcert")
    try:
        with psycopg.connect(
            dbname="postgres", autocommit=True, **{name: parameters[name] for name in names if name in parameters}
        ) as server:
            yield server
    except psycopg.Error as error:
        raise BackupError(f"The database could not be replaced: {error}") from error


def _fill_bucket(media: Path) -> None:
    for path in sorted(media.rglob("*")):
        if path.is_file():
            copy_to_bucket(path, str(path.relative_to(media)))


def _replace_files(unpacked: Path) -> None:
    if is_in_a_folder():
        _replace_folder(unpacked)
    key = unpacked / SECRET_KEY
    if key.exists():
        key.chmod(0o600)
        key.replace(Path(settings.DATA_DIR) / "secret_key")


def _replace_folder(unpacked: Path) -> None:
    media, before = Path(settings.MEDIA_ROOT), Path(settings.MEDIA_ROOT).with_name("media.before")
    restored = unpacked / MEDIA.rstrip("/")
    restored.mkdir(exist_ok=True)
    shutil.rmtree(before, ignore_errors=True)
    if media.exists():
        media.rename(before)
    restored.rename(media)
    shutil.rmtree(before, ignore_errors=True)
