"""Convert Word files (DOCX) to Markdown. Content that python-docx skips is first rewritten as paragraphs and tables."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import docx
from docx.document import Document
from docx.oxml import OxmlElement
from docx.oxml import parse_xml as parse_oxml
from docx.oxml.ns import qn
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph

from retrieval.documents.extraction.archive import check_archive_safety, parse_xml
from retrieval.documents.extraction.decoding import decode, make_canonical_text
from retrieval.documents.extraction.html import convert_html, parse_html
from retrieval.documents.extraction.numbering import ParagraphNumbering
from retrieval.documents.extraction.office_xml import (
    collect_embedded_files,
    describe_picture,
    is_blank_or_page_number,
    normalise_office_file,
    qualify_name,
    read_chart,
    read_diagram,
    resolve_alternate_content,
    write_equation,
    write_subscript,
    write_superscript,
)
from retrieval.documents.extraction.symbols import is_symbol_font, show_symbol
from retrieval.documents.extraction.writer import MarkdownWriter, TableCell, spread_merged_cells
from retrieval.text.extracted import ExtractedText, ExtractionLimits, read_declared_title

# Programs other than Word name heading styles in their own language.
_HEADING_STYLE = re.compile(
    r"(?:heading|kop|überschrift|titre|título|titolo|nagłówek|заголовок|标题|標題|見出し) ?([1-9])", re.I
)
# python-docx skips the content of these elements.
_WRAPPERS = tuple(map(qn, ("w:ins", "w:sdt", "w:smartTag", "w:customXml", "w:moveTo", "w:fldSimple", "w:dir", "w:bdo")))
_DELETED = tuple(map(qn, ("w:del", "w:moveFrom")))
_NOTES = ((qn("w:footnoteReference"), "footnotes"), (qn("w:endnoteReference"), "endnotes"))
_TICKED, _EMPTY = "☒", "☐"


def extract_docx(data: bytes, filename: str, media_type: str, limits: ExtractionLimits) -> ExtractedText:
    check_archive_safety(data, filename, limits, program_name="Word")
    document = docx.Document(io.BytesIO(normalise_office_file(data)))
    writer = MarkdownWriter(filename, limits)
    _DocxReader(document, writer).write()
    embedded = collect_embedded_files([document.part], filename, limits)
    return writer.build_extracted_text(
        read_declared_title(make_canonical_text(document.core_properties.title or "")) or writer.first_title,
        members=embedded.member_files,
        left_out=embedded.left_out_parts,
    )


def _list_parts(document: Document, kind: str) -> list[Any]:
    relations = document.part.rels.values()
    return [each.target_part for each in relations if not each.is_external and each.reltype.endswith(f"/{kind}")]


class _DocxReader:
    def __init__(self, document: Document, writer: MarkdownWriter) -> None:
        self._document = document
        self._writer = writer
        numbering: Any = next((part.element for part in _list_parts(document, "numbering")), None)
        self._numbering = ParagraphNumbering(numbering, document.styles.element)
        hidden = document.styles.element.xpath("w:style[w:rPr/w:vanish[not(@w:val) or @w:val='1' or @w:val='true']]")
        self._hidden = {style.get(qn("w:styleId")) for style in hidden}
        self._notes: dict[str, dict[str, str]] = {kind: {} for _, kind in _NOTES}
        for kind, notes in self._notes.items():
            for part in _list_parts(document, kind):
                notes.update(self._read_notes(part))
        # python-docx searches through all styles each time.
        self._styles: dict[str | None, tuple[str, int | None]] = {}

    def write(self) -> None:
        body = self._document.element.body
        self._prepare_markup(body, self._document.part)
        self._has_title = any(self._find_style(paragraph)[0] == "title" for paragraph in self._document.paragraphs)
        self._write_blocks(body)
        for words in self._read_margins():
            self._writer.add_paragraph(words)

    def _read_margins(self) -> Iterator[str]:
        seen: set[str] = set()
        for section in self._document.sections:
            for margin in (
                *(section.first_page_header, section.header, section.even_page_header),
                *(section.first_page_footer, section.footer, section.even_page_footer),
            ):
                if margin.is_linked_to_previous:
                    continue
                self._prepare_markup(margin._element, margin.part)
                for element in margin._element.iter(qn("w:p"), qn("w:tr")):
                    paragraphs = [Paragraph(each, margin).text for each in element.iter(qn("w:p"))]
                    words = " ".join(" ".join(paragraphs).split())
                    if element.tag == qn("w:p") and next(element.iterancestors(qn("w:tr")), None) is not None:
                        continue
                    if words not in seen and not is_blank_or_page_number(words):
                        seen.add(words)
                        yield words

    def _read_notes(self, part: Any) -> Iterator[tuple[str, str]]:
        root: Any = parse_oxml(part.blob)
        self._prepare_markup(root, part)
        for note in root:
            if note.get(qn("w:type")) is None:
                words = " ".join(Paragraph(paragraph, self._document._body).text for paragraph in note.iter(qn("w:p")))
                yield note.get(qn("w:id")) or "", " ".join(words.split())

    def _is_hidden(self, run: Any) -> bool:
        styles = [*run.iterfind(f"{qn('w:rPr')}/{qn('w:rStyle')}")]
        styles += run.getparent().iterfind(f"{qn('w:pPr')}/{qn('w:pStyle')}")
        return any(style.get(qn("w:val")) in self._hidden for style in styles)

    def _find_style(self, paragraph: Paragraph) -> tuple[str, int | None]:
        style_id = paragraph._p.style
        if style_id not in self._styles:
            self._styles[style_id] = _read_style_name_and_level(paragraph.style)
        return self._styles[style_id]

    def _prepare_markup(self, root: Any, part: Any) -> None:
        resolve_alternate_content(root)
        for deleted in list(root.iter(*_DELETED)):
            _remove(deleted)
        _replace_wrappers_with_content(root)
        for run in list(root.iter(qn("w:r"))):
            if (
                _is_run_switch_on(run, "w:vanish")
                or _is_run_switch_on(run, "w:strike")
                or _is_run_switch_on(run, "w:dstrike")
                or self._is_hidden(run)
            ):
                _remove(run)
        for ruby in list(root.iter(qn("w:ruby"))):
            base, reading = (ruby.findall(f"{qn(part)}//{qn('w:t')}") for part in ("w:rubyBase", "w:rt"))
            _replace_with_text_run(
                ruby,
                f"{_join_element_texts(base)} ({_join_element_texts(reading)})"
                if reading
                else _join_element_texts(base),
            )
        # Removing the attribute ``w:type`` turns page and column breaks into line breaks, which separate words.
        for line_break in root.iter(qn("w:br")):
            line_break.attrib.pop(qn("w:type"), None)
        for equation in list(root.iter(qualify_name("m:oMath"))):
            if next(equation.iterancestors(qualify_name("m:oMath")), None) is None:
                equation.addprevious(_make_text_run(write_equation(equation)))
                _remove(equation)
        for wrapper in list(root.iter(qualify_name("m:oMathPara"))):
            _replace_with_children(wrapper, list(wrapper))
        self._write_symbols_and_fields(root)
        self._write_drawings(root, part)
        for paragraph in root.iter(qn("w:p")):
            _mark_superscripts(paragraph)

    def _write_symbols_and_fields(self, root: Any) -> None:
        for symbol in list(root.iter(qn("w:sym"))):
            _replace_with_text_run(
                symbol, show_symbol(symbol.get(qn("w:font"), ""), int(symbol.get(qn("w:char"), "0"), 16))
            )
        for fonts in root.iter(qn("w:rFonts")):
            font = fonts.get(qn("w:ascii"), "")
            for text in fonts.getparent().getparent().iterchildren(qn("w:t")) if is_symbol_font(font) else ():
                text.text = "".join(show_symbol(font, ord(sign)) for sign in text.text or "")
        for tag, kind in _NOTES:
            for reference in list(root.iter(tag)):
                note = self._notes[kind].get(reference.get(qn("w:id")), "")
                properties = reference.getparent().find(qn("w:rPr"))
                if properties is not None:
                    _remove(properties)
                _replace_with_text_run(reference, f" ({note})" if note else "")
        for box in root.iter(qn("w:checkBox")):
            state = next(
                (found for each in ("w:checked", "w:default") if (found := box.find(qn(each))) is not None), None
            )
            is_ticked = state is not None and state.get(qn("w:val"), "1") not in ("0", "false")
            _find_enclosing_run(box).addprevious(_make_text_run(_TICKED if is_ticked else _EMPTY))
        for choices in root.iter(qn("w:ddList")):
            chosen = choices.find(qn("w:result"))
            entries = choices.findall(qn("w:listEntry"))
            at = int(chosen.get(qn("w:val"), "0")) if chosen is not None else 0
            if at < len(entries):
                _find_enclosing_run(choices).addprevious(_make_text_run(entries[at].get(qn("w:val"), "")))

    def _write_drawings(self, root: Any, part: Any) -> None:
        for picture in reversed(list(root.iter(qn("wp:docPr")))):
            if words := describe_picture(picture.get("descr")):
                _put_behind(picture, [_make_paragraph(words)])
        for box in reversed(list(root.iter(qn("w:txbxContent")))):
            _put_behind(box, list(box))
        for diagram in reversed(list(root.iter(qualify_name("dgm:relIds")))):
            if (found := _find_related(part, diagram.get(qualify_name("r:dm")))) is not None:
                _put_behind(diagram, [_make_paragraph(words) for words in read_diagram(parse_xml(found.blob))])
        for chart in reversed(list(root.iter(qualify_name("c:chart")))):
            if (found := _find_related(part, chart.get(qualify_name("r:id")))) is not None:
                title, rows = read_chart(parse_xml(found.blob))
                blocks = [_make_paragraph(title)] if title else []
                _put_behind(chart, [*blocks, *([_make_table(rows)] if rows else [])])

    def _write_blocks(self, body: Any) -> None:
        for element in body:
            if element.tag == qn("w:p"):
                self._write_paragraph(Paragraph(element, self._document._body))
            elif element.tag == qn("w:tbl"):
                self._writer.add_table(self._read_rows(Table(element, self._document._body)))
            elif element.tag == qn("w:altChunk"):
                self._write_embedded_document(_find_related(self._document.part, element.get(qualify_name("r:id"))))

    def _write_paragraph(self, block: Paragraph) -> None:
        counted = self._numbering.number_paragraph(block._p)
        # Checking the element is a hundred times as fast as reading an empty text.
        text = block.text if len(block._p) else ""
        if not text.strip():
            return
        style, level = self._find_style(block)
        if style.startswith("toc ") and text[-1].isdigit():
            return
        level = _read_outline_level(block._p.pPr) or level
        number = counted[1] if counted else ""
        if level is not None:
            self._writer.add_heading(f"{number} {text}".strip(), level + self._has_title)
        elif counted or style.startswith(("list bullet", "list number")):
            is_numbered = not counted and style.startswith("list number")
            self._writer.add_item(text, counted[0] if counted else 0, number="1." if is_numbered else number)
        else:
            self._writer.add_paragraph(text)

    def _read_rows(self, table: Table) -> list[list[str]]:
        # ``row.cells`` repeats merged cells, in quadratic time.
        rows = [
            [TableCell("")] * row.grid_before
            + [
                TableCell(self._read_cell(_Cell(cell, table)), cell.grid_span, goes_on=cell.vMerge == "continue")
                for cell in row.tc_lst
            ]
            for row in table._tbl.tr_lst
        ]
        return spread_merged_cells(rows)

    def _read_cell(self, cell: _Cell) -> str:
        words = []
        for block in cell.iter_inner_content():
            if isinstance(block, Table):
                words.append(" ".join(" / ".join(row) for row in self._read_rows(block)))
            else:
                counted = self._numbering.number_paragraph(block._p)
                words.append(f"{counted[1]} {block.text}".strip() if counted else block.text)
        return " ".join(words)

    def _write_embedded_document(self, part: Any) -> None:
        if part is None:
            return
        filename = str(part.partname).rsplit("/", 1)[-1]
        if "html" in part.content_type:
            root = parse_html(decode(part.blob, filename, html=True), filename)
            self._writer.add_markdown(convert_html(root) if root is not None else "")
        elif "wordprocessingml" in part.content_type:
            _DocxReader(docx.Document(io.BytesIO(normalise_office_file(part.blob))), self._writer).write()
        elif part.content_type.startswith("text/"):
            self._writer.add_paragraph(decode(part.blob, filename))


def _find_related(part: Any, relation: str | None) -> Any:
    found = part.rels.get(relation) if relation else None
    return found.target_part if found is not None and not found.is_external else None


def _replace_wrappers_with_content(root: Any) -> None:
    for wrapper in list(root.iter(*_WRAPPERS)):
        content = wrapper.find(qn("w:sdtContent")) if wrapper.tag == qn("w:sdt") else wrapper
        _replace_with_children(wrapper, list(content) if content is not None else [])


def _replace_with_children(wrapper: Any, children: list[Any]) -> None:
    if wrapper.getparent() is not None:
        for child in children:
            wrapper.addprevious(child)
        _remove(wrapper)


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _replace_with_text_run(element: Any, words: str) -> None:
    text = _make_text_run(words)[0]
    element.addprevious(text)
    _remove(element)


def _find_enclosing_run(element: Any) -> Any:
    return next(element.iterancestors(qn("w:r")), element)


def _join_element_texts(texts: list[Any]) -> str:
    return "".join(text.text or "" for text in texts)


def _is_run_switch_on(run: Any, switch: str) -> bool:
    found = run.find(f"{qn('w:rPr')}/{qn(switch)}")
    return found is not None and found.get(qn("w:val"), "1") not in ("0", "false", "off")


def _make_text_run(words: str) -> Any:
    run, text = OxmlElement("w:r"), OxmlElement("w:t")
    text.text = words
    run.append(text)
    return run


def _make_paragraph(words: str) -> Any:
    paragraph = OxmlElement("w:p")
    paragraph.append(_make_text_run(words))
    return paragraph


def _make_table(rows: list[list[str]]) -> Any:
    table = OxmlElement("w:tbl")
    for row in rows:
        line = OxmlElement("w:tr")
        for words in row:
            cell = OxmlElement("w:tc")
            cell.append(_make_paragraph(words))
            line.append(cell)
        table.append(line)
    return table


def _put_behind(anchor: Any, blocks: list[Any]) -> None:
    paragraph = None
    for paragraph in anchor.iterancestors(qn("w:p")):  # noqa: B007
        pass
    for block in reversed(blocks):
        if paragraph is not None:
            paragraph.addnext(block)


def _mark_superscripts(paragraph: Any) -> None:
    before = ""
    for run in paragraph.iter(qn("w:r")):
        align = run.find(f"{qn('w:rPr')}/{qn('w:vertAlign')}")
        kind = align.get(qn("w:val")) if align is not None else ""
        for text in run.iter(qn("w:t")):
            if kind in ("superscript", "subscript") and text.text:
                text.text = (write_superscript if kind == "superscript" else write_subscript)(before, text.text)
                kind = ""
            before += text.text or ""


def _read_style_name_and_level(style: Any) -> tuple[str, int | None]:
    """Return the name of a style and its level: 0 for a title, 1 to 9 for a heading, None for other text."""
    own = (style.name or "").lower() if style is not None else ""
    for _ in range(10):
        if style is None:
            break
        based_on = (style.name or "").lower()
        if based_on == "title":
            return own, 0
        if match := _HEADING_STYLE.fullmatch(based_on):
            return own, int(match[1])
        if level := _read_outline_level(style.element.find(qn("w:pPr"))):
            return own, level
        style = getattr(style, "base_style", None)
    return own, None


def _read_outline_level(properties: Any) -> int | None:
    outline = properties.find(qn("w:outlineLvl")) if properties is not None else None
    level = (outline.get(qn("w:val")) or "9") if outline is not None else "9"
    return int(level) + 1 if level in tuple("012345678") else None
