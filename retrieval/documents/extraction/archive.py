"""Check and unpack archives within limits, and collect the files in them."""

from __future__ import annotations

import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from html.entities import html5

from lxml import etree

from retrieval.documents import formats
from retrieval.documents.extraction.decoding import guess_codec, make_canonical_text
from retrieval.documents.extraction.writer import MarkdownWriter
from retrieval.exceptions import DocumentRejected
from retrieval.text.encodings import find_xml_encoding
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    LeftOutParts,
    MemberFile,
    derive_title,
    describe_left_out_parts,
)

_BLOCK_BYTES = 1 << 20
DOCTYPE = b"<!DOCTYPE"
ENTITY = b"<!ENTITY"
# A tag takes about 200 bytes of memory. A book of a thousand pages has about a million tags.
_MOST_TAGS = 4_000_000


def check_archive_safety(
    data: bytes,
    filename: str,
    limits: ExtractionLimits,
    *,
    program_name: str = "its program",
    refused_declaration: bytes = DOCTYPE,
) -> None:
    """Raise DocumentRejected if an archive is encrypted, has a refused XML declaration, or unpacks to too much.

    ``program_name`` names the program that writes such archives.
    """
    bomb = DocumentRejected(
        f"{filename} unpacks to far more than a document holds: save it again in {program_name} and upload that."
    )
    entities = DocumentRejected(
        f"{filename} declares XML entities, as no file of {program_name} does: save it again in {program_name}."
    )
    allowed = min(limits.max_uncompressed_bytes, limits.max_compression_ratio * max(len(data), _BLOCK_BYTES // 10))
    elements = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > allowed:
            raise bomb
        unpacked = 0
        for entry in entries:
            if entry.flag_bits & 1:
                raise DocumentRejected(f"{filename} is password-protected: remove the password and upload it again.")
            is_xml = entry.filename.endswith((".xml", ".rels", ".opf", ".xhtml"))
            seen = b""
            with archive.open(entry) as stream:
                while block := stream.read(_BLOCK_BYTES):
                    unpacked += len(block)
                    if unpacked > allowed:
                        raise bomb
                    # UTF-16 has a zero byte in each ASCII character. These bytes would hide the declaration.
                    seen = seen[-len(refused_declaration) :] + block.replace(b"\0", b"") if is_xml else b""
                    if refused_declaration in seen:
                        raise entities
                    elements += seen.count(b"<") if is_xml else 0
                    if elements > _MOST_TAGS:
                        raise DocumentRejected(
                            f"{filename} holds more than {_MOST_TAGS // 1_000_000} million XML tags: split it into"
                            " smaller files and upload those."
                        )


_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_NAMED_ENTITY = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,30});")


def _expand_entity(match: re.Match[bytes]) -> bytes:
    known = match[1].decode("ascii")
    said = html5.get(f"{known};", "") if known not in _XML_ENTITIES else ""
    return "".join(f"&#{ord(char)};" for char in said).encode() or match[0]


