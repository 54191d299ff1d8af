"""Where uploaded files are kept: a folder, where a file is whole or not there, or a bucket
(`retrieval.documents.object_storage`)."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage, Storage

from retrieval.models import Document


class WholeFileStorage(FileSystemStorage):
    """Django's own, which leaves no half-written file behind when the disk is full."""

    def _save(self, name: str, content: File[Any]) -> str:
        try:
            return super()._save(name, content)  # type: ignore[misc, no-any-return]
        except OSError:
            # Names are random, so that none but the file that failed can have this one.
            self.delete(name)
            raise


def document_files() -> Storage:
    """The storage of the documents' files."""
    return Document.file.field.storage


def is_in_a_folder() -> bool:
    return isinstance(document_files(), FileSystemStorage)
