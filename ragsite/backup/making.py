from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from ragsite.backup.archive import DUMP, FORMAT, MEDIA, SECRET_KEY, BackupError, Manifest, add_manifest
from ragsite.backup.programs import run_program
from retrieval.distribution.cluster import has_citus
from retrieval.distribution.tables import is_distributed
from retrieval.exceptions import FilesUnavailable
from retrieval.ingest.storage import document_files, is_in_a_folder


def make_backup(file: Path) -> Manifest:
    """Write the database and the originals of its documents, as they were at one moment, to ``file``.

    The site may run meanwhile. Raises: BackupError.
    """
    if file.exists():
        raise BackupError(f"{file} is there already: choose another name.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}.")
    migrations = tuple(sorted(".".join(applied) for applied in MigrationRecorder(connection).applied_migrations()))
    # Originals are linked into a folder on their own disk, which is quick, and keeps what is deleted meanwhile.
    Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
    try:
        return _make(file, migrations)
    except FilesUnavailable as error:
        raise BackupError(str(error)) from error


def _make(file: Path, migrations: tuple[str, ...]) -> Manifest:
    with tempfile.TemporaryDirectory(prefix="backup-", dir=settings.DATA_DIR) as held, _snapshot() as snapshot:
        dump = Path(held) / DUMP
        with transaction.atomic(), connection.cursor() as cursor:
            # While it is held no document is added or deleted: the snapshot and the files are of one moment.
            cursor.execute("LOCK TABLE retrieval_document IN SHARE MODE")
            snapshot_id, names = _begin(snapshot)
            missing = _hold(names, Path(held)) if is_in_a_folder() else []
            if is_distributed():
                # A snapshot is of one server: on a cluster no document may change until all is written.
                _dump(snapshot_id, dump)
        if not is_in_a_folder():
            # Fetching takes too long to keep everybody from writing: what is deleted meanwhile is missing.
            missing = _hold(names, Path(held))
        if not dump.exists():
            _dump(snapshot_id, dump)
        manifest = Manifest(
            format=FORMAT,
            made_at=timezone.now().isoformat(),
            migrations=migrations,
            documents=len(names),
            files=len(set(names)) - len(missing),
            missing=tuple(missing),
        )
        _write(file, manifest, dump, Path(held) / "media")
    return manifest


def _dump(snapshot_id: str, dump: Path) -> None:
    # Restored into one PostgreSQL, what is in the shards is in its tables again.
    without = ["--exclude-extension=citus"] if has_citus() else []
    run_program("pg_dump", "--format=custom", f"--snapshot={snapshot_id}", f"--file={dump}", *without)


def _snapshot() -> psycopg.Connection:
    parameters = {name: value for name, value in connection.get_connection_params().items() if name != "pool"}
    link = psycopg.connect(**{key: parameters[key] for key in parameters if key not in ("cursor_factory", "context")})
    link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return link


def _begin(snapshot: psycopg.Connection) -> tuple[str, list[str]]:
    """The id of the snapshot that ``pg_dump`` takes, and the names of the originals in it."""
    row = snapshot.execute("SELECT pg_export_snapshot()").fetchone()
    assert row is not None
    names = [name for (name,) in snapshot.execute("SELECT file FROM retrieval_document WHERE file <> '' ORDER BY id")]
    return row[0], names


def _hold(names: list[str], held: Path) -> list[str]:
    """Link the originals into ``held / "media"``, or fetch them; returns the names of those that are not there."""
    missing = []
    for name in sorted(set(names)):
        kept = held / "media" / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            _keep(name, kept)
        except FileNotFoundError:
            missing.append(name)
    return missing


def _keep(name: str, kept: Path) -> None:
    """Raises: FileNotFoundError when there is no such original."""
    if not is_in_a_folder():
        with document_files().open(name) as file:
            kept.write_bytes(file.read())
        return
    original = Path(settings.MEDIA_ROOT) / name
    try:
        os.link(original, kept)
    except FileNotFoundError:
        raise
    except OSError:
        # A disk that knows no links.
        shutil.copy2(original, kept)


def _write(file: Path, manifest: Manifest, dump: Path, media: Path) -> None:
    """The archive, under its name only when it is whole; for its owner alone, because it holds everything."""
    unfinished = file.with_name(f".{file.name}.part")
    try:
        unfinished.unlink(missing_ok=True)
        # Not a file that somebody else made beforehand, to read what is written.
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as output:
            with tarfile.open(fileobj=output, mode="w") as archive:
                add_manifest(archive, manifest)
                archive.add(dump, DUMP)
                key = Path(settings.DATA_DIR) / "secret_key"
                if key.exists():
                    archive.add(key, SECRET_KEY)
                for path in sorted(media.rglob("*")):
                    if path.is_file():
                        archive.add(path, f"{MEDIA}{path.relative_to(media)}")
            output.flush()
            os.fsync(output.fileno())
        unfinished.rename(file)
    except OSError as error:
        raise BackupError(f"{file} could not be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
