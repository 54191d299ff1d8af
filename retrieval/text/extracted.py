"""The text and structure that are extracted from a file, and the limits on files."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple, TypeVar

from retrieval.exceptions import DocumentRejected

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
    """Return the offset of each line, and ``len(text)``. Line i is ``text[starts[i]:starts[i + 1]]``."""
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def strip_title(source: str) -> str:
    """Return a heading on one line, without markup, cut to MAX_TITLE_CHARS characters."""
    title = _ROLE.sub(lambda match: f"`{match[1].rstrip()}`", source[: 4 * MAX_TITLE_CHARS])
    title = _ATTRIBUTES.sub("", _CLOSING_HASHES.sub("", title))
    kept: list[str] = []

    def replace_verbatim_part(match: re.Match[str]) -> str:
        kept.append(match[2] or match[3])
        return chr(0xF0000 + len(kept) - 1)

    title = _TAG.sub("", _LINK.sub(r"\1", _VERBATIM.sub(replace_verbatim_part, title)))
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


# Programs write these titles into a file if its author gave none.
_PLACEHOLDER = re.compile(
    r"\(?(?:anonymous|untitled|unknown|unspecified|no title|title|document|presentation|slide|sheet|page)"
    r"(?: title| document| page)?\)?[ _-]?\d{0,3}|(?:microsoft )?powerpoint(?:[- ]presentation|-presentatie)"
    r"|(?:microsoft|libreoffice|google) \w+ ?- ?.*|.*\.(?:docx?|odt|tex|dvi|ps|indd|qxd|pdf|rtf|pptx?|xlsx?)",
    re.I,
)


def read_declared_title(words: str) -> str:
    """Return the title in a file's metadata; empty if it is a placeholder such as "Untitled"."""
    title = strip_title(words)
    return "" if _PLACEHOLDER.fullmatch(title) else title


def derive_title(filename: str) -> str:
    stem = PurePosixPath(filename).stem
    if _ORDERING.match(filename):
        stem = _ORDERING.sub("", stem, count=1)
    title = " ".join(re.split(r"[\s_-]+", stem)).strip()
    return (title[0].upper() + title[1:] if title.islower() else title) or filename


MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document. ``start`` is the offset of its heading; the outermost ``level`` is 1.

    The section ends at the next heading with an equal or smaller ``level``.
    """

    start: int
    level: int
    title: str


S = TypeVar("S", bound=Section)


def find_sections_above(sections: Iterable[S], offset: int) -> list[S]:
    """Return the sections that contain ``offset``, outermost first. ``sections`` must be sorted by start."""
    path: list[S] = []
    for section in sections:
        if section.start > offset:
            break
        path = [*(outer for outer in path if outer.level < section.level), section]
    return path


class Page(NamedTuple):
    """A page of a file: ``text[start:end]``, which may be empty. ``number`` starts at 1."""

    number: int
    start: int
    end: int


class Span(NamedTuple):
    """A range of text that should not be split: a code block, table, row or definition."""

    start: int
    end: int


class TableGridRow(NamedTuple):
    """A row of a table. ``cells`` are (start, end) for each column."""

    start: int
    end: int
    cells: tuple[tuple[int, int], ...]


class TableGrid(NamedTuple):
    """A table in an extracted text: the names of its columns, and the offsets of its cells.

    If ``has_decimal_points`` is true, its numbers have no decimal commas.
    """

    start: int
    end: int
    header: tuple[str, ...]
    rows: tuple[TableGridRow, ...]
    has_decimal_points: bool = False


class MemberFile(NamedTuple):
    """A file in an archive or mail. It becomes a document of its own. ``name`` is a relative path."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LeftOutParts:
    """Parts of a file that are missing in its text. ``names`` has the names of the first ten parts."""

    kind: str
    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ExtractedText:
    """The text of a file in the form in which it is stored, and its structure.

    - ``text``: in Unicode NFC, with the line end ``\\n``, and no control character but tab. Offsets count characters.
    - ``sections``, ``pages``: sorted by ``start``.
    - ``protected``: sorted ranges without overlaps, which should not be split. If ``holds_records`` is true, each range
      is an independent record, such as a row of a catalogue.
    - ``tables``: only tables whose cells cannot be found by parsing the text.
    - ``unread_pages``: numbers of scanned pages, which need OCR.
    - ``members``: the files in it. Their names are unique.
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
    members: Sequence[MemberFile] = ()
    left_out: Sequence[LeftOutParts] = ()

    def page_at(self, offset: int) -> int | None:
        """Return the number of the page that contains ``offset``, or of the page before it; None without pages."""
        if not self.pages:
            return None
        return self.pages[max(0, bisect_right(self.pages, offset, key=lambda page: page.start) - 1)].number


def describe_left_out_parts(kind: str, names: Sequence[str], count: int = 0) -> tuple[LeftOutParts, ...]:
    """Return a description of parts of a file that are missing in its text; empty if no parts are missing.

    ``count`` is the number of parts, if not all of them are in ``names``.
    """
    total = count or len(names)
    return (LeftOutParts(kind, tuple(names[:MOST_NAMED]), total),) if total else ()


@dataclass(frozen=True, slots=True)
class ExtractionLimits:
    """Limits for one file. A file above a limit is rejected, and not truncated."""

    max_bytes: int = 50_000_000
    max_text_chars: int = 20_000_000
    max_pages: int = 5_000
    max_uncompressed_bytes: int = 500_000_000
    max_compression_ratio: int = 200
    max_members: int = 1_000
    max_member_bytes: int = 100_000_000


def build_too_much_text_error(filename: str, limits: ExtractionLimits) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} holds more than {limits.max_text_chars:,} characters of text: "
        "split it into smaller files and upload those."
    )
