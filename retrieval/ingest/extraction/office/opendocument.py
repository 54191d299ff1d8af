"""What ODT, ODS and ODP have in common: an archive of XML, its title, and words with their spaces and line ends."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping

from lxml import etree

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.lines import plain_title
from retrieval.ingest.extraction.types import ExtractionLimits
from retrieval.ingest.extraction.unpacking import ENTITY, check_archive, parse_xml

Element = etree._Element

_NAMESPACES = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "draw": "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0",
    "presentation": "urn:oasis:names:tc:opendocument:xmlns:presentation:1.0",
    "svg": "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
    "xlink": "http://www.w3.org/1999/xlink",
}
_SPACES = re.compile(" {2,}")
_SPACE = re.compile(r"[ \t\n]+")


def name(prefixed: str) -> str:
    """The name of an element or attribute as lxml has it."""
    prefix, _, local = prefixed.partition(":")
    return f"{{{_NAMESPACES[prefix]}}}{local}"


# Comments, tracked deletions and the descriptions of pictures are no words of the document; tables are read apart.
_NOT_READ = frozenset(
    map(
        name,
        ("office:annotation", "text:tracked-changes", "text:note-citation", "svg:title", "svg:desc", "table:table"),
    )
)


def load_content(data: bytes, filename: str, limits: ExtractionLimits) -> tuple[Element, str]:
    """The root of the document's content, and its title or nothing.

    Raises: DocumentRejected for a file that is encrypted, or larger than a document.
    """
    check_archive(data, filename, limits, refused=ENTITY)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise DocumentRejected(f"{filename} is password-protected: remove the password and upload it again.")
        root = parse_xml(archive.read("content.xml"))
        meta = parse_xml(archive.read("meta.xml")) if "meta.xml" in names else None
    title = meta.find(f".//{name('dc:title')}") if meta is not None else None
    return root, plain_title(canonical(title.text or "")) if title is not None else ""


def find_properties(root: Element, family: str, kind: str) -> dict[str, Mapping[str, str]]:
    """The properties, such as ``style:table-properties``, of the styles of a family by the styles' names."""
    found: dict[str, Mapping[str, str]] = {}
    for style in root.iter(name("style:style")):
        if style.get(name("style:family")) == family and (properties := style.find(name(kind))) is not None:
            found[style.get(name("style:name")) or ""] = {str(key): str(value) for key, value in properties.items()}
    return found


def read_words(element: Element) -> str:
    """The words of a paragraph or cell: runs of white space as one space, line ends where it has them; a footnote
    stands in brackets."""
    return _SPACES.sub(" ", canonical("".join(_pieces(element)))).strip()


def _pieces(element: Element) -> Iterator[str]:
    if element.text:
        yield _SPACE.sub(" ", element.text)
    for child in element:
        if isinstance(child.tag, str) and child.tag not in _NOT_READ:
            if child.tag == name("text:s"):
                yield " "
            elif child.tag == name("text:note"):
                yield f" ({' '.join(read_words(child).split())})"
            elif child.tag in (name("draw:frame"), name("text:p")):
                # A box of text inside of a paragraph, and the paragraphs in it.
                yield " "
                yield from _pieces(child)
                yield " "
            elif child.tag == name("text:tab"):
                yield "\t"
            elif child.tag == name("text:line-break"):
                yield "\n"
            else:
                yield from _pieces(child)
        if child.tail:
            yield _SPACE.sub(" ", child.tail)
