"""Convert PowerPoint files (PPTX) to one page per slide."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE, PP_PLACEHOLDER
from pptx.oxml.ns import qn

from retrieval.documents.extraction.archive import check_archive_safety, parse_xml
from retrieval.documents.extraction.decoding import make_canonical_text
from retrieval.documents.extraction.numbering import format_list_number
from retrieval.documents.extraction.office_xml import (
    collect_embedded_files,
    describe_picture,
    normalise_office_file,
    qualify_name,
    read_chart,
    read_diagram,
    resolve_alternate_content,
    write_equation,
    write_subscript,
    write_superscript,
)
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread_merged_cells
from retrieval.text.extracted import ExtractedText, ExtractionLimits, describe_left_out_parts, read_declared_title

# Shapes whose tops differ by at most this (in EMU) are in one row.
_SAME_HEIGHT = 300_000
_LISTS = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT, PP_PLACEHOLDER.VERTICAL_BODY})
_FURNITURE = frozenset({PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER})
_MOST_DEPTH = 20


def extract_presentation(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive_safety(data, filename, limits, program_name="PowerPoint")
    presentation: Any = pptx.Presentation(io.BytesIO(normalise_office_file(data)))
    writer = MarkdownWriter(filename, limits)
    hidden = []
    for number, slide in enumerate(presentation.slides, start=1):
        writer.begin_page()
        if slide._element.get("show") in ("0", "false"):
            hidden.append(str(number))
            continue
        resolve_alternate_content(slide._element)
        _write_slide(slide, number, writer)
    title = read_declared_title(make_canonical_text(presentation.core_properties.title or ""))
    if title.casefold() in ("", "powerpoint presentation", "powerpoint-presentatie"):
        title = writer.first_title
    shown = [slide.part for slide in presentation.slides if slide._element.get("show") not in ("0", "false")]
    embedded = collect_embedded_files(shown, filename, limits)
    left_out = (*describe_left_out_parts("slides", hidden), *embedded.left_out_parts)
    return writer.build_extracted_text(title, members=embedded.member_files, left_out=left_out)


def _write_slide(slide: Any, number: int, writer: MarkdownWriter) -> None:
    title = slide.shapes.title
    words = " ".join(title.text_frame.text.split()) if title is not None else ""
    writer.add_heading(words or f"Slide {number}", 1)
    for shape in _sort_in_reading_order(slide.shapes, 0):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.has_text_frame:
            _write_text(shape, writer)
        elif getattr(shape, "has_table", False):
            writer.add_table(spread_merged_cells([[*_read_cells(row)] for row in shape.table.rows]))
        else:
            _write_graphic(shape, writer)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        writer.add_notes(paragraph.text for paragraph in frame.paragraphs)


def _write_graphic(shape: Any, writer: MarkdownWriter) -> None:
    for properties in shape._element.iter(qn("p:cNvPr")):
        writer.add_paragraph(describe_picture(properties.get("descr")))
    for chart in shape._element.iter(qualify_name("c:chart")):
        title, rows = read_chart(parse_xml(shape.part.related_part(chart.get(qualify_name("r:id"))).blob))
        writer.add_paragraph(title)
        writer.add_table(rows)
    for diagram in shape._element.iter(qualify_name("dgm:relIds")):
        for words in read_diagram(parse_xml(shape.part.related_part(diagram.get(qualify_name("r:dm"))).blob)):
            writer.add_item(words)


def _read_cells(row: Any) -> Iterator[TableCell]:
    for cell in row.cells:
        if not cell.is_spanned:
            words = "\n".join(_read_paragraph(each._p) for each in cell.text_frame.paragraphs)
            yield TableCell(words, cell.span_width, cell.span_height)


def _sort_in_reading_order(shapes: Iterable[Any], depth: int) -> Iterator[Any]:
    placed = sorted(shapes, key=lambda shape: ((shape.top or 0) // _SAME_HEIGHT, shape.left or 0))
    for shape in placed:
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP and depth < _MOST_DEPTH:
            yield from _sort_in_reading_order(shape.shapes, depth + 1)
        elif not (
            (shape.is_placeholder and shape.placeholder_format.type in _FURNITURE)
            or shape._element.find(f"*/{qn('p:cNvPr')}[@hidden='1']") is not None
        ):
            yield shape


def _write_text(shape: Any, writer: MarkdownWriter) -> None:
    is_list = shape.is_placeholder and shape.placeholder_format.type in _LISTS
    counts: dict[int, int] = {}
    for paragraph in shape.text_frame.paragraphs:
        properties = paragraph._p.pPr
        marks = {child.tag: child for child in properties} if properties is not None else {}
        counted = marks.get(qn("a:buAutoNum"))
        is_item = counted is not None or qn("a:buChar") in marks or (is_list and qn("a:buNone") not in marks)
        words = _read_paragraph(paragraph._p)
        level = paragraph.level
        counts = {at: count for at, count in counts.items() if at < level or (at == level and counted is not None)}
        if counted is not None and words.strip():
            counts[level] = counts.get(level, int(counted.get("startAt") or 1) - 1) + 1
        if is_item:
            number = (
                _format_item_number(counted.get("type", ""), counts[level])
                if counted is not None and words.strip()
                else ""
            )
            writer.add_item(words.replace("\v", " "), level, number=number)
        else:
            writer.add_paragraph(words.replace("\v", "\n"))


def _format_item_number(kind: str, count: int) -> str:
    form = {"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman"}
    shown = format_list_number(count, form.get(kind[:7], ""))
    return f"({shown})" if kind.endswith("Both") else f"{shown})" if kind.endswith("ParenR") else f"{shown}."


def _read_paragraph(element: Any) -> str:
    words = ""
    for child in element.iter(qn("a:t"), qn("a:br"), qn("a:tab"), qualify_name("m:oMath")):
        if child.tag == qn("a:br"):
            words += "\v"
        elif child.tag == qualify_name("m:oMath"):
            words += write_equation(child)
        elif next(child.iterancestors(qualify_name("m:oMath")), None) is None:
            properties = child.getparent().find(qn("a:rPr"))
            if properties is not None and properties.get("strike", "noStrike") != "noStrike":
                continue
            raised = int((properties.get("baseline") or "0").rstrip("%")) if properties is not None else 0
            text = child.text or ""
            words += (
                write_superscript(words, text) if raised > 0 else write_subscript(words, text) if raised < 0 else text
            )
    return words
