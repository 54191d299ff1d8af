"""Small programs that make hostile files; none of the files is kept."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable

# PDF -----------------------------------------------------------------------------------------------------------------


def pdf(objects: dict[int, bytes], trailer: bytes = b"/Root 1 0 R") -> bytes:
    """A PDF file of these objects, with a table of where they stand."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (max(objects) + 1)
    for number in range(1, max(objects) + 1):
        out += b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 65535 f \n"
    out += b"trailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (max(objects) + 1, trailer, table)
    return bytes(out)


def stream(content: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), entries, content)


def page(content: bytes, *, box: bytes = b"0 0 612 792", resources: bytes = b"", **more: bytes) -> dict[int, bytes]:
    """The objects of a file of one page, numbered up to 5."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> %s >> >>"
        % (box, resources),
        4: stream(content),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }


WORDS = b"BT /F1 11 Tf 60 700 Td (The pump hums.) Tj ET\n"


def pdf_nested_forms(levels: int = 12, fan_out: int = 10) -> bytes:
    """Form objects that draw the next one ten times each: ten to the twelfth words in 3 kB."""
    objects = page(WORDS + b"/X0 Do", resources=b"/XObject << /X0 10 0 R >>")
    for level in range(levels):
        last = level == levels - 1
        inner = WORDS if last else b"/X Do " * fan_out
        resources = b"/Font << /F1 5 0 R >>" if last else b"/XObject << /X %d 0 R >>" % (11 + level)
        objects[10 + level] = stream(
            inner, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << %s >>" % resources
        )
    return pdf(objects)


def pdf_endless(levels: int = 8, fan_out: int = 10) -> bytes:
    """Form objects as above around a megabyte that draws nothing: years of a processor's time in 30 MiB of memory."""
    objects = page(WORDS + b"/X0 Do", resources=b"/XObject << /X0 10 0 R >>")
    for level in range(levels):
        resources = b"/XObject << /X %d 0 R >>" % (11 + level)
        objects[10 + level] = stream(
            b"/X Do " * fan_out, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << %s >>" % resources
        )
    nothing = zlib.compress(b"q Q " * 2**18, 9)
    objects[10 + levels] = stream(nothing, b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Filter /FlateDecode")
    return pdf(objects)


def pdf_page_tree_cycle() -> bytes:
    objects = page(WORDS)
    objects[2] = b"<< /Type /Pages /Kids [2 0 R 3 0 R 2 0 R] /Count 1000000 >>"
    return pdf(objects)


def pdf_many_pages(count: int = 100_000) -> bytes:
    objects = page(WORDS)
    objects[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"3 0 R " * count, count)
    return pdf(objects)


def pdf_deflate_bomb(megabytes: int = 400) -> bytes:
    packer = zlib.compressobj(9)
    row = b"BT /F1 11 Tf (The pump hums.) Tj ET\n" * 30_000
    content = b"".join(packer.compress(row) for _ in range(megabytes)) + packer.flush()
    objects = page(b"")
    objects[4] = stream(content, b"/Filter /FlateDecode")
    return pdf(objects)


def pdf_deep_dictionary(depth: int = 200_000) -> bytes:
    objects = page(WORDS)
    objects[6] = b"<< /A " * depth + b">>" * depth
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Extra 6 0 R >>"
    return pdf(objects)


def pdf_outline_cycle() -> bytes:
    objects = page(WORDS)
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>"
    objects[6] = b"<< /First 7 0 R /Last 7 0 R /Count 1 >>"
    objects[7] = b"<< /Title (A) /Parent 6 0 R /Next 7 0 R /First 7 0 R /Dest [3 0 R /Fit] >>"
    return pdf(objects)


# Word ----------------------------------------------------------------------------------------------------------------

_TYPES = (
    b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    b'<Override PartName="/word/document.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    b'<Override PartName="/word/numbering.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.numbering+xml"/>'
    b'<Override PartName="/word/styles.xml" ContentType='
    b'"application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
_RELATIONS = (
    b'<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s"'
    b' Target="%s"/></Relationships>'
)
_W = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: bytes, *, numbering: bytes = b"", more: dict[str, bytes] | None = None, prolog: bytes = b"") -> bytes:
    """A Word file with this body."""
    entries = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELATIONS % (b"officeDocument", b"word/document.xml"),
        "word/document.xml": b'<?xml version="1.0"?>%s<w:document %s><w:body>%s</w:body></w:document>'
        % (prolog, _W, body),
        "word/styles.xml": b'<?xml version="1.0"?><w:styles %s></w:styles>' % _W,
    }
    if numbering:
        entries["word/numbering.xml"] = b'<?xml version="1.0"?><w:numbering %s>%s</w:numbering>' % (_W, numbering)
        entries["word/_rels/document.xml.rels"] = _RELATIONS % (b"numbering", b"numbering.xml")
    return zipped(entries | (more or {}))


