"""The files in archives and mails: named safely, bounded in number and size, and only of formats that are read."""

from __future__ import annotations

import posixpath
import re

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import formats
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.types import ExtractionLimits, LeftOut, Member, leave_out

_LONGEST_NAME = 200
# What programs leave behind for themselves.
_LITTER = re.compile(r"(?:^|/)(?:__MACOSX|\.[^/]*|Thumbs\.db|desktop\.ini)(?:/|$)", re.I)


class Members:
    """Collects members, and names what was left out.

    Raises: DocumentRejected from :meth:`add` when they are too many or too large together.
    """

    def __init__(self, filename: str, limits: ExtractionLimits) -> None:
        self._filename = filename
        self._limits = limits
        self._found: dict[str, Member] = {}
        self._left_out: dict[str, list[str]] = {}
        self._size = 0

    @property
    def found(self) -> tuple[Member, ...]:
        return tuple(self._found.values())

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        parts = (
            leave_out(kind, [name for name in names if name], len(names)) for kind, names in self._left_out.items()
        )
        return tuple(part for found in parts for part in found)

    def add(self, name: str, data: bytes) -> None:
        """One more; what cannot be a document is left out, and named."""
        path = clean_name(name)
        if not path or not data:
            return
        if len(data) > self._limits.max_bytes:
            self.leave_out("large", path)
            return
        try:
            formats.detect(data, posixpath.basename(path))
        except DocumentRejected:
            self.leave_out("unreadable", path)
            return
        self._size += len(data)
        if len(self._found) == self._limits.max_members or self._size > self._limits.max_member_bytes:
            raise too_many(self._filename, self._limits)
        stem, extension = posixpath.splitext(path)
        unique, number = path, 1
        while unique in self._found:
            number += 1
            unique = f"{stem} ({number}){extension}"
        self._found[unique] = Member(unique, data)

    def leave_out(self, kind: str, name: str = "") -> None:
        self._left_out.setdefault(kind, []).append(clean_name(name))


def too_many(filename: str, limits: ExtractionLimits) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} holds more than {limits.max_members:,} files or {limits.max_member_bytes // 1_000_000} MB: "
        "upload its files in several parts."
    )


def clean_name(name: str) -> str:
    """A relative path that leads nowhere else; empty for what is no document's name."""
    path = "".join(char for char in canonical(name).replace("\\", "/") if char.isprintable())
    parts = [part.strip() for part in path.split("/")]
    kept = [part for part in parts if part not in ("", ".", "..") and not re.fullmatch("[A-Za-z]:", part)]
    clean = "/".join(kept)
    if _LITTER.search(clean):
        return ""
    stem, extension = posixpath.splitext(clean)
    return stem[: _LONGEST_NAME - len(extension[:12])] + extension[:12]
