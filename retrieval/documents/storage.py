"""Store uploaded files in a folder or in a bucket (`retrieval.documents.object_storage`)."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage

from retrieval.models import Document


class WholeFileStorage(FileSystemStorage):
    """Django's file storage, without partial files after a full disk."""

    def _save(self, name: str, content: File[Any]) -> str:
        try:
            return super()._save(name, content)  # type: ignore[misc, no-any-return]
        except OSError:
            # Names are random, so only the failed file can have this name.
            self.delete(name)
            raise


def document_files() -> Storage:
    return Document.file.field.storage


def is_in_a_folder() -> bool:
    return isinstance(document_files(), FileSystemStorage)
