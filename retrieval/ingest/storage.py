"""Uploaded files on the local disk: whole, or not there."""

from __future__ import annotations

from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage


class WholeFileStorage(FileSystemStorage):
    """Django's own, which leaves no half-written file behind when the disk is full."""

    def _save(self, name: str, content: File[Any]) -> str:
        try:
            return super()._save(name, content)  # type: ignore[misc, no-any-return]
        except OSError:
            # Names are random, so that none but the file that failed can have this one.
            self.delete(name)
            raise
