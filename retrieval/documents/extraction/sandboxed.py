"""Extraction in the sandbox: the parsers run in a process of their own, and what it gives back is checked."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

from retrieval.documents import formats, sandbox
from retrieval.documents.extraction import extract, printable_name
from retrieval.documents.recognition.recognised_words import RecognisedWords, to_page
from retrieval.exceptions import DocumentRejected
from retrieval.infrastructure.metrics import FILES_BEYOND_LIMITS
from retrieval.text.extracted import (
    MOST_NAMED,
    ExtractedText,
    ExtractionLimits,
    LeftOut,
    Member,
    Page,
    Section,
    Span,
    TableGrid,
    TableGridRow,
)

logger = logging.getLogger(__name__)

_MOST_MARKS = 1_000_000
# Of a larger table no cells are kept: its rows are passages all the same.
_MOST_CELLS = 4_000_000
_LONGEST_FIELD = 2_000
_BYTES_PER_CHARACTER = 4
_HEAD_BYTES = 64 << 20
_LEAST_SECONDS = 10.0
_SECONDS_PER_MIB = 10.0


def sandbox_limits(
    memory_mib: int, seconds: float, limits: ExtractionLimits, size_bytes: int | None = None
) -> sandbox.JobLimits:
    """The limits of one extraction; its output is bounded by the text that may be in the file.

    A small file may take less processor time than a large one: it has no reason to take long, unless it is made to.
    """
    output_bytes = limits.max_text_chars * _BYTES_PER_CHARACTER + _HEAD_BYTES + limits.max_member_bytes
    if size_bytes is None:
        return sandbox.JobLimits(memory_mib, seconds, output_bytes)
    processor_seconds = round(min(seconds, _LEAST_SECONDS + _SECONDS_PER_MIB * size_bytes / 2**20))
    return sandbox.JobLimits(memory_mib, seconds, output_bytes, processor_seconds)


def extract_in_sandbox(
    data: bytes,
    filename: str,
    *,
    limits: ExtractionLimits,
    within: sandbox.JobLimits,
    recognised: Sequence[RecognisedWords] = (),
    still_wanted: sandbox.StillWanted = lambda _elapsed: True,
) -> ExtractedText:
    """As :func:`retrieval.documents.extraction.extract`, in a process with the limits ``within``.

    Raises: DocumentRejected, also for a file that needs more than ``within`` or ends the process that reads it;
    JobCancelled when ``still_wanted`` says no; SandboxUnavailable when no process can be started.
    """
    name = printable_name(filename)
    preload = [formats.detect(data, name).extractor_module] if data else []
    # What was recognised may be longer than the message of a job can be: it goes behind the file's own bytes.
    added = json.dumps([page.to_row() for page in recognised]).encode() if recognised else b""
    arguments = {"filename": filename, "limits": asdict(limits), "added_bytes": len(added)}
    try:
        head, text = sandbox.run(
            f"{__name__}:read", data + added, arguments, within, preload=preload, still_wanted=still_wanted
        )
    except sandbox.LimitExceeded as error:
        FILES_BEYOND_LIMITS.labels(limit=error.limit).inc()
        logger.warning("%s %s to be read", name, error)
        raise DocumentRejected(
            f"{name} {_describe_excess(error)}: split it, or save it again in its program."
        ) from error
    except sandbox.JobCrashed as error:
        FILES_BEYOND_LIMITS.labels(limit="crash").inc()
        logger.warning("Reading %s %s", name, error)
        raise DocumentRejected(f"{name} cannot be read: reading it {error}. Save it again in its program.") from error
    except sandbox.JobFailed as error:
        if error.kind == DocumentRejected.__name__:
            raise DocumentRejected(str(error)) from None
        raise DocumentRejected(f"{name} could not be read ({error.kind}): save it again in its program.") from error
    try:
        return _rebuild(head, text, limits)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DocumentRejected(f"{name} could not be read: its text came back damaged ({error}).") from error


def _describe_excess(error: sandbox.LimitExceeded) -> str:
    return f"{error} to be read" if error.limit != "output" else "gives more text than can be searched"


# In the sandbox ------------------------------------------------------------------------------------------------------


def read(file: BinaryIO, filename: str, limits: dict[str, int], added_bytes: int = 0) -> tuple[dict[str, Any], bytes]:
    """The extracted text as values that JSON can hold, and the text itself in UTF-8, with the members behind it."""
    data = file.read()
    size = len(data) - added_bytes
    rows = json.loads(data[size:]) if added_bytes else []
    recognised = {page.number: to_page(page) for page in (RecognisedWords(*row) for row in rows)}
    found = extract(data[:size], filename, limits=ExtractionLimits(**limits), recognised=recognised)
    if len(found.sections) + len(found.pages) + len(found.protected) > _MOST_MARKS:
        raise DocumentRejected(
            f"{printable_name(filename)} holds more than {_MOST_MARKS:,} blocks: split it into smaller files."
        )
    head = {
        "media_type": found.media_type,
        "title": found.title,
        "sections": [[section.start, section.level, section.title] for section in found.sections],
        "pages": [[page.number, page.start, page.end] for page in found.pages],
        "protected": [offset for span in found.protected for offset in (span.start, span.end)],
        "holds_records": found.holds_records,
        "tables": [_flatten_grid(grid) for grid in found.tables if len(grid.rows) * len(grid.header) <= _MOST_CELLS],
        "unread_pages": list(found.unread_pages),
        "left_out": [[each.kind, each.names, each.count] for each in found.left_out],
        "members": [[member.name, len(member.data)] for member in found.members],
    }
    return head, b"".join([found.text.encode("utf-8"), *(member.data for member in found.members)])


def _flatten_grid(grid: TableGrid) -> dict[str, Any]:
    offsets = [
        offset for row in grid.rows for offset in (row.start, row.end, *(side for cell in row.cells for side in cell))
    ]
    return {
        "header": list(grid.header),
        "start": grid.start,
        "end": grid.end,
        "offsets": offsets,
        "has_decimal_points": grid.has_decimal_points,
    }


# What came back ------------------------------------------------------------------------------------------------------


def _rebuild(head: Any, body: bytes, limits: ExtractionLimits) -> ExtractedText:
    """The extracted text from the sandbox's values. Raises: ValueError, TypeError, KeyError or AttributeError if
    :func:`read` cannot have returned them.
    """
    sizes = [int(size) for _, size in head["members"]]
    ends = list(accumulate(sizes, initial=len(body) - sum(sizes)))
    if min([ends[0], *sizes]) < 0 or len(sizes) > limits.max_members:
        raise ValueError("the members")
    text = body[: ends[0]].decode("utf-8")
    bodies = [body[start:end] for start, end in pairwise(ends)]
    if "\0" in text or len(text) > limits.max_text_chars:
        raise ValueError("the text")
    offsets = [int(offset) for offset in head["protected"]]
    sections = [Section(int(start), int(level), _check_field(title)) for start, level, title in head["sections"]]
    pages = [Page(int(number), int(start), int(end)) for number, start, end in head["pages"]]
    if len(sections) + len(pages) + len(offsets) // 2 > _MOST_MARKS:
        raise ValueError("too many marks")
    spans = [Span(start, end) for start, end in zip(offsets[::2], offsets[1::2], strict=True)]
    _check_order([span.start for span in spans], len(text), "spans")
    for marks in (spans, pages):
        if any(not 0 <= mark.start <= mark.end <= len(text) for mark in marks):
            raise ValueError("a mark")
    _check_order([section.start for section in sections], len(text), "sections")
    _check_order([page.start for page in pages], len(text), "pages")
    if formats.of_media_type(_check_field(head["media_type"])) is None:
        raise ValueError("the media type")
    return ExtractedText(
        text=text,
        media_type=head["media_type"],
        title=_check_field(head["title"]),
        sections=tuple(sections),
        pages=tuple(pages),
        protected=tuple(spans),
        holds_records=bool(head["holds_records"]),
        tables=tuple(_rebuild_grid(grid, len(text)) for grid in head["tables"]),
        unread_pages=tuple(int(number) for number in head["unread_pages"][: len(pages)]),
        left_out=tuple(
            LeftOut(_check_field(kind), tuple(_check_field(name) for name in names[:MOST_NAMED]), int(count))
            for kind, names, count in head["left_out"][:MOST_NAMED]
        ),
        members=tuple(
            Member(_check_field(name), data) for (name, _), data in zip(head["members"], bodies, strict=True)
        ),
    )


def _rebuild_grid(grid: Any, length: int) -> TableGrid:
    header = tuple(_check_field(name) for name in grid["header"])
    offsets = [int(offset) for offset in [grid["start"], grid["end"], *grid["offsets"]]]
    width = 2 + 2 * len(header)
    if (len(offsets) - 2) % width or len(offsets) > 3 * _MOST_CELLS + width:
        raise ValueError("a table")
    if offsets and not 0 <= min(offsets) <= max(offsets) <= length:
        raise ValueError("a cell")
    rows = []
    for at in range(2, len(offsets), width):
        start, end, *sides = offsets[at : at + width]
        rows.append(TableGridRow(start, end, tuple(zip(sides[::2], sides[1::2], strict=True))))
    return TableGrid(offsets[0], offsets[1], header, tuple(rows), bool(grid["has_decimal_points"]))


def _check_order(offsets: list[int], length: int, what: str) -> None:
    previous = 0
    for offset in offsets:
        if not previous <= offset <= length:
            raise ValueError(what)
        previous = offset


def _check_field(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("a field")
    return value[:_LONGEST_FIELD]
