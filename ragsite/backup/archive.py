"""The form of a backup: a tar file with a manifest, a dump of the database, and the originals."""

from __future__ import annotations

import json
import tarfile
from dataclasses import asdict, dataclass
from io import BytesIO

FORMAT = 1
MANIFEST = "manifest.json"
DUMP = "database.dump"
SECRET_KEY = "secret_key"  # noqa: S105  # a file's name
MEDIA = "media/"


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


def add_manifest(archive: tarfile.TarFile, manifest: Manifest) -> None:
    content = json.dumps(asdict(manifest), indent=2).encode()
    member = tarfile.TarInfo(MANIFEST)
    member.size = len(content)
    member.mode = 0o600
    archive.addfile(member, BytesIO(content))


def read_manifest(archive: tarfile.TarFile) -> Manifest:
    """Raises: BackupError for what is no backup of this site, or one of a form that it does not know."""
    try:
        file = archive.extractfile(MANIFEST)
        stored = json.load(file) if file is not None else {}
        manifest = Manifest(
            **{**stored, "migrations": tuple(stored["migrations"]), "missing": tuple(stored["missing"])}
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BackupError("This is not a backup of Ragsite: it has no manifest that can be read.") from error
    if manifest.format != FORMAT:
        raise BackupError(f"This backup has form {manifest.format}; this release reads form {FORMAT}.")
    return manifest
