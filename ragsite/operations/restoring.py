"""A site from its backup: the database is replaced in one transaction."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from ragsite.operations.backups import (
    DUMP,
    FORMAT,
    MANIFEST,
    MEDIA,
    SECRET_KEY,
    BackupError,
    Manifest,
    connect,
    on_database,
    program,
)
from retrieval.documents.storage import copy_to_bucket, is_in_a_folder
from retrieval.exceptions import FilesUnavailable
from retrieval.index.cluster import has_citus
from retrieval.management.prepared import migrate

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
    try:
        with tarfile.open(file) as archive:
            manifest = _read_manifest(archive)
            _check_target(replace=replace)
            with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.DATA_DIR) as folder:
                archive.extractall(folder, filter="data")
                unpacked = Path(folder)
                if not is_in_a_folder():
                    # Names are random: what is there already is the same. What belongs to no document stays.
                    _fill_bucket(unpacked / MEDIA)
                _restore_database(unpacked / DUMP)
                _replace_files(unpacked)
    except FilesUnavailable as error:
        raise BackupError(str(error)) from error
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
        stored = json.load(file) if file is not None else {}
        lists = {name: tuple(stored[name]) for name in ("migrations", "missing")}
        manifest = Manifest(**{**stored, **lists})
    except (KeyError, TypeError, ValueError) as error:
        raise BackupError("This is not a backup of Ragsite: it has no manifest that can be read.") from error
    if manifest.format != FORMAT:
        raise BackupError(f"This backup has form {manifest.format}; this release reads form {FORMAT}.")
    known = {".".join(key) for key in MigrationLoader(None, ignore_no_migrations=True).disk_migrations}
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
        if has_citus():
            raise BackupError(
                "This database is one of a Citus cluster: restore into a new database of the coordinator, set Citus up "
                "in it, and distribute it (docs/citus.md)."
            )
        cursor.execute("SELECT to_regclass('auth_user') IS NOT NULL")
        has_data = cursor.fetchone()[0]
        if has_data:
            cursor.execute("SELECT EXISTS (SELECT FROM auth_user) OR EXISTS (SELECT FROM retrieval_collection)")
            has_data = cursor.fetchone()[0]
    media = Path(settings.MEDIA_ROOT)
    has_files = is_in_a_folder() and media.is_dir() and any(media.rglob("*.*"))
    if (has_data or has_files) and not replace:
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


def _fill_bucket(media: Path) -> None:
    for path in sorted(media.rglob("*")):
        if path.is_file():
            copy_to_bucket(path, str(path.relative_to(media)))


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
