"""What extraction hands on: one canonical text, and marks at exact offsets into it. And how large a file may be."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from retrieval.exceptions import DocumentRejected

# Offsets of lines, and the words of a heading without its markup.

_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"<[^<>]{1,300}>")
_ATTRIBUTES = re.compile(r"(?<!\s)\s*+\{[#.:][^{}]*+\}\s*+$")
_EMPHASIS = (
    re.compile(r"(\*{1,3}|~~)(?=\S)([^*~]+?)(?<=\S)\1"),
    re.compile(r"(?<!\w)(_{1,3})(?=\S)([^_]++(?:(?<=\w)_(?=\w)[^_]*+)*?)(?<=\S)\1(?!\w)"),
)
_VERBATIM = re.compile(r"(?<!`)(`++)([^`]++)\1|\\([!-/:-@\[-`{-~])")
_CLOSING_HASHES = re.compile(r"(?<!\s)\s++#++\s*+$")
_ROLE = re.compile(r"(?<![\w:+-]):[\w:+-]+:`~?([^`<]*+)(?:<[^`>]*+>)?`")
_ORDERING = re.compile(r"\d{1,3}[\s_.-]+(?=[^\W\d])")
MAX_TITLE_CHARS = 200


def find_line_starts(text: str) -> list[int]:
    """The offset of each line of ``text``, then ``len(text)``: line i is ``text[starts[i]:starts[i + 1]]``."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def plain_title(source: str) -> str:
    """A heading's words without Markdown or reStructuredText markup, on one line, at most ``MAX_TITLE_CHARS`` long."""
    title = _ROLE.sub(lambda match: f"`{match[1].rstrip()}`", source[: 4 * MAX_TITLE_CHARS])
    title = _ATTRIBUTES.sub("", _CLOSING_HASHES.sub("", title))
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[2] or match[3])
        return chr(0xF0000 + len(kept) - 1)

    title = _TAG.sub("", _LINK.sub(r"\1", _VERBATIM.sub(keep, title)))
    for emphasis in _EMPHASIS:
        title = emphasis.sub(r"\2", title)
    title = re.sub(
        "[\U000f0000-\U000f0fff]",
        lambda match: kept[ord(match[0]) - 0xF0000] if ord(match[0]) - 0xF0000 < len(kept) else "",
        title,
    )
    title = " ".join(title.split())
    if len(title) > MAX_TITLE_CHARS:
        title = title[: MAX_TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
    return title


def derive_title(filename: str) -> str:
    """A readable title from a file's name: no extension, no number that orders files, spaces for underscores and
    hyphens.
    """
    stem = PurePosixPath(filename).stem
    if _ORDERING.match(filename):
        stem = _ORDERING.sub("", stem, count=1)
    title = " ".join(re.split(r"[\s_-]+", stem)).strip()
    return (title[0].upper() + title[1:] if title.islower() else title) or filename


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


S = TypeVar("S", bound=Section)


def sections_above(sections: Iterable[S], offset: int) -> list[S]:
    """The sections around the character at ``offset``, outermost first. ``sections`` are in order of their starts."""
    path: list[S] = []
    for section in sections:
        if section.start > offset:
            break
        path = [*(outer for outer in path if outer.level < section.level), section]
    return path


class Page(NamedTuple):
    """A page of a paginated file. ``number`` starts at 1; its text is ``text[start:end]``, possibly empty."""

    number: int
    start: int
    end: int


class Span(NamedTuple):
    """A stretch ``text[start:end]`` that reads badly when cut: a code block, a table, a row, a definition."""

    start: int
    end: int


class TableGridRow(NamedTuple):
    """``cells`` are the start and the end of each cell in the text, as many as the table has columns."""

    start: int
    end: int
    cells: tuple[tuple[int, int], ...]


class TableGrid(NamedTuple):
    """A table: the names of its columns, and the places of its cells.

    With ``has_decimal_points`` the extractor wrote its numbers, with a point before the decimals; else the table's own
    cells tell what a point means.
    """

    start: int
    end: int
    header: tuple[str, ...]
    rows: tuple[TableGridRow, ...]
    has_decimal_points: bool = False


class Member(NamedTuple):
    """A file in an archive, or an attachment of a mail: a document of its own. ``name`` is a relative path."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that the file holds and the text does not. ``retrieval.models.document`` has a sentence for each kind.

    ``names`` are the first of ``count``, where they have names.
    """

    kind: str
    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a file as the source viewer shows it, and its structure.

    ``text`` is canonical: Unicode NFC, ``\\n`` as the only line end, no NUL and no other control characters but tab.
    Every offset, here and in all that is derived from it, counts characters of this text and never bytes of the file.
    ``sections``, ``pages`` and ``protected`` are in order of ``start``; protected spans do not overlap.
    ``holds_records`` says that each protected span stands for itself, as the rows of a catalogue do.
    ``tables`` are those whose cells cannot be found again in the text; those in Markdown's form are not among them.
    ``unread_pages`` are the numbers of those that are pictures: their text can only be recognised.
    ``members`` are the files that it holds, of formats that are read, each under a name of its own.
    ``left_out`` says what of the file is not in the text, such as hidden sheets. A parser may leave out the media type,
    and the title of a file that has none.
    """

    text: str
    media_type: str = ""
    title: str = ""
    sections: Sequence[Section] = ()
    pages: Sequence[Page] = ()
    protected: Sequence[Span] = ()
    holds_records: bool = False
    tables: Sequence[TableGrid] = ()
    unread_pages: Sequence[int] = ()
    members: Sequence[Member] = ()
    left_out: Sequence[LeftOut] = ()

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
