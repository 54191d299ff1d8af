from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import ContentFile, File
from django.utils.translation import gettext as _
from storages.backends.s3 import S3Storage

from core.exceptions import FilesUnavailable

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 3
READ_SECONDS = 30
ATTEMPTS = 3
NOT_FOUND = 404


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        status, code = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode"), error.response["Error"]["Code"]
        if status == NOT_FOUND and code != "NoSuchBucket":
            raise FileNotFoundError(name) from error
        raise _report_unavailable(error) from error
    except BotoCoreError as error:
        raise _report_unavailable(error) from error


def _with_translated_errors(method: Callable[..., Any]) -> Any:
    def call_method(self: S3Storage, name: str, *more: Any) -> Any:
        with _translate_errors(name):
            return method(self, name, *more)

    return call_method


class ObjectStorage(S3Storage):  # type: ignore[misc]
    """A file storage in an S3 bucket, by django-storages. Files are read whole, because their size is limited.

    Methods raise FilesUnavailable if the server fails, and FileNotFoundError for a missing file.
    """

    def get_default_settings(self) -> dict[str, object]:
        defaults: dict[str, object] = super().get_default_settings()
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            signature_version="s3v4",
            s3={"addressing_style": "path"} if self._endpoint_url else {},
        )
        return defaults | {"client_config": config, "file_overwrite": True, "default_acl": None}

    def __init__(self, **options: Any) -> None:
        self._endpoint_url = options.get("endpoint_url")
        super().__init__(**options)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        with _translate_errors(name):
            body = self.bucket.Object(self._normalize_name(name)).get()["Body"].read()
        return ContentFile(body, name=name)

    _save = _with_translated_errors(S3Storage._save)
    delete = _with_translated_errors(S3Storage.delete)
    exists = _with_translated_errors(S3Storage.exists)
    size = _with_translated_errors(S3Storage.size)

    def check(self) -> None:
        with _translate_errors(self.bucket_name):
            self.connection.meta.client.head_bucket(Bucket=self.bucket_name)


def _report_unavailable(error: Exception) -> FilesUnavailable:
    logger.error("The storage of the files does not serve: %s", error)
    return FilesUnavailable(_("The storage of the files does not answer. Please try again in a minute."))
