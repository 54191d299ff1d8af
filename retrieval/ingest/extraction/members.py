"""The files in archives and mails: named safely, bounded in number and size, and only of formats that are read."""

from __future__ import annotations

import posixpath
import re

from retrieval.exceptions import DocumentRejected
from retrieval.ingest import formats
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.types import ExtractionLimits, Member

_LONGEST_NAME = 200
_MOST_NAMED = 10
# What programs leave behind for themselves.
_LITTER = re.compile(r"(?:^|/)(?:__MACOSX|\.[^/]*|Thumbs\.db|desktop\.ini)(?:/|$)", re.I)


class Members:
    """Collects members. ``notice`` names what was left out.

    Raises: DocumentRejected from :meth:`add` when they are too many or too large together.
    """

    def __init__(self, filename: str, limits: ExtractionLimits) -> None:
        self._filename = filename
        self._limits = limits
        self._found: dict[str, Member] = {}
        self._left_out: list[str] = []
        self._size = 0

    @property
    def found(self) -> tuple[Member, ...]:
        return tuple(self._found.values())

    @property
    def notice(self) -> str:
        if not self._left_out:
            return ""
        named = self._left_out[:_MOST_NAMED]
        more = len(self._left_out) - len(named)
        return f"Left out: {', '.join(named)}{f' and {more} more' if more else ''}."

    def add(self, name: str, data: bytes) -> None:
        """One more; what cannot be a document is left out, and named in the notice."""
        path = clean_name(name)
        if not path or not data:
            return
        if len(data) > self._limits.max_bytes:
            self.leave_out(path, f"larger than {self._limits.max_bytes // 1_000_000} MB")
            return
        try:
            formats.detect(data, posixpath.basename(path))
        except DocumentRejected as error:
            self.leave_out(path, _reason(error))
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

    def leave_out(self, name: str, reason: str) -> None:
        self._left_out.append(f"{name} ({reason})")


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


def _reason(error: DocumentRejected) -> str:
    """The kind of file, of the sentence that refuses it."""
    words = re.search(r" is ((?:an?|the) [^;:.]+)", str(error))
    return words[1] if words else "cannot be read"