def zipped(entries: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def paragraph(words: bytes = b"The pump hums.", properties: bytes = b"") -> bytes:
    return b"<w:p><w:pPr>%s</w:pPr><w:r><w:t>%s</w:t></w:r></w:p>" % (properties, words)


def docx_empty_paragraphs(count: int = 300_000) -> bytes:
    return docx(paragraph() + b"<w:p/>" * count)


def docx_list_numbers(count: int = 20_000) -> bytes:
    numbering = b"".join(b'<w:num w:numId="%d"><w:abstractNumId w:val="0"/></w:num>' % n for n in range(1, count + 1))
    levels = b'<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>'
    items = b"".join(
        paragraph(b"Item", b'<w:numPr><w:ilvl w:val="0"/><w:numId w:val="%d"/></w:numPr>' % n)
        for n in range(1, count + 1)
    )
    return docx(items, numbering=levels + numbering)


def docx_nested_tables(depth: int = 60, width: int = 2) -> bytes:
    body = paragraph()
    for _ in range(depth):
        body = b"<w:tbl><w:tr><w:tc>%s</w:tc>%s</w:tr></w:tbl>" % (body, b"<w:tc><w:p/></w:tc>" * width)
    return docx(body)


def docx_entities() -> bytes:
    inner = b'<!ENTITY a0 "haha">' + b"".join(
        b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, 10)
    )
    return docx(paragraph(b"&a9;"), prolog=b"<!DOCTYPE w:document [%s]>" % inner)


def docx_zip_bomb(megabytes: int = 300) -> bytes:
    return docx(paragraph(), more={"word/media/image.bin": bytes(megabytes << 20)})


def docx_overlapping_entries(count: int = 2_000) -> bytes:
    """A directory of many names for one packed megabyte."""
    whole = docx(paragraph(), more={"a": bytes(1 << 20)})
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        start = archive.start_dir
        offset = archive.getinfo("a").header_offset
        entry = archive.getinfo("a")
    name = b"a"
    record = struct.pack(
        "<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, 8, 0, 33, entry.CRC, entry.compress_size, entry.file_size,
        len(name), 0, 0, 0, 0, 0, offset,
    ) + name  # fmt: skip
    directory = whole[start : whole.rindex(b"PK\x05\x06")] + record * count
    total = directory.count(b"PK\x01\x02")
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, total, total, len(directory), start, 0)
    return whole[:start] + directory + end


def zip_huge_directory(count: int = 300_000) -> bytes:
    """An archive that claims a million files."""
    name = b"word/document.xml"
    record = struct.pack(
        "<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0
    ) + name  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(record) * count, 4, 0)
    return b"PK\x03\x04" + record * count + end


# Spreadsheets, OpenDocument, mails and other archives -----------------------------------------------------------------


def xlsx(sheet: bytes, *, strings: bytes = b"", prolog: bytes = b"") -> bytes:
    """A workbook of one sheet."""
    main = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = b"http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = b"http://schemas.openxmlformats.org/package/2006/"
    kinds = b"application/vnd.openxmlformats-officedocument.spreadsheetml."
    return zipped(
        {
            "[Content_Types].xml": b'<Types xmlns="%scontent-types"><Default Extension="rels" ContentType='
            b'"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
            b'ContentType="%ssheet.main+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType='
            b'"%ssharedStrings+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="%sworksheet+xml"/>'
            b"</Types>" % (package, kinds, kinds, kinds),
            "_rels/.rels": _RELATIONS % (b"officeDocument", b"xl/workbook.xml"),
            "xl/workbook.xml": b'<workbook xmlns="%s" xmlns:r="%s"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
            b"</sheets></workbook>" % (main, relations),
            "xl/_rels/workbook.xml.rels": _RELATIONS % (b"worksheet", b"worksheets/sheet1.xml"),
            "xl/sharedStrings.xml": b'<sst xmlns="%s">%s</sst>' % (main, strings),
            "xl/worksheets/sheet1.xml": b'%s<worksheet xmlns="%s">%s</worksheet>' % (prolog, main, sheet),
        }
    )


def _inline(place: bytes, words: bytes) -> bytes:
    return b'<c r="%s" t="inlineStr"><is><t>%s</t></is></c>' % (place, words)


