"""Files, what reading them may take, and sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragsite.settings import env
from ragsite.settings.env import DATA_DIR

STATIC_URL = "static/"
# Static files are served from where they lie; there is nothing to collect.
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "media"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "retrieval.documents.storage.WholeFileStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# A bucket of S3, or of a server that speaks its protocol, instead of the folder: for sites of several machines.
if FILES_S3_BUCKET := env.text("FILES_S3_BUCKET", ""):
    STORAGES["default"] = {
        "BACKEND": "retrieval.documents.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": FILES_S3_BUCKET,
            # The variable of Amazon's own tools; with it, buckets are named in the path.
            "endpoint_url": env.text("AWS_ENDPOINT_URL_S3") or None,
            # Keys and region are what the machine has: a role, AWS_ACCESS_KEY_ID and its like, or ~/.aws.
        },
    }
# Below this, nothing is saved: PostgreSQL stops when it cannot write, and then nothing can be read either.
DISK_RESERVE_BYTES = 200 * 2**20
DOCUMENT_MAX_BYTES = env.number("DOCUMENT_MAX_MIB", 50) * 2**20
# One request with all its files: Django writes it to a temporary file before any view sees it.
REQUEST_MAX_BYTES = 500 * 2**20
# So that one file does not keep a worker busy for hours.
DOCUMENT_MAX_PASSAGES = 50_000
# A document whose metadata name groups under this key is seen by their members alone.
DOCUMENT_GROUPS_KEY = "groups"
# Where a guard of the sandbox is missing, files are refused rather than read without it.
SANDBOX_REQUIRED = env.flag("SANDBOX_REQUIRED", False)
# What reading one file may take in the process of its own in which it is read.
EXTRACTION_MEMORY_MIB = 1024
EXTRACTION_SECONDS = 60.0
# Pages that are pictures are recognised in these languages, by the names that Tesseract gives them; off: not at all.
OCR_LANGUAGES = [name for name in env.names("OCR_LANGUAGES", "eng,nld") if name.lower() != "off"]
# After so long, a scan of many pages lets other slow files have a turn.
OCR_TURN_SECONDS = 300.0
# Files that take longer than this are slow ones, of which so many are read at once: fewer than a worker has slots.
QUICK_SECONDS = 1.0
SLOW_DOCUMENTS_AT_ONCE = 1

# Sources: folders that may be read, with all that is in them, and machines inside the own network that may be asked.
SOURCE_FOLDERS = [Path(folder) for folder in env.names("SOURCE_FOLDERS")]
SOURCE_PRIVATE_HOSTS = env.names("SOURCE_PRIVATE_HOSTS")
# How long a server may be silent.
SOURCE_TIMEOUT_SECONDS = 20.0
