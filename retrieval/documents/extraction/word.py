"""Word: DOCX and RTF as Markdown, with headings by style or outline level, lists, and tables in their place."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import docx
from docx.document import Document
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph
from striprtf.striprtf import rtf_to_text

from retrieval.documents.extraction.archive import check_archive
from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread, write_markdown_table
from retrieval.exceptions import DocumentRejected
from retrieval.text.extracted import (
    ExtractedText,
    ExtractionLimits,
    Section,
    Span,
    derive_title,
    plain_title,
    too_much_text,
)

_HEADING_STYLE = re.compile(r"heading ([1-9])", re.I)
# Inserted text under review, content controls and smart tags wrap paragraphs and runs that python-docx then passes
# over.
_WRAPPERS = tuple(map(qn, ("w:ins", "w:sdt", "w:smartTag", "w:customXml", "w:moveTo")))


def extract_docx(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive(data, filename, limits, program="Word")
    document = docx.Document(io.BytesIO(data))
    _unwrap(document)
    sections: list[Section] = []
    protected: list[Span] = []
    parts: list[str] = []
    length = 0
    title = ""
    in_list = False
    for block, level in _iterate_blocks(document):
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
    return ExtractedText(
        text="".join(parts) + "\n",
        media_type=media_type,
        title=plain_title(canonical(document.core_properties.title or "")) or title or derive_title(filename),
        sections=tuple(sections),
        protected=tuple(protected),
    )


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


def _iterate_blocks(document: Document) -> Iterator[tuple[str, int]]:
    """Each paragraph and table as Markdown, with a paragraph's heading level or 0. A title stands above all
    headings.
    """
    styles = _Styles(document)
    lists = _Lists(document)
    has_title = any(styles.of(paragraph).name == "title" for paragraph in document.paragraphs)
    for block in document.iter_inner_content():
        if isinstance(block, Table):
            table = write_markdown_table(_read_rows(block))
            if table:
                yield table, 0
            continue
        # An empty one is told by its element: asking for its text takes a hundred times longer.
        text = canonical(block.text).strip() if len(block._p) else ""
        if not text:
            continue
        style = styles.of(block)
        level = _read_outline_level(block) or style.heading_level
        if level is not None:
            yield " ".join(text.split()), level + has_title
        else:
            yield lists.mark(block, style.name) + text, 0


@dataclass(frozen=True, slots=True)
class _Style:
    """``heading_level`` is 0 for a title, 1 to 9 for a heading, by its own name or that of a style it is based on."""

    name: str
    heading_level: int | None


class _Styles:
    """The styles of paragraphs, each looked up once: looking one up goes through all of them."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[str | None, _Style] = {}

    def of(self, paragraph: Paragraph) -> _Style:
        style_id = paragraph._p.style
        if style_id not in self._known:
            self._known[style_id] = self._read(paragraph.style)
        return self._known[style_id]

    def _read(self, style: Any) -> _Style:
        name = (style.name or "").lower() if style is not None else ""
        for _ in range(10):
            if style is None:
                break
            based_on = (style.name or "").lower()
            if based_on == "title":
                return _Style(name, 0)
            if match := _HEADING_STYLE.fullmatch(based_on):
                return _Style(name, int(match[1]))
            style = getattr(style, "base_style", None)
        return _Style(name, None)


def _read_outline_level(paragraph: Paragraph) -> int | None:
    """1 to 9 for a paragraph that is a heading by its own outline level."""
    properties = paragraph._p.pPr
    outline = properties.find(qn("w:outlineLvl")) if properties is not None else None
    level = (outline.get(qn("w:val")) or "9") if outline is not None else "9"
    return int(level) + 1 if level in tuple("012345678") else None


class _Lists:
    """What stands before the items of lists, by the numbering that the document defines."""

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

    def mark(self, paragraph: Paragraph, style_name: str) -> str:
        """The Markdown mark of a list item, indented by its level; empty for other paragraphs."""
        properties: Any = paragraph._p.pPr
        numbering = properties.numPr if properties is not None else None
        if numbering is None or numbering.numId is None or not numbering.numId.val:
            if style_name.startswith("list bullet"):
                return "- "
            return "1. " if style_name.startswith("list number") else ""
        level = str(numbering.ilvl.val if numbering.ilvl is not None else 0)
        abstract = self._abstract.get(str(numbering.numId.val), "")
        is_bullet = self._formats.get((abstract, level), "bullet") in ("bullet", "none")
        return "  " * min(int(level), 8) + ("- " if is_bullet else "1. ")