def xlsx_far_cells() -> bytes:
    """Two cells that are seventeen billion apart."""
    first = b'<row r="1">%s</row>' % _inline(b"A1", b"The pump hums.")
    return xlsx(b"<sheetData>%s<row r='1048576'>%s</row></sheetData>" % (first, _inline(b"XFD1048576", b"far")))


def xlsx_merged_areas(count: int = 100_000) -> bytes:
    areas = b"".join(b'<mergeCell ref="A%d:XFD%d"/>' % (n, n + 1) for n in range(1, 2 * count, 2))
    cell = b'<row r="1">%s</row>' % _inline(b"A1", b"The pump hums.")
    return xlsx(b"<sheetData>%s</sheetData><mergeCells>%s</mergeCells>" % (cell, areas))


def xlsx_many_cells(rows: int = 60_000) -> bytes:
    cells = b"".join(
        b'<row r="%d">%s</row>' % (n, b"".join(b"<c><v>%d</v></c>" % at for at in range(10))) for n in range(1, rows)
    )
    return xlsx(b"<sheetData>%s</sheetData>" % cells)


_ODF = (
    b'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    b'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    b'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)


def odf(kind: bytes, body: bytes, prolog: bytes = b"") -> bytes:
    content = b"%s<office:document-content %s><office:body><office:%s>%s</office:%s></office:body>" % (
        prolog, _ODF, kind, body, kind,
    )  # fmt: skip
    media_type = b"application/vnd.oasis.opendocument." + kind
    return zipped({"mimetype": media_type, "content.xml": content + b"</office:document-content>"})


def ods_repeated_cells() -> bytes:
    cell = b'<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
    row = b'<table:table-row table:number-rows-repeated="1048576">%s</table:table-row>' % cell
    return odf(b"spreadsheet", b'<table:table table:name="S">%s</table:table>' % row)


def odt_nested_lists(depth: int = 5_000) -> bytes:
    inner = b"<text:list><text:list-item>" * depth + b"<text:p>The pump hums.</text:p>"
    return odf(b"text", inner + b"</text:list-item></text:list>" * depth)


def odt_entities() -> bytes:
    return odf(b"text", b"<text:p>&b;</text:p>", b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>')


def rtf_groups(depth: int = 200_000) -> bytes:
    return b"{\\rtf1 The pump hums. " + b"{" * depth + b"}" * depth + b"}"


def rtf_controls(count: int = 300_000) -> bytes:
    return b"{\\rtf1 The pump hums. " + b"\\b\\i0 a|" * count + b"}"


def mail_nested(depth: int = 2_000) -> bytes:
    head = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level) for level in range(depth)
    )
    return b"Subject: Pump\n" + head + b"Content-Type: text/plain\n\nThe pump hums.\n"


def mail_headers(count: int = 100_000) -> bytes:
    to = b", ".join(b'"(a <%d@b>' % n for n in range(count))
    return b"Subject: Pump\nTo: " + to + b"\n\nThe pump hums.\n"


def mail_parts(count: int = 50_000) -> bytes:
    part = b'--b\nContent-Disposition: attachment; filename="a.txt"\n\nhums\n'
    return b'Subject: Pump\nContent-Type: multipart/mixed; boundary="b"\n\n' + part * count + b"--b--\n"


def zip_zeros(megabytes: int = 300) -> bytes:
    return zipped({"a.txt": b"The pump hums.", "b.txt": bytes(megabytes << 20)})


def zip_many_files(count: int = 15_000) -> bytes:
    return zipped({f"{n}.txt": b"hums" for n in range(count)})


def zip_overlapping_entries(count: int = 1_500) -> bytes:
    whole = docx_overlapping_entries(count)
    return whole.replace(b"word/document.xml", b"worm/document.xml")


# HTML ----------------------------------------------------------------------------------------------------------------


def html(body: bytes) -> bytes:
    return b"<!doctype html><html><head><title>T</title></head><body><p>The pump hums.</p>%s</body></html>" % body


def html_empty_elements(count: int = 100_000) -> bytes:
    return html(b"<i></i>" * count)


def html_deep(depth: int = 100_000) -> bytes:
    return html(b"<div>" * depth + b"x")


def html_attributes(count: int = 300_000) -> bytes:
    return html(b"<p " + b" ".join(b"a%d=1" % n for n in range(count)) + b">x</p>")


def html_unclosed_tags(count: int = 100_000) -> bytes:
    return html(b"<a href=x<b " * count)


