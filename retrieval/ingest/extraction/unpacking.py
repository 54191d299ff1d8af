"""Archives of XML, of office programs and books: checked for what they unpack to before a parser sees them."""

from __future__ import annotations

import io
import zipfile

from lxml import etree

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.types import ExtractionLimits

_BLOCK_BYTES = 1 << 20
_MOST_ENTRIES = 20_000
DOCTYPE = b"<!DOCTYPE"
ENTITY = b"<!ENTITY"
# A book of a thousand pages has about a million; each takes some 200 bytes of memory.
_MOST_TAGS = 4_000_000


def check_archive(
    data: bytes, filename: str, limits: ExtractionLimits, *, program: str = "its program", refused: bytes = DOCTYPE
) -> None:
    """Raises: DocumentRejected for an archive that unpacks to too much, by its directory or in fact, that is encrypted,
    or whose XML holds the declaration ``refused``.
    """
    bomb = DocumentRejected(
        f"{filename} unpacks to far more than a document holds: save it again in {program} and upload that."
    )
    entities = DocumentRejected(
        f"{filename} declares XML entities, as no file of {program} does: save it again in {program}."
    )
    allowed = min(limits.max_uncompressed_bytes, limits.max_compression_ratio * max(len(data), _BLOCK_BYTES // 10))
    elements = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if len(entries) > _MOST_ENTRIES or sum(entry.file_size for entry in entries) > allowed:
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
                    # The zero bytes are those of UTF-16.
                    seen = seen[-len(refused) :] + block.replace(b"\0", b"") if is_xml else b""
                    if refused in seen:
                        raise entities
                    elements += seen.count(b"<") if is_xml else 0
                    if elements > _MOST_TAGS:
                        raise DocumentRejected(
                            f"{filename} holds more than {_MOST_TAGS // 1_000_000} million XML tags: split it into"
                            " smaller files and upload those."
                        )


def parse_xml(data: bytes) -> etree._Element:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
