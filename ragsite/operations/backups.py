"""A backup: a tar file with a manifest, a dump of the database, the secret key, and the documents' originals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from ragsite.postgres.cluster import EmbeddedPostgresError, binaries
from retrieval.documents.storage import document_files, is_in_a_folder
from retrieval.exceptions import FilesUnavailable
from retrieval.index.cluster import has_citus
from retrieval.index.distributed_tables import is_distributed

FORMAT = 1
MANIFEST, DUMP, SECRET_KEY, MEDIA = "manifest.json", "database.dump", "secret_key", "media"


class BackupError(Exception):
    """A backup cannot be made or restored. For the operator."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """``migrations`` are those that were applied, as “app.name”; ``missing`` names originals that the site lacked."""

    format: int
    made_at: str
    migrations: tuple[str, ...]
    documents: int
    files: int
    missing: tuple[str, ...] = ()


def make_backup(file: Path) -> Manifest:
    """Write the database and the originals of its documents, as they were at one moment, to ``file``.

    The site may run meanwhile. Raises: BackupError.
    """
    if file.exists():
        raise BackupError(f"{file} is there already: choose another name.")
    if not file.parent.is_dir():
        raise BackupError(f"There is no folder {file.parent}.")
    migrations = tuple(sorted(".".join(applied) for applied in MigrationRecorder(connection).applied_migrations()))
    # In DATA_DIR, so that originals can be linked: that is quick, and keeps those that are deleted meanwhile.
    with tempfile.TemporaryDirectory(prefix="backup-", dir=settings.DATA_DIR) as folder, connect() as snapshot:
        held, dump = Path(folder), Path(folder) / DUMP
        snapshot.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with transaction.atomic(), connection.cursor() as cursor:
            # While it is locked no document is added or deleted: the snapshot and the files are of one moment.
            cursor.execute("LOCK TABLE retrieval_document IN SHARE MODE")
            (snapshot_id,) = snapshot.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
            names = [name for (name,) in snapshot.execute("SELECT file FROM retrieval_document WHERE file <> ''")]
            missing = _hold(names, held) if is_in_a_folder() else []
            if is_distributed():
                # A snapshot is of one server: on a cluster no document may change until all is written.
                _dump(snapshot_id, dump)
        if not is_in_a_folder():
            # Fetching takes too long to keep everybody from writing: what is deleted meanwhile is missing.
            missing = _hold(names, held)
        if not dump.exists():
            _dump(snapshot_id, dump)
        files = len(set(names)) - len(missing)
        manifest = Manifest(
            FORMAT, timezone.now().isoformat(), migrations, documents=len(names), files=files, missing=tuple(missing)
        )
        _write(file, manifest, held)
    return manifest


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


def _dump(snapshot_id: str, dump: Path) -> None:
    # Restored into one PostgreSQL, what is in the shards is in its tables again.
    without = ["--exclude-extension=citus"] if has_citus() else []
    arguments = ["--format=custom", f"--snapshot={snapshot_id}", f"--file={dump}", *without]
    dumping, environment = on_database("pg_dump", *arguments)
    try:
        subprocess.run(dumping, env=environment, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BackupError(f"pg_dump failed: {(getattr(error, 'stderr', '') or str(error)).strip()}") from error


def _hold(names: list[str], held: Path) -> list[str]:
    """Link the originals into ``held / MEDIA``, or fetch them; returns the names of those that are not there."""
    missing = []
    for name in sorted(set(names)):
        kept = held / MEDIA / name
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            if is_in_a_folder():
                _link(Path(settings.MEDIA_ROOT) / name, kept)
            else:
                with document_files().open(name) as file:
                    kept.write_bytes(file.read())
        except FileNotFoundError:
            missing.append(name)
        except FilesUnavailable as error:
            raise BackupError(str(error)) from error
    return missing


def _link(original: Path, kept: Path) -> None:
    try:
        os.link(original, kept)
    except FileNotFoundError:
        raise
    except OSError:  # a disk without links
        shutil.copy2(original, kept)


def _write(file: Path, manifest: Manifest, held: Path) -> None:
    """The archive, under its name only when it is whole; readable by its owner alone."""
    unfinished = file.with_name(f".{file.name}.part")
    content = json.dumps(asdict(manifest), indent=2).encode()
    described = tarfile.TarInfo(MANIFEST)
    described.size, described.mode = len(content), 0o600
    try:
        unfinished.unlink(missing_ok=True)
        # O_EXCL: not a file that somebody else made beforehand, to read what is written.
        with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as output:
            with tarfile.open(fileobj=output, mode="w") as archive:
                archive.addfile(described, BytesIO(content))
                for path, name in (
                    (held / DUMP, DUMP),
                    (Path(settings.DATA_DIR) / SECRET_KEY, SECRET_KEY),
                    (held / MEDIA, MEDIA),
                ):
                    if path.exists():
                        archive.add(path, name)
            output.flush()
            os.fsync(output.fileno())
        unfinished.rename(file)
    except OSError as error:
        raise BackupError(f"{file} could not be written: {error}") from error
    finally:
        unfinished.unlink(missing_ok=True)
