"""DOCX as Markdown: headings by style, lists, and tables in their place between the paragraphs."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import docx
from docx.document import Document
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction.decoding import canonical
from retrieval.ingest.extraction.html import markdown_table
from retrieval.ingest.extraction.limits import ExtractionLimits, too_much_text
from retrieval.ingest.extraction.lines import plain_title, title_from
from retrieval.ingest.extraction.types import ExtractedText, Section, Span

_BLOCK_BYTES = 1 << 20
_DOCTYPE = b"<!DOCTYPE"
_HEADING_STYLE = re.compile(r"heading ([1-9])", re.I)
# Inserted text under review, content controls and smart tags wrap paragraphs and runs that python-docx then passes
# over.
_WRAPPERS = tuple(map(qn, ("w:ins", "w:sdt", "w:smartTag", "w:customXml", "w:moveTo")))


def extract_docx(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    _check_archive(data, filename, limits)
    document = docx.Document(io.BytesIO(data))
    _unwrap(document)
    sections: list[Section] = []
    protected: list[Span] = []
    parts: list[str] = []
    length = 0
    title = ""
    in_list = False
    for block, level in _blocks(document):
        is_item = block.startswith(("- ", "1. ")) or (in_list and bool(re.match(r" +(?:- |1\. )", block)))
        gap = "" if not parts else "\n" if is_item and in_list else "\n\n"
        in_list = is_item
        start = length + len(gap)
        if level:
            heading = plain_title(block)
            title = title or (heading if level == 1 else "")
            sections.append(Section(start, level, heading))
            block = f"{'#' * min(level, 6)} {block}"
        elif block.startswith("| "):
            protected.append(Span(start, start + len(block)))
        parts += (gap, block)
        length = start + len(block)
        if length > limits.max_text_chars:
            raise too_much_text(filename, limits)
    core = document.core_properties
    return ExtractedText(
        text="".join(parts) + "\n",
        media_type=media_type,
        title=plain_title(canonical(core.title or "")) or title or title_from(filename),
        sections=tuple(sections),
        protected=tuple(protected),
        metadata={
            key: canonical(value) for key, value in (("author", core.author), ("subject", core.subject)) if value
        },
        language_hint=(core.language or "")[:2].lower(),
    )


def _check_archive(data: bytes, filename: str, limits: ExtractionLimits) -> None:
    """Raises: DocumentRejected for an archive that unpacks to too much, by its directory or in fact, or that declares
    entities.
    """
    bomb = DocumentRejected(
        f"{filename} unpacks to far more than a document holds: save it again in Word and upload that."
    )
    entities = DocumentRejected(f"{filename} declares XML entities, as no Word file does: save it anew in Word.")
    allowed = min(limits.max_uncompressed_bytes, limits.max_compression_ratio * max(len(data), _BLOCK_BYTES // 10))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if len(entries) > 20_000 or sum(entry.file_size for entry in entries) > allowed:
            raise bomb
        unpacked = 0
        for entry in entries:
            if entry.flag_bits & 1:
                raise DocumentRejected(f"{filename} is password-protected: remove the password and upload it again.")
            is_xml = entry.filename.endswith((".xml", ".rels"))
            seen = b""
            with archive.open(entry) as stream:
                while block := stream.read(_BLOCK_BYTES):
                    unpacked += len(block)
                    if unpacked > allowed:
                        raise bomb
                    # The zero bytes are those of UTF-16.
                    seen = seen[-len(_DOCTYPE) :] + block.replace(b"\0", b"") if is_xml else b""
                    if _DOCTYPE in seen:
                        raise entities


def _unwrap(document: Document) -> None:
    body = document.element.body
    for wrapper in list(body.iter(*_WRAPPERS)):
        parent = wrapper.getparent()
        if parent is None:
            continue
        content = wrapper.find(qn("w:sdtContent")) if wrapper.tag == qn("w:sdt") else wrapper
        at = parent.index(wrapper)
        parent.remove(wrapper)
        for offset, child in enumerate(list(content) if content is not None else ()):
            parent.insert(at + offset, child)


def _blocks(document: Document) -> Iterator[tuple[str, int]]:
    """Each paragraph and table as Markdown, with a paragraph's heading level or 0. A title stands above all
    headings.
    """
    has_title = any(_style(paragraph) == "title" for paragraph in document.paragraphs)
    bullets: dict[tuple[str, str], bool] = {}
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            table = markdown_table(_rows(block))
            if table:
                yield table, 0
            continue
        text = canonical(block.text).strip()
        if not text:
            continue
        level = _heading_level(block)
        if level is not None:
            yield " ".join(text.split()), level + has_title
        else:
            yield _list_mark(block, bullets) + text, 0


def _style(paragraph: Paragraph) -> str:
    style = paragraph.style
    return (style.name or "").lower() if style is not None else ""


def _heading_level(paragraph: Paragraph) -> int | None:
    """0 for the title, 1 to 9 for a heading, by its style or one it is based on, or by its outline level; else None."""
    properties = paragraph._p.pPr
    outline = properties.find(qn("w:outlineLvl")) if properties is not None else None
    outline_level = (outline.get(qn("w:val")) or "9") if outline is not None else "9"
    if outline_level in tuple("012345678"):
        return int(outline_level) + 1
    style: Any = paragraph.style
    for _ in range(10):
        if style is None:
            break
        name = (style.name or "").lower()
        if name == "title":
            return 0
        if match := _HEADING_STYLE.fullmatch(name):
            return int(match[1])
        style = getattr(style, "base_style", None)
    return None


def _list_mark(paragraph: Paragraph, bullets: dict[tuple[str, str], bool]) -> str:
    """The Markdown mark of a list item, indented by its level; empty for other paragraphs."""
    name = _style(paragraph)
    properties: Any = paragraph._p.pPr
    numbering = properties.numPr if properties is not None else None
    if numbering is None or numbering.numId is None or not numbering.numId.val:
        if name.startswith("list bullet"):
            return "- "
        return "1. " if name.startswith("list number") else ""
    level = str(numbering.ilvl.val if numbering.ilvl is not None else 0)
    key = (str(numbering.numId.val), level)
    if key not in bullets:
        bullets[key] = _is_bullet(paragraph, *key)
    return "  " * min(int(level), 8) + ("- " if bullets[key] else "1. ")


def _is_bullet(paragraph: Paragraph, number_id: str, level: str) -> bool:
    part: Any = paragraph.part
    try:
        root = part.numbering_part.element
    except (KeyError, NotImplementedError):
        return True
    path = f"w:num[@w:numId='{number_id}']/w:abstractNumId/@w:val"
    abstract = root.xpath(path)
    if not abstract:
        return True
    formats = root.xpath(f"w:abstractNum[@w:abstractNumId='{abstract[0]}']/w:lvl[@w:ilvl='{level}']/w:numFmt/@w:val")
    return not formats or formats[0] in ("bullet", "none")


def _rows(table: Table) -> list[list[str]]:
    # Reading the cells off each row element: ``row.cells`` takes quadratic time and repeats merged cells.
    rows = [[_cell_text(_Cell(cell, table)) for cell in row.tc_lst] for row in table._tbl.tr_lst]
    return [row for row in rows if any(row)]


def _cell_text(cell: _Cell) -> str:
    texts = [
        " ".join(" / ".join(row) for row in _rows(block)) if isinstance(block, Table) else block.text
        for block in cell.iter_inner_content()
    ]
    return canonical(" ".join(" ".join(texts).split())).replace("|", r"\|")
