"""Store uploaded files in a folder. `retrieval.documents.object_storage` stores them in a bucket."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage

from retrieval.models import Document


class WholeFileStorage(FileSystemStorage):
    """Django's file storage, which also deletes a file if it cannot be written completely."""

    def _save(self, name: str, content: File[Any]) -> str:
        try:
            return super()._save(name, content)  # type: ignore[misc, no-any-return]
        except OSError:
            self.delete(name)
            raise


def get_document_storage() -> Storage:
    return Document.file.field.storage


def is_storage_a_folder() -> bool:
    return isinstance(get_document_storage(), FileSystemStorage)
