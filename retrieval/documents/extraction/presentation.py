"""PPTX: a page a slide, with its title as a heading, its lists, its tables and its notes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER
from pptx.oxml.ns import qn

from retrieval.documents.extraction.archive import check_archive
from retrieval.documents.extraction.decoding import canonical
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread
from retrieval.text.extracted import ExtractedText, ExtractionLimits, leave_out, plain_title

# Shapes that stand about as high are read from left to right.
_SAME_HEIGHT = 300_000
_LISTS = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.VERTICAL_BODY})
_FURNITURE = frozenset({PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER})
_MOST_DEPTH = 20


def extract_presentation(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive(data, filename, limits, program="PowerPoint")
    presentation: Any = pptx.Presentation(io.BytesIO(data))
    writer = MarkdownWriter(filename, limits)
    hidden = []
    for number, slide in enumerate(presentation.slides, start=1):
        writer.begin_page()
        if slide._element.get("show") in ("0", "false"):
            hidden.append(str(number))
            continue
        _write_slide(slide, number, writer)
    title = plain_title(canonical(presentation.core_properties.title or ""))
    if title.casefold() in ("", "powerpoint presentation", "powerpoint-presentatie"):
        title = writer.first_title
    return writer.finish(title, left_out=leave_out("slides", hidden))


def _write_slide(slide: Any, number: int, writer: MarkdownWriter) -> None:
    title = slide.shapes.title
    words = " ".join(title.text_frame.text.split()) if title is not None else ""
    writer.add_heading(words or f"Slide {number}", 1)
    for shape in _in_reading_order(slide.shapes, 0):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_text_frame:
            _write_text(shape, writer)
        elif getattr(shape, "has_table", False):
            writer.add_table(spread([[*_read_cells(row)] for row in shape.table.rows]))
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        writer.add_notes(paragraph.text for paragraph in frame.paragraphs)


def _read_cells(row: Any) -> Iterator[TableCell]:
    for cell in row.cells:
        if not cell.is_spanned:
            yield TableCell(cell.text_frame.text, cell.span_width, cell.span_height)


def _in_reading_order(shapes: Iterable[Any], depth: int) -> Iterator[Any]:
    placed = sorted(shapes, key=lambda shape: ((shape.top or 0) // _SAME_HEIGHT, shape.left or 0))
    for shape in placed:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < _MOST_DEPTH:
            yield from _in_reading_order(shape.shapes, depth + 1)
        elif not (shape.is_placeholder and shape.placeholder_format.type in _FURNITURE):
            yield shape


def _write_text(shape: Any, writer: MarkdownWriter) -> None:
    is_list = shape.is_placeholder and shape.placeholder_format.type in _LISTS
    for paragraph in shape.text_frame.paragraphs:
        properties = paragraph._p.pPr
        marks = {child.tag for child in properties} if properties is not None else set()
        is_numbered = qn("a:buAutoNum") in marks
        is_item = is_numbered or qn("a:buChar") in marks or (is_list and qn("a:buNone") not in marks)
        if is_item:
            writer.add_item(paragraph.text.replace("\v", " "), paragraph.level, is_numbered=is_numbered)
        else:
            writer.add_paragraph(paragraph.text.replace("\v", "\n"))