def parse_xml(data: bytes) -> etree._Element:
    """Return the root element of XML. HTML's named entities, such as &eacute;, are allowed."""
    encoding = find_xml_encoding(data)
    if b"\0" not in data[:200]:
        data = _NAMED_ENTITY.sub(_expand_entity, data)
    parser = etree.XMLParser(encoding=encoding, resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(data, parser)


_LONGEST_NAME = 200
_HIDDEN = re.compile(r"(?:^|/)\.")


class MemberCollector:
    """Collects the files in an archive or mail, and the names of the files that cannot be used.

    Raises: DocumentRejected from :meth:`add` if the files are too many or too large.
    """

    def __init__(self, filename: str, limits: ExtractionLimits) -> None:
        self._filename = filename
        self._limits = limits
        self._found: dict[str, MemberFile] = {}
        self._left_out: dict[str, list[str]] = {}
        self._size = 0

    @property
    def member_files(self) -> tuple[MemberFile, ...]:
        return tuple(self._found.values())

    @property
    def left_out_parts(self) -> tuple[LeftOutParts, ...]:
        parts = (
            describe_left_out_parts(kind, [name for name in names if name], len(names))
            for kind, names in self._left_out.items()
        )
        return tuple(part for found in parts for part in found)

    def add(self, name: str, data: bytes) -> None:
        """Add a file, or only record its name if its format is not supported."""
        path = clean_member_name(name)
        if not path or not data:
            return
        if len(data) > self._limits.max_bytes:
            self.leave_out("large", path)
            return
        try:
            found = formats.detect_format(data, posixpath.basename(path))
        except DocumentRejected:
            self.leave_out("pointers" if formats.is_git_lfs_pointer(data) else "unreadable", path)
            return
        is_named = posixpath.splitext(path)[1][1:].lower() in found.extensions
        if found is formats.PLAIN_TEXT and not is_named and b"\0" in data[:4096]:
            self.leave_out("unreadable", path)
            return
        self._size += len(data)
        if len(self._found) == self._limits.max_members or self._size > self._limits.max_member_bytes:
            raise make_too_many_files_error(self._filename, self._limits)
        stem, extension = posixpath.splitext(path)
        unique, number = path, 1
        while unique in self._found:
            number += 1
            unique = f"{stem} ({number}){extension}"
        self._found[unique] = MemberFile(unique, data)

    def leave_out(self, kind: str, name: str = "") -> None:
        self._left_out.setdefault(kind, []).append(clean_member_name(name))


def make_too_many_files_error(filename: str, limits: ExtractionLimits) -> DocumentRejected:
    return DocumentRejected(
        f"{filename} holds more than {limits.max_members:,} files or {limits.max_member_bytes // 1_000_000} MB: "
        "upload its files in several parts."
    )


def clean_member_name(name: str) -> str:
    path = "".join(char for char in make_canonical_text(name).replace("\\", "/") if char.isprintable())
    parts = [part.strip() for part in path.split("/")]
    kept = [part for part in parts if part not in ("", ".", "..") and not re.fullmatch("[A-Za-z]:", part)]
    clean = "/".join(kept)
    if formats.is_leftover_file(clean) or _HIDDEN.search(clean):
        return ""
    stem, extension = posixpath.splitext(clean)
    return stem[: _LONGEST_NAME - len(extension[:12])] + extension[:12]


_WESTERN = ("cp437", "cp850", "cp1252")
_LETTERS = frozenset("áàâäãåæçéèêëíìîïñóòôöõøœúùûüßÁÀÂÄÅÆÇÉÈÊËÍÑÓÖØÜ")
_PATH_IN_UNICODE = 0x7075
_CAPITAL_WITHIN = re.compile(r"(?<=[^\W\d_])(?<![A-ZÀ-ÖØ-Þ])[À-ÖØ-Þ]")


def decode_names(entries: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Return the file names in a ZIP archive. The encoding of a name without the UTF-8 flag is guessed."""
    raw = [b"" if entry.flag_bits & 0x800 else entry.orig_filename.encode("cp437", "replace") for entry in entries]
    names = [
        _read_unicode_name(entry.extra, name) or _decode_western(name) for entry, name in zip(entries, raw, strict=True)
    ]
    unknown = b"\n".join(name for name, known in zip(raw, names, strict=True) if name and not known)
    codec = guess_codec(unknown) if unknown else ""
    return [
        known or (name.decode(codec or "cp437", "replace") if name else entry.filename)
        for entry, name, known in zip(entries, raw, names, strict=True)
    ]


def _read_unicode_name(extra: bytes, raw: bytes) -> str:
    while len(extra) >= 9:
        kind, size = struct.unpack("<HH", extra[:4])
        # If the checksum of the header's name is wrong, a program renamed the file but kept the old Unicode name.
        if kind == _PATH_IN_UNICODE and struct.unpack("<I", extra[5:9]) == (zlib.crc32(raw),):
            return extra[9 : 4 + size].decode("utf-8", "replace")
        extra = extra[4 + size :]
    return ""


def _decode_western(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        pass
    for codec in _WESTERN:
        decoded = name.decode(codec, "replace")
        if all(char in _LETTERS for char in decoded if char > "\x7f") and not _CAPITAL_WITHIN.search(decoded):
            return decoded
    return ""


def extract_archive(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    members = MemberCollector(filename, limits)
    bomb = DocumentRejected(f"{filename} unpacks to far more than files hold: upload its files themselves.")
    allowed = limits.max_compression_ratio * max(len(data), _BLOCK_BYTES // 10)
    unpacked = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        if len(entries) > 2 * limits.max_members:
            raise make_too_many_files_error(filename, limits)
        names = decode_names(entries)
        has_pages = any(map(formats.has_page_extension, names))
        for entry, name in zip(entries, names, strict=True):
            if formats.is_web_page_asset(name, has_pages=has_pages):
                members.leave_out("of_pages", name)
                continue
            if entry.flag_bits & 1:
                members.leave_out("locked", name)
                continue
            pieces: list[bytes] = []
            try:
                with archive.open(entry) as stream:
                    while block := stream.read(_BLOCK_BYTES):
                        unpacked += len(block)
                        if unpacked > allowed:
                            raise bomb
                        if unpacked > limits.max_member_bytes + limits.max_bytes:
                            raise make_too_many_files_error(filename, limits)
                        pieces.append(block)
            except (zipfile.BadZipFile, NotImplementedError, zlib.error, EOFError, OSError):
                members.leave_out("unreadable", name)
                continue
            members.add(name, b"".join(pieces))
    title = derive_title(filename)
    writer = MarkdownWriter(filename, limits)
    writer.add_heading(title, 1)
    for member in members.member_files:
        writer.add_item(member.name)
    if not members.member_files:
        unread = ", ".join(name for each in members.left_out_parts for name in each.names)
        raise DocumentRejected(f"{filename} holds no file that can be read{f': {unread}' if unread else ''}.")
    return writer.build_extracted_text(title, members=members.member_files, left_out=members.left_out_parts)