def html_tables_in_tables(depth: int = 200) -> bytes:
    return html(b"<table><tr><td>x" * depth)


# Markdown ------------------------------------------------------------------------------------------------------------


def markdown_quotes(depth: int = 100_000) -> bytes:
    return b"# T\n\n" + b">" * depth + b" words\n" * 50


def markdown_lines_of_quotes(count: int = 1_000) -> bytes:
    return b"# T\n\nwords\n" + b"".join(b"> " * n + b"a\n" for n in range(count))


def markdown_lists(depth: int = 3_000) -> bytes:
    return b"# T\n\nwords\n\n" + b"".join(b" " * (2 * n) + b"- a\n" for n in range(depth))


def markdown_table(columns: int = 20_000, rows: int = 20) -> bytes:
    row = b"| a " * columns + b"|\n"
    return b"# T\n\nwords\n\n" + row + b"|---" * columns + b"|\n" + row * rows


# Tables and JSON -----------------------------------------------------------------------------------------------------


def csv_columns(columns: int = 100_000, rows: int = 20) -> bytes:
    return b",".join(b"c%d" % n for n in range(columns)) + b"\n" + (b"word," * columns + b"\n") * rows


def csv_field(megabytes: int = 40) -> bytes:
    return b'name,text\npump,"' + b"hum " * (megabytes * 250_000) + b'"\n'


def json_deep(depth: int = 100_000) -> bytes:
    return b'{"words": ' + b"[" * depth + b"]" * depth + b"}"


def json_lines(count: int = 2_000_000) -> bytes:
    return b'{"words": "The pump hums"}\n' + b"1\n" * count


# Text and source code ------------------------------------------------------------------------------------------------


def text_one_line(megabytes: int = 20) -> bytes:
    return b"pump " * (megabytes * 200_000)


def text_one_word(megabytes: int = 5) -> bytes:
    return b"The pump. " + b"a" * (megabytes * 1_000_000)


def text_zeros(megabytes: int = 20) -> bytes:
    return b"The pump hums. " + bytes(megabytes << 20)


def text_utf16_zeros(count: int = 1_000_000) -> bytes:
    return b"\xff\xfe" + b"a\0\0\xd8" * count


def text_full_stops(count: int = 500_000) -> bytes:
    return b"The pump hums" + b"." * count + b" " * count + b"x"


def text_letters_and_hyphens(count: int = 300_000) -> bytes:
    return b"The pump hums. " + b"a-" * count


def rst_adornments(count: int = 100_000) -> bytes:
    return b"Title\n=====\n\n" + b"a\n==\n\n" * count + b".. _x:\n" * count


def c_methods(count: int = 20_000) -> bytes:
    return (b"a " * 140 + b"b(\n") * count


_ZOO: dict[str, tuple[Callable[..., bytes], ...]] = {
    "bomb.pdf": (
        pdf_nested_forms, pdf_endless, pdf_page_tree_cycle, pdf_many_pages, pdf_deflate_bomb,
        pdf_deep_dictionary, pdf_outline_cycle,
    ),
    "bomb.docx": (
        docx_empty_paragraphs, docx_list_numbers, docx_nested_tables, docx_entities, docx_zip_bomb,
        docx_overlapping_entries, zip_huge_directory,
    ),
    "bomb.xlsx": (xlsx_far_cells, xlsx_merged_areas, xlsx_many_cells),
    "bomb.ods": (ods_repeated_cells,),
    "bomb.odt": (odt_nested_lists, odt_entities),
    "bomb.rtf": (rtf_groups, rtf_controls),
    "bomb.eml": (mail_nested, mail_headers, mail_parts),
    "bomb.zip": (zip_zeros, zip_many_files, zip_overlapping_entries),
    "bomb.html": (
        html_empty_elements, html_deep, html_attributes, html_unclosed_tags, html_tables_in_tables,
    ),
    "bomb.md": (
        markdown_quotes, markdown_lines_of_quotes, markdown_lists, markdown_table,
    ),
    "bomb.csv": (csv_columns, csv_field),
    "bomb.json": (json_deep,),
    "bomb.jsonl": (json_lines,),
    "bomb.txt": (
        text_one_line, text_one_word, text_zeros, text_utf16_zeros, text_full_stops, text_letters_and_hyphens,
    ),
    "bomb.rst": (rst_adornments,),
    "bomb.c": (c_methods,),
}  # fmt: skip
BOMBS = {function.__name__: (name, function) for name, functions in _ZOO.items() for function in functions}
"""A name for the file and the function that makes it, by what the file is."""
