"""ZIP: its files are documents of their own, and its text is their list."""

from __future__ import annotations

import io
import zipfile
import zlib

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.containers.members import Members, too_many
from retrieval.ingest.extraction.lines import derive_title
from retrieval.ingest.extraction.types import ExtractedText, ExtractionLimits
from retrieval.ingest.extraction.writer import MarkdownWriter

_BLOCK_BYTES = 1 << 20
_LEAST_BYTES = 1 << 20
_ENCRYPTED = 1


def extract_archive(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    members = Members(filename, limits)
    bomb = DocumentRejected(f"{filename} unpacks to far more than files hold: upload its files themselves.")
    allowed = limits.max_compression_ratio * max(len(data), _LEAST_BYTES // 10)
    unpacked = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > 2 * limits.max_members:
            raise too_many(filename, limits)
        for entry in entries:
            if entry.flag_bits & _ENCRYPTED:
                members.leave_out("locked", entry.filename)
                continue
            pieces: list[bytes] = []
            try:
                with archive.open(entry) as stream:
                    while block := stream.read(_BLOCK_BYTES):
                        unpacked += len(block)
                        if unpacked > allowed:
                            raise bomb
                        if unpacked > limits.max_member_bytes + limits.max_bytes:
                            raise too_many(filename, limits)
                        pieces.append(block)
            except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, OSError):
                members.leave_out("unreadable", entry.filename)
                continue
            members.add(entry.filename, b"".join(pieces))
    title = derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(title, 1)
    for member in members.found:
        writer.add_item(member.name)
    if not members.found:
        names = ", ".join(name for each in members.left_out for name in each.names)
        raise DocumentRejected(f"{filename} holds no file that can be read{f': {names}' if names else ''}.")
    return writer.finish(media_type=media_type, title=title, members=members.found, left_out=members.left_out)
