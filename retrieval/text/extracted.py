"""What extraction hands on: one canonical text, and marks at exact offsets into it. And how large a file may be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrieval.exceptions import DocumentRejected

MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Section:
    """A heading. ``start`` is the offset of its first character (an overline's, in reStructuredText).

    ``level`` starts at 1 for the outermost; the section reaches to the next one of the same or a lower level.
    ``title`` holds no markup.
    """

    start: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a paginated file. ``number`` starts at 1; its text is ``text[start:end]``, possibly empty."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch ``text[start:end]`` that reads badly when cut: a code block, a table, a row, a definition."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TableGridRow:
    """``cells`` are the start and the end of each cell in the text, as many as the table has columns."""

    start: int
    end: int
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TableGrid:
    """A table: the names of its columns, and the places of its cells.

    With ``has_decimal_points`` the extractor wrote its numbers, with a point before the decimals; else the table's own
    cells tell what a point means.
    """

    start: int
    end: int
    header: tuple[str, ...]
    rows: tuple[TableGridRow, ...]
    has_decimal_points: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive, or an attachment of a mail: a document of its own. ``name`` is a relative path."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that the file holds and the text does not. ``retrieval.models.left_out`` has a sentence for each kind.

    ``names`` are the first of ``count``, where they have names.
    """

    kind: str
    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class EmbeddedPicture:
    """A picture in a document, of a size that may hold words. ``number`` tells it from all pages and pictures."""

    number: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a file as the source viewer shows it, and its structure.

    ``text`` is canonical: Unicode NFC, ``\\n`` as the only line end, no NUL and no other control characters but tab.
    Every offset, here and in all that is derived from it, counts characters of this text and never bytes of the file.
    ``sections``, ``pages`` and ``protected`` are in order of ``start``; protected spans do not overlap.
    ``holds_records`` says that each protected span stands for itself, as the rows of a catalogue do.
    ``tables`` are those whose cells cannot be found again in the text; those in Markdown's form are not among them.
    ``encoding`` is the one the bytes were decoded with, empty for formats that carry their own.
    ``unread_pages`` are the numbers of those that are pictures: their text can only be recognised.
    ``language_hint`` is the two-letter code the file itself declares, or empty.
    ``members`` are the files that it holds, of formats that are read, each under a name of its own.
    ``pictures`` are those in it whose words may be recognised, whether they are or not.
    ``left_out`` says what of the file is not in the text, such as hidden sheets.
    """

    text: str
    media_type: str
    title: str
    sections: tuple[Section, ...] = ()
    pages: tuple[Page, ...] = ()
    protected: tuple[Span, ...] = ()
    holds_records: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[TableGrid, ...] = ()
    encoding: str = ""
    unread_pages: tuple[int, ...] = ()
    language_hint: str = ""
    members: tuple[Member, ...] = ()
    pictures: tuple[EmbeddedPicture, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The number of the page that holds ``offset`` (between two pages, the earlier); None for a file without
        pages.
        """
        if not self.pages:
            return None
        return self.pages[max(0, bisect_right(self.pages, offset, key=lambda page: page.start) - 1)].number


def leave_out(kind: str, names: Sequence[str], count: int = 0) -> tuple[LeftOut, ...]:
    """All of one kind; nothing where there is none. ``count`` is that of what has no names."""
    total = count or len(names)
    return (LeftOut(kind, tuple(names[:MOST_NAMED]), total),) if total else ()


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Upper bounds on one file; what passes one of them is rejected, never cut short."""

    max_bytes: int = 50_000_000
    max_text_chars: int = 20_000_000
    max_pages: int = 5_000
    max_uncompressed_bytes: int = 500_000_000
    max_compression_ratio: int = 200
    max_members: int = 1_000
    max_member_bytes: int = 100_000_000


def too_much_text(filename: str, limits: ExtractionLimits) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} holds more than {limits.max_text_chars:,} characters of text: "
        "split it into smaller files and upload those."
    )
