"""Extract the chapters of an EPUB in reading order."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from lxml import etree

from retrieval.documents.extraction.archive import ENTITY, check_archive_safety, parse_xml
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.markdown import build_markdown_text
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    build_too_much_text_error,
    read_declared_title,
    strip_title,
)

_HEADING = re.compile(r"^#{1,6} ", re.M)
_NEAR_BEGINNING = 2_000
_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})


def extract_book(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive_safety(data, filename, limits, refused_declaration=ENTITY)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        container = parse_xml(archive.read("META-INF/container.xml"))
        package_path = next(str(path) for path in container.xpath("//*[local-name()='rootfile']/@full-path"))
        package = parse_xml(archive.read(package_path))
        chapters = [path for path in _list_chapters(package, package_path) if path in names]
        if "META-INF/encryption.xml" in names:
            encryption = parse_xml(archive.read("META-INF/encryption.xml"))
            locked = {unquote(str(uri)) for uri in encryption.xpath("//*[local-name()='CipherReference']/@URI")}
            if not locked.isdisjoint(chapters):
                raise DocumentRejected(
                    f"{filename} is protected against copying (DRM), so that its text cannot be read."
                )
        titles = dict(_read_table_of_contents(archive, package, package_path, names))
        parts: list[str] = []
        length = 0
        for path in chapters:
            text = _read_chapter(archive.read(path), path, titles.get(path, ""))
            if text:
                parts.append(text)
                length += len(text)
            if length > limits.max_text_chars:
                raise build_too_much_text_error(filename, limits)
    declared = package.xpath("//*[local-name()='metadata']/*[local-name()='title']/text()")
    title = read_declared_title(make_canonical_text(str(declared[0]))) if declared else ""
    return build_markdown_text("\n\n".join(parts) + "\n", title)


def _list_chapters(package: etree._Element, package_path: str) -> Iterator[str]:
    items = {
        item.get("id"): item
        for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']")
        if item.get("media-type") in _PAGES and "nav" not in (item.get("properties") or "").split()
    }
    for reference in package.xpath("//*[local-name()='spine']/*[local-name()='itemref']"):
        item = items.get(reference.get("idref"))
        if item is not None:
            yield _resolve(package_path, item.get("href") or "")


def _resolve(base: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(href.partition("#")[0])))


def _read_table_of_contents(
    archive: zipfile.ZipFile, package: etree._Element, package_path: str, names: set[str]
) -> Iterator[tuple[str, str]]:
    for item in package.xpath("//*[local-name()='manifest']/*[local-name()='item']"):
        path = _resolve(package_path, item.get("href") or "")
        is_navigation = "nav" in (item.get("properties") or "").split()
        if path not in names or not (is_navigation or item.get("media-type") == "application/x-dtbncx+xml"):
            continue
        contents = parse_xml(archive.read(path))
        if is_navigation:
            entries = [
                (link.get("href") or "", " ".join(link.itertext()))
                for link in contents.xpath("(//*[local-name()='nav'])[1]//*[local-name()='a']")
            ]
        else:
            entries = [
                (str(source), " ".join(point.xpath("./*[local-name()='navLabel']//text()")))
                for point in contents.xpath("//*[local-name()='navPoint']")
                for source in point.xpath("./*[local-name()='content']/@src")
            ]
        # The first entry for a file is its title. The caller's dict keeps the last one, so the order is reversed.
        yield from reversed(
            [(_resolve(path, href), " ".join(make_canonical_text(words).split())) for href, words in entries]
        )


def _read_chapter(data: bytes, path: str, title: str) -> str:
    try:
        # An HTML parser would take all text after an empty <title/> as the title.
        root: etree._Element | None = parse_xml(data)
        assert root is not None
        for element in root.iter(etree.Element):
            name = etree.QName(element).localname
            # The HTML converter drops asides and footers, which are content in a book.
            element.tag = "div" if name in ("aside", "footer") else name
    except etree.XMLSyntaxError:
        name = posixpath.basename(path)
        root = parse_html(decode(data, name, html=True), name)
    text = convert_html(root) if root is not None else ""
    if not title or not text or _HEADING.search(text[:_NEAR_BEGINNING]):
        return text
    first, _, rest = text.partition("\n")
    return f"# {strip_title(title)}\n\n{rest.lstrip() if first.casefold() == title.casefold() else text}"