def _read_rows(table: Table) -> list[list[str]]:
    # Reading the cells off each row element: ``row.cells`` takes quadratic time and repeats merged cells.
    rows = [
        [
            TableCell(_read_cell(_Cell(cell, table)), across=cell.grid_span, goes_on=cell.vMerge == "continue")
            for cell in row.tc_lst
        ]
        for row in table._tbl.tr_lst
    ]
    return [row for row in spread(rows) if any(row)]


def _read_cell(cell: _Cell) -> str:
    texts = [
        " ".join(" / ".join(row) for row in _read_rows(block)) if isinstance(block, Table) else block.text
        for block in cell.iter_inner_content()
    ]
    return canonical(" ".join(" ".join(texts).split())).replace("|", r"\|")


# striprtf gives words alone: what it drops is put among the words, in characters that no text has.
_FIRST_HEADING, _FIRST_LEVEL = 0xE000, 0xE010
_strip: Callable[..., str] = rtf_to_text
_OUTLINE = re.compile(r"\\outlinelevel([0-8])(?!\d)")
# A style that is one of headings, in the style sheet, and a paragraph of a style.
_STYLE = re.compile(r"\{\\s(\d{1,4})(?!\d)([^{}]*)\}")
_HEADING_NAME = re.compile(r"(?:heading|kop|titre) ?([1-9]);$", re.I)
_STYLED = re.compile(r"\\s(\d{1,4})(?!\d)")
_LIST_LEVEL = re.compile(r"\\ilvl([0-8])(?!\d)")
_HEADING = re.compile("([\ue000-\ue008])\\??")
_LEVEL = re.compile("([\ue010-\ue018])\\??")
_ITEM = re.compile(r"\s*(?:(?P<bullet>[•·▪◦o–\-\uf0b7\uf0a7])|\(?(?:\d{1,3}|[a-z])[.)])\t(?P<words>.*)")
_TITLE = re.compile(r"\{\\title ([^{}\\]{1,300})\}")


def extract_rtf(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    source = data.decode("latin-1")
    title = _TITLE.search(source)
    if not source.rstrip("\0 \r\n").endswith("}"):
        raise DocumentRejected(f"{filename} is damaged, its end is missing: save it again in its program.")
    levels = dict(_read_heading_styles(source))
    source = _OUTLINE.sub(lambda match: f"{match[0]}\\u{_FIRST_HEADING + int(match[1])}?", source)
    source = _LIST_LEVEL.sub(lambda match: f"{match[0]}\\u{_FIRST_LEVEL + int(match[1])}?", source)
    source = _STYLED.sub(
        lambda match: f"{match[0]}\\u{_FIRST_HEADING + levels[match[1]]}?" if match[1] in levels else match[0], source
    )
    writer = MarkdownWriter(filename, limits)
    rows: list[list[str]] = []
    for line in canonical(_strip(source, errors="replace")).split("\n"):
        headings, level = _HEADING.findall(line), _LEVEL.search(line)
        words = _HEADING.sub("", _LEVEL.sub("", line))
        if words.rstrip().endswith("|"):
            rows.append(words.rstrip()[:-1].split("|"))
            continue
        writer.add_table(rows)
        rows = []
        if headings and words.strip():
            # What the paragraph says comes behind what its style says.
            writer.add_heading(words, ord(headings[-1]) - _FIRST_HEADING + 1)
        elif item := _ITEM.fullmatch(words):
            depth = ord(level[1]) - _FIRST_LEVEL if level else 0
            writer.add_item(item["words"], depth, is_numbered=item["bullet"] is None)
        else:
            writer.add_paragraph(words)
    writer.add_table(rows)
    heading_1 = next((section.title for section in writer.sections if section.level == 1), "")
    return writer.finish(
        media_type=media_type,
        title=plain_title(canonical(title[1])) if title else heading_1 or derive_title(filename),
    )


def _read_heading_styles(source: str) -> Iterator[tuple[str, int]]:
    """The numbers of the styles of headings with their levels, from 0."""
    for style in _STYLE.finditer(source):
        if level := _OUTLINE.search(style[2]):
            yield style[1], int(level[1])
        elif named := _HEADING_NAME.search(style[2]):
            yield style[1], int(named[1]) - 1
