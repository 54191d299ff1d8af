"""What a format of files is, and how it is recognised by the bytes of a file. PURE."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from retrieval.exceptions import DocumentRejected

# A Word document holds a few dozen; Word itself refuses far fewer.
_MOST_ENTRIES = 20_000
_ENTRY = b"PK\x01\x02"
_HTML_TAG = re.compile(rb"<(?:!doctype\s+html|html[\s>])", re.I)
_HTML_LOOKED_AT = 4096
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MESSAGE = "__properties_version1.0".encode("utf-16-le")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_WEBP = re.compile(rb"RIFF.{4}WEBP", re.S)


class View(Enum):
    """How the source viewer shows the text of a document."""

    MARKDOWN = "laid out from its Markdown"
    CONVERTED = "laid out from the Markdown it is converted to"
    PRINTED = "as text, with its pages as pictures"
    PROSE = "as text, with the lines of a paragraph joined"
    TEXT = "as text, line by line"
    TABLES = "as tables, each of its sheets below its name"
    SLIDES = "slide by slide, with the notes"
    RECORDS = "as text, across the whole width"
    CODE = "as numbered lines, with syntax colours"


@dataclass(frozen=True)
class Content:
    """The bytes of a file, and what they hold if they are an archive."""

    data: bytes
    filename: str

    @cached_property
    def archive_names(self) -> frozenset[str]:
        """The names in a ZIP archive, none for other files.

        Raises: DocumentRejected for a damaged archive, and for one of too many files.
        """
        if not self.data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return frozenset()
        # Counted before the directory is read: an entry costs a hundred times its bytes. Each entry has this mark.
        if self.data.count(_ENTRY) > _MOST_ENTRIES:
            raise DocumentRejected(
                f"{self.filename} is an archive of more than {_MOST_ENTRIES:,} files: "
                "save it again in its program and upload that."
            )
        try:
            with zipfile.ZipFile(io.BytesIO(self.data)) as archive:
                return frozenset(archive.namelist())
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeError) as error:
            raise DocumentRejected(
                f"{self.filename} is a damaged ZIP or Office file: save it again in its program and upload that."
            ) from error

    @cached_property
    def archive_type(self) -> str:
        """The media type that an OpenDocument file or a book says it has; empty for other files."""
        if "mimetype" not in self.archive_names:
            return ""
        try:
            with zipfile.ZipFile(io.BytesIO(self.data)) as archive, archive.open("mimetype") as entry:
                return entry.read(100).decode("ascii", "replace").strip()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, RuntimeError, zlib.error):
            return ""


Recogniser = Callable[[Content], bool]


def never(_content: Content) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file.

    ``kind`` names it in sentences ("a Word document"), ``label`` in lists ("DOCX"). A format is read when it has an
    ``extractor``, "package.module:function": the module is imported when it is first needed. ``recognise`` tells the
    format by its bytes, whatever the name of the file; ``recognise_text`` is asked only for a file that is plain text
    by its name. A format with ``needs_recognition`` is never taken by its name alone. The extractor of one that
    ``may_be_scanned`` also takes the pages that were recognised on their pictures; that of one that
    ``may_hold_pictures`` takes an :class:`~retrieval.ingest.extraction.embedded.EmbeddedPictures`. ``refusal`` is said
    of a file of a format that is not read, instead of the usual sentence.
    """

    kind: str
    extensions: tuple[str, ...] = ()
    media_type: str = ""
    label: str = ""
    extractor: str = ""
    view: View = View.TEXT
    recognise: Recogniser = never
    recognise_text: Recogniser = never
    needs_recognition: bool = False
    may_be_scanned: bool = False
    may_hold_pictures: bool = False
    refusal: str = ""

    @property
    def extractor_module(self) -> str:
        return self.extractor.partition(":")[0]


# How formats are recognised ------------------------------------------------------------------------------------------


def begins_with(*signatures: bytes) -> Recogniser:
    return lambda content: content.data.startswith(signatures)


def archive_holds(prefix: str) -> Recogniser:
    return lambda content: any(name.startswith(prefix) for name in content.archive_names)


def declares(*media_types: str) -> Recogniser:
    return lambda content: content.archive_type in media_types


def is_pdf(content: Content) -> bool:
    # Something may stand before the mark, but not the beginning of a text that only mentions it.
    return b"%PDF-" in content.data[:1024] and content.data[:64].lstrip()[:1] not in (b"<", b"#", b"{")


def is_html(content: Content) -> bool:
    """Whether an HTML page begins here, after white space, an XML declaration and comments."""
    left = content.data[:_HTML_LOOKED_AT].removeprefix(b"\xef\xbb\xbf").lstrip()
    if left.startswith(b"<?xml"):
        left = left.partition(b">")[2].lstrip()
    while left.startswith(b"<!--"):
        left = left[4:].partition(b"-->")[2].lstrip()
    return bool(_HTML_TAG.match(left))


def is_outlook_message(content: Content) -> bool:
    return content.data.startswith(OLE) and _MESSAGE in content.data


def is_protected_office_file(content: Content) -> bool:
    return content.data.startswith(OLE) and _ENCRYPTED in content.data


def is_webp(content: Content) -> bool:
    return bool(_WEBP.match(content.data))
