from __future__ import annotations

from pathlib import Path
from typing import Any

from ragsite.settings import env
from ragsite.settings.env import DATA_DIR

STATIC_URL = "static/"
# Static files need no collectstatic.
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "media"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "retrieval.documents.storage.WholeFileStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# A bucket serves sites of several machines.
if FILES_S3_BUCKET := env.text("FILES_S3_BUCKET", ""):
    STORAGES["default"] = {
        "BACKEND": "retrieval.documents.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": FILES_S3_BUCKET,
            # Amazon's tools use this variable; with it, the path contains the bucket.
            "endpoint_url": env.text("AWS_ENDPOINT_URL_S3") or None,
            # The machine provides keys and region: a role, AWS_ACCESS_KEY_ID and its like, or ~/.aws.
        },
    }
# No data are saved below this: PostgreSQL stops when it cannot write, and then reading fails too.
DISK_RESERVE_BYTES = 200 * 2**20
DOCUMENT_MAX_BYTES = env.number("DOCUMENT_MAX_MIB", 50) * 2**20
# For all files of a request: Django writes it to a temporary file before any view runs.
REQUEST_MAX_BYTES = 500 * 2**20
# One file must not keep a worker busy for hours.
DOCUMENT_MAX_PASSAGES = 50_000
# Only members of the groups under this metadata key see a document.
DOCUMENT_GROUPS_KEY = "groups"
# Refuse files if a guard of the sandbox is missing.
SANDBOX_REQUIRED = env.flag("SANDBOX_REQUIRED", False)
EXTRACTION_MEMORY_MIB = 1024
EXTRACTION_SECONDS = 60.0
# Tesseract's names of languages for OCR; off: no OCR.
OCR_LANGUAGES = [name for name in env.names("OCR_LANGUAGES", "eng,nld") if name.lower() != "off"]
# A long scan then lets other slow files continue.
OCR_TURN_SECONDS = 300.0
# Files that take longer are slow; some slots of a worker are reserved for quick ones.
QUICK_SECONDS = 1.0
SLOW_DOCUMENTS_AT_ONCE = 1

# Folders that sources may read, and hosts of the own network that they may call.
SOURCE_FOLDERS = [Path(folder) for folder in env.names("SOURCE_FOLDERS")]
SOURCE_PRIVATE_HOSTS = env.names("SOURCE_PRIVATE_HOSTS")
SOURCE_TIMEOUT_SECONDS = 20.0
# Connectors of others are code that reaches the network itself, past the guard of the addresses above.
SOURCE_CONNECTORS = env.flag("SOURCE_CONNECTORS", False)
