"""Extract files in a sandboxed process, and check the values that it returns."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate, pairwise
from typing import Any, BinaryIO

from retrieval.documents import formats, sandbox
from retrieval.documents.extraction import extract, printable_name
from retrieval.documents.recognition.recognised_words import build_page
from retrieval.exceptions import DocumentRejected
from retrieval.metrics import FILES_BEYOND_LIMITS
from retrieval.text.extracted import (
    MOST_NAMED,
    ExtractedText,
    ExtractionLimits,
    LeftOutParts,
    MemberFile,
    Page,
    Section,
    Span,
    TableGrid,
    TableGridRow,
)

logger = logging.getLogger(__name__)

_MOST_MARKS = 1_000_000
_MOST_CELLS = 2_500_000
_LONGEST_FIELD = 2_000
_BYTES_PER_CHARACTER = 4
_HEAD_BYTES = 64 << 20
_LEAST_SECONDS = 10.0
_SECONDS_PER_MIB = 10.0


def build_sandbox_limits(
    memory_mib: int, seconds: float, limits: ExtractionLimits, size_bytes: int | None = None
) -> sandbox.JobLimits:
    """Return the limits of one extraction. A larger file gets more processor time."""
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
    job_limits: sandbox.JobLimits,
    recognised: Sequence[Sequence[Any]] = (),
    still_wanted: sandbox.StillWanted = lambda _elapsed: True,
) -> ExtractedText:
    """Run :func:`retrieval.documents.extraction.extract` in a process with the limits ``job_limits``.

    ``recognised`` are pages that OCR has read: the page number, width and height in points, rotation in degrees, and
    words. Raises: DocumentRejected, also if the file exceeds ``job_limits`` or crashes the process; JobCancelled if
    ``still_wanted`` returns False; SandboxUnavailable.
    """
    name = printable_name(filename)
    preload = [formats.detect_format(data, name).extractor.partition(":")[0]] if data else []
    # The list of OCR's words may be too long for a job's message, so it follows the file's bytes.
    added = json.dumps(recognised).encode() if recognised else b""
    arguments = {"filename": filename, "limits": asdict(limits), "added_bytes": len(added)}
    try:
        head, text = sandbox.run(
            f"{__name__}:extract_as_job",
            data + added,
            arguments,
            job_limits,
            preload=preload,
            still_wanted=still_wanted,
        )
    except sandbox.LimitExceeded as error:
        FILES_BEYOND_LIMITS.labels(limit=error.limit).inc()
        logger.warning("%s %s to be read", name, error)
        excess = "gives more text than can be searched" if error.limit == "output" else f"{error} to be read"
        raise DocumentRejected(f"{name} {excess}: split it, or save it again in its program.") from error
    except sandbox.JobCrashed as error:
        FILES_BEYOND_LIMITS.labels(limit="crash").inc()
        logger.warning("Reading %s %s", name, error)
        raise DocumentRejected(f"{name} cannot be read: reading it {error}. Save it again in its program.") from error
    except sandbox.JobFailed as error:
        if error.kind == DocumentRejected.__name__:
            raise DocumentRejected(str(error)) from None
        raise DocumentRejected(f"{name} could not be read ({error.kind}): save it again in its program.") from error
    try:
        return _rebuild_extracted_text(head, text, limits)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DocumentRejected(f"{name} could not be read: its text came back damaged ({error}).") from error


def extract_as_job(
    file: BinaryIO, filename: str, limits: dict[str, int], added_bytes: int = 0
) -> tuple[dict[str, object], bytes]:
    """Extract a file within the sandbox process.

    Return JSON-serialisable values, and one byte string: the text in UTF-8, followed by the member files.
    """
    data = file.read()
    size = len(data) - added_bytes
    rows = json.loads(data[size:]) if added_bytes else []
    recognised = {number: build_page(*page) for number, *page in rows}
    found = extract(data[:size], filename, limits=ExtractionLimits(**limits), recognised=recognised)
    if len(found.sections) + len(found.pages) + len(found.protected) > _MOST_MARKS:
        raise DocumentRejected(
            f"{printable_name(filename)} holds more than {_MOST_MARKS:,} blocks: split it into smaller files."
        )
    head = {
        "media_type": found.media_type,
        "title": found.title,
        "sections": [[section.start, section.level, section.title] for section in found.sections],
        "pages": found.pages,
        "protected": found.protected,
        "holds_records": found.holds_records,
        "tables": [grid for grid in found.tables if len(grid.rows) * len(grid.header) <= _MOST_CELLS],
        "unread_pages": found.unread_pages,
        "left_out": [[each.kind, each.names, each.count] for each in found.left_out],
        "members": [[member.name, len(member.data)] for member in found.members],
    }
    return head, b"".join([found.text.encode("utf-8"), *(member.data for member in found.members)])


def _rebuild_extracted_text(head: Any, body: bytes, limits: ExtractionLimits) -> ExtractedText:
    """Return the extracted text from the values that the sandbox process sent.

    Raises: ValueError, TypeError, KeyError or AttributeError for invalid values, because an attacker may control the
    process.
    """
    sizes = [int(size) for _, size in head["members"]]
    ends = list(accumulate(sizes, initial=len(body) - sum(sizes)))
    if min([ends[0], *sizes]) < 0 or len(sizes) > limits.max_members:
        raise ValueError("the members")
    text = body[: ends[0]].decode("utf-8")
    bodies = [body[start:end] for start, end in pairwise(ends)]
    if "\0" in text or len(text) > limits.max_text_chars:
        raise ValueError("the text")
    marks = [head["sections"], head["pages"], head["protected"]]
    if sum(map(len, marks)) > _MOST_MARKS:
        raise ValueError("too many marks")
    if formats.find_format(_check_string(head["media_type"])) is None:
        raise ValueError("the media type")
    sections = [Section(int(start), int(level), _check_string(title)) for start, level, title in head["sections"]]
    pages = [Page(int(number), *_check_offsets(place, len(text))) for number, *place in head["pages"]]
    spans = [Span(*_check_offsets(place, len(text))) for place in head["protected"]]
    for found in (sections, pages, spans):
        _check_offsets([0, *(mark.start for mark in found)], len(text))
    return ExtractedText(
        text=text,
        media_type=head["media_type"],
        title=_check_string(head["title"]),
        sections=tuple(sections),
        pages=tuple(pages),
        protected=tuple(spans),
        holds_records=bool(head["holds_records"]),
        tables=tuple(_rebuild_grid(len(text), *grid) for grid in head["tables"]),
        unread_pages=tuple(int(number) for number in head["unread_pages"][: len(pages)]),
        left_out=tuple(
            LeftOutParts(_check_string(kind), tuple(_check_string(name) for name in names[:MOST_NAMED]), int(count))
            for kind, names, count in head["left_out"][:MOST_NAMED]
        ),
        members=tuple(
            MemberFile(_check_string(name), data) for (name, _), data in zip(head["members"], bodies, strict=True)
        ),
    )


def _rebuild_grid(length: int, start: Any, end: Any, header: Any, rows: Any, has_decimal_points: Any) -> TableGrid:
    rebuilt = []
    for row_start, row_end, cells in rows:
        if len(cells) != len(header):
            raise ValueError("a row")
        place = _check_offsets([row_start, *(offset for cell in cells for offset in cell), row_end], length)
        rebuilt.append(TableGridRow(place[0], place[-1], tuple(zip(place[1:-1:2], place[2:-1:2], strict=True))))
    first, last = _check_offsets([start, end], length)
    return TableGrid(first, last, tuple(map(_check_string, header)), tuple(rebuilt), bool(has_decimal_points))


def _check_offsets(offsets: Sequence[Any], length: int) -> list[int]:
    found = [int(offset) for offset in offsets]
    if found != sorted(found) or not 0 <= found[0] <= found[-1] <= length:
        raise ValueError("a place")
    return found


def _check_string(value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise TypeError("a field")
    return value[:_LONGEST_FIELD]
