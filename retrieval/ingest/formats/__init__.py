"""The formats of files: which one a file has, and what is said of those that are not read. PURE.

To add a format, write a module with a function that extracts its text, and one :class:`Format` in ``known``,
or :func:`register` it. Detection, extraction, the source viewer, the upload form and the messages follow from it; a
test compares ``docs/formats.md`` with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.formats.file_format import Content, Format, View
from retrieval.ingest.formats.known import KNOWN_FORMATS, PLAIN_TEXT
from retrieval.ingest.formats.media_types import JSON, JSON_LINES, PLAIN

__all__ = ["Format", "View"]

_formats: list[Format] = list(KNOWN_FORMATS)


def register(*formats: Format) -> None:
    """Add formats. They are asked in their order, and before all that were registered earlier."""
    _formats[:0] = formats


@contextmanager
def restoring_registry() -> Iterator[None]:
    """What is registered in this context is forgotten after it."""
    before = list(_formats)
    try:
        yield
    finally:
        _formats[:] = before


def read_formats() -> list[Format]:
    """The formats that are read."""
    return [known for known in _formats if known.extractor]


def of_media_type(media_type: str) -> Format | None:
    """The format with this media type; None for a document that was not read yet, or whose format is gone."""
    return next((known for known in read_formats() if known.media_type == media_type), None)


def view_of(media_type: str) -> View:
    """How the viewer shows a document; as text when its format is not known."""
    known = of_media_type(media_type)
    return known.view if known else View.TEXT


def page_unit(media_type: str) -> str:
    """What a page of the document is: "slide" or "page"."""
    return "slide" if view_of(media_type) is View.SLIDES else "page"


def is_code(media_type: str) -> bool:
    """Whether the text is source code or data, none of whose lines is prose."""
    return view_of(media_type) is View.CODE or media_type in (JSON, JSON_LINES)


def list_supported() -> str:
    """The labels of the formats that are read, as part of a sentence."""
    *labels, last = dict.fromkeys(known.label for known in read_formats())
    return f"{', '.join(labels)} and {last}"


def accepted_files() -> str:
    """The value of the attribute ``accept`` of a file input. Text files have many names, so it accepts all of them."""
    return ",".join(["text/*", *(f".{extension}" for known in read_formats() for extension in known.extensions)])


def detect(data: bytes, filename: str, declared_media_type: str = "") -> Format:
    """The format by which ``data`` is read: by content first, by name second, by what the sender declared last.

    Raises: DocumentRejected for a format that is not read, and for a name that promises another content.
    """
    content = Content(data, filename)
    if by_content := next((known for known in _formats if known.recognise(content)), None):
        if not by_content.extractor:
            raise _reject(by_content, filename)
        return by_content
    extension = PurePosixPath(filename).suffix[1:].lower()
    found = next((known for known in _formats if extension in known.extensions), None)
    if found and found.needs_recognition:
        raise DocumentRejected(
            f"{filename} is not {found.kind} although its name says so: check the file and upload it again."
        )
    if found and not found.extractor:
        raise _reject(found, filename)
    declared = declared_media_type.partition(";")[0].strip().lower()
    if not found and (by_declaration := of_media_type(declared)) and not by_declaration.needs_recognition:
        found = by_declaration
    if not found or found.media_type == PLAIN:
        found = next((known for known in read_formats() if known.recognise_text(content)), found)
    return found or PLAIN_TEXT


def _reject(known: Format, filename: str) -> DocumentRejected:
    """The refusal of a file of a format that is not read."""
    return DocumentRejected(
        f"{filename} is {known.refusal}"
        if known.refusal
        else f"{filename} is {known.kind}; supported are {list_supported()}: convert it to one of these and upload it "
        "again."
    )
