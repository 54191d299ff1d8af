"""DOCX as Markdown, with headings by style or outline level, lists, and tables in their place."""

from __future__ import annotations

import io
import re
from typing import Any

import docx
from docx.document import Document
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from retrieval.documents.extraction.archive import check_archive
from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread
from retrieval.text.extracted import ExtractedText, ExtractionLimits, plain_title

_HEADING_STYLE = re.compile(r"heading ([1-9])", re.I)
# Inserted text under review, content controls and smart tags wrap paragraphs and runs that python-docx then passes
# over.
_WRAPPERS = tuple(map(qn, ("w:ins", "w:sdt", "w:smartTag", "w:customXml", "w:moveTo")))


def extract_docx(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive(data, filename, limits, program="Word")
    document = docx.Document(io.BytesIO(data))
    _unwrap(document)
    writer = MarkdownWriter(filename, limits)
    _write_blocks(document, writer)
    return writer.finish(plain_title(canonical(document.core_properties.title or "")) or writer.first_title)


def _unwrap(document: Document) -> None:
    body = document.element.body
    for wrapper in list(body.iter(*_WRAPPERS)):
        parent = wrapper.getparent()
        if parent is None:
            continue
        content = wrapper.find(qn("w:sdtContent")) if wrapper.tag == qn("w:sdt") else wrapper
        for child in list(content) if content is not None else ():
            wrapper.addprevious(child)
        parent.remove(wrapper)


def _write_blocks(document: Document, writer: MarkdownWriter) -> None:
    """Each paragraph and table in its place. A title stands above all headings."""
    # Each style is looked up once: looking one up goes through all of them.
    styles: dict[str | None, tuple[str, int | None]] = {}

    def style_of(paragraph: Paragraph) -> tuple[str, int | None]:
        style_id = paragraph._p.style
        if style_id not in styles:
            styles[style_id] = _read_style(paragraph.style)
        return styles[style_id]

    lists = _Lists(document)
    has_title = any(style_of(paragraph)[0] == "title" for paragraph in document.paragraphs)
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            writer.add_table(_read_rows(block))
            continue
        # An empty one is told by its element: asking for its text takes a hundred times longer.
        text = block.text if len(block._p) else ""
        if not text:
            continue
        style, level = style_of(block)
        # An entry of a table of contents answers nothing.
        if style.startswith("toc ") and text[-1].isdigit():
            continue
        level = _read_outline_level(block) or level
        if level is not None:
            writer.add_heading(text, level + has_title)
        elif item := lists.level_of(block, style):
            writer.add_item(text, item[0], is_numbered=item[1])
        else:
            writer.add_paragraph(text)


def _read_style(style: Any) -> tuple[str, int | None]:
    """The name of a style, and the level of its headings by its own name or that of a style it is based on: 0 for a
    title, 1 to 9 for a heading."""
    name = (style.name or "").lower() if style is not None else ""
    for _ in range(10):
        if style is None:
            break
        based_on = (style.name or "").lower()
        if based_on == "title":
            return name, 0
        if match := _HEADING_STYLE.fullmatch(based_on):
            return name, int(match[1])
        style = getattr(style, "base_style", None)
    return name, None


def _read_outline_level(paragraph: Paragraph) -> int | None:
    """1 to 9 for a paragraph that is a heading by its own outline level."""
    properties = paragraph._p.pPr
    outline = properties.find(qn("w:outlineLvl")) if properties is not None else None
    level = (outline.get(qn("w:val")) or "9") if outline is not None else "9"
    return int(level) + 1 if level in tuple("012345678") else None


class _Lists:
    """The levels of the items of lists, and which are numbered, by the numbering that the document defines."""

    def __init__(self, document: Document) -> None:
        self._abstract: dict[str, str] = {}
        self._formats: dict[tuple[str, str], str] = {}
        part: Any = document.part
        try:
            root = part.numbering_part.element
        except (KeyError, NotImplementedError):
            return
        for number in root.iterchildren(qn("w:num")):
            abstract = number.find(qn("w:abstractNumId"))
            if abstract is not None:
                self._abstract.setdefault(number.get(qn("w:numId")), abstract.get(qn("w:val")))
        for definition in root.iterchildren(qn("w:abstractNum")):
            for level in definition.iterchildren(qn("w:lvl")):
                form = level.find(qn("w:numFmt"))
                if form is not None:
                    key = definition.get(qn("w:abstractNumId")), level.get(qn("w:ilvl"))
                    self._formats.setdefault(key, form.get(qn("w:val")))

    def level_of(self, paragraph: Paragraph, style_name: str) -> tuple[int, bool] | None:
        """The level of a list item, from 0, and whether it is numbered; None for other paragraphs."""
        properties: Any = paragraph._p.pPr
        numbering = properties.numPr if properties is not None else None
        if numbering is None or numbering.numId is None or not numbering.numId.val:
            is_item = style_name.startswith(("list bullet", "list number"))
            return (0, style_name.startswith("list number")) if is_item else None
        level = str(numbering.ilvl.val if numbering.ilvl is not None else 0)
        abstract = self._abstract.get(str(numbering.numId.val), "")
        return int(level), self._formats.get((abstract, level), "bullet") not in ("bullet", "none")


def _read_rows(table: Table) -> list[list[str]]:
    # Reading the cells off each row element: ``row.cells`` takes quadratic time and repeats merged cells.
    rows = [
        [
            TableCell(_read_cell(_Cell(cell, table)), across=cell.grid_span, goes_on=cell.vMerge == "continue")
            for cell in row.tc_lst
        ]
        for row in table._tbl.tr_lst
    ]
    return spread(rows)


def _read_cell(cell: _Cell) -> str:
    return " ".join(
        " ".join(" / ".join(row) for row in _read_rows(block)) if isinstance(block, Table) else block.text
        for block in cell.iter_inner_content()
    )
