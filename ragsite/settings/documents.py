from __future__ import annotations

from pathlib import Path
from typing import Any

from ragsite.settings import env
from ragsite.settings.env import DATA_DIR

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "media"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "retrieval.documents.storage.WholeFileStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
if FILES_S3_BUCKET := env.read_string("FILES_S3_BUCKET", ""):
    STORAGES["default"] = {
        "BACKEND": "retrieval.documents.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": FILES_S3_BUCKET,
            "endpoint_url": env.read_string("AWS_ENDPOINT_URL_S3") or None,
            # The machine has the keys and the region: in a role, in AWS_ACCESS_KEY_ID and similar variables, or in
            # ~/.aws.
        },
    }
# Documents are refused below this free disk space, because PostgreSQL stops if it cannot write.
DISK_RESERVE_BYTES = 200 * 2**20
DOCUMENT_MAX_BYTES = env.read_number("DOCUMENT_MAX_MIB", 50) * 2**20
# The limit for all files of a request, which Django writes to temporary files before a view runs.
REQUEST_MAX_BYTES = 500 * 2**20
DOCUMENT_MAX_PASSAGES = 50_000
# The key in a document's metadata that names groups. Only their members see the document.
DOCUMENT_GROUPS_KEY = "groups"
SANDBOX_REQUIRED = env.read_flag("SANDBOX_REQUIRED", False)
EXTRACTION_MEMORY_MIB = 1024
EXTRACTION_SECONDS = 60.0
OCR_LANGUAGES = [name for name in env.read_names("OCR_LANGUAGES", "eng,nld") if name.lower() != "off"]
# OCR of a long scan pauses after this time, so that other slow files continue.
OCR_TURN_SECONDS = 300.0
QUICK_SECONDS = 1.0
SLOW_DOCUMENTS_AT_ONCE = 1

# The folders that sources (imports) may read, and the private hosts to which they may connect.
SOURCE_FOLDERS = [Path(folder) for folder in env.read_names("SOURCE_FOLDERS")]
SOURCE_PRIVATE_HOSTS = env.read_names("SOURCE_PRIVATE_HOSTS")
SOURCE_TIMEOUT_SECONDS = 20.0
# Connectors are code of other people, which SOURCE_PRIVATE_HOSTS does not limit.
SOURCE_CONNECTORS = env.read_flag("SOURCE_CONNECTORS", False)
