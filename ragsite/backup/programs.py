"""PostgreSQL's own programs, run on the site's database."""

from __future__ import annotations

import os
import shutil
import subprocess

from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.client import DatabaseClient

from ragsite.backup.archive import BackupError
from ragsite.postgres.cluster import EmbeddedPostgresError, binaries


def run_program(name: str, *arguments: str, database: str = "") -> None:
    """Run ``pg_dump`` or ``pg_restore``, on another database of the server where one is named.

    The password goes by the environment, which other accounts of the machine do not see. Raises: BackupError.
    """
    described = {**connection.settings_dict}
    described["NAME"] = database or described["NAME"]
    described["OPTIONS"] = {key: value for key, value in described["OPTIONS"].items() if key != "pool"}
    psql, environment = DatabaseClient.settings_to_cmd_args_env(described, [])
    # As Django calls psql: options of the connection, and the database behind them.
    command = [_program(name), *psql[1:-1], "--no-password", "--dbname", psql[-1], *arguments]
    try:
        subprocess.run(command, env={**os.environ, **(environment or {})}, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or str(error)
        raise BackupError(f"{name} failed: {said.strip()}") from error


def _program(name: str) -> str:
    """The embedded server's own; for another server those of the machine, which are of its version if any are."""
    installed = shutil.which(name)
    if installed is not None and settings.EMBEDDED_POSTGRES is None:
        return installed
    try:
        own = binaries() / name
    except EmbeddedPostgresError as error:
        raise BackupError(f"{name} is not installed: install PostgreSQL's client programs.") from error
    return str(own)
