"""Small programs that make hostile files; none of the files is kept."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass


def pdf(objects: dict[int, bytes], trailer: bytes = b"/Root 1 0 R") -> bytes:
    """Return a PDF file of these objects, with a cross-reference table."""
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
    """Return the objects of a file of one page, numbered up to 5."""
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [%s] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> %s >> >>"
        % (box, resources),
        4: stream(content),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }


WORDS = b"BT /F1 11 Tf 60 700 Td (The pump hums.) Tj ET\n"


def pdf_nested_forms(levels: int = 12) -> bytes:
    """Form objects that draw the next one ten times each: ten to the twelfth words in 3 kB."""
    return _nested_forms(levels - 1, WORDS, b"/Resources << /Font << /F1 5 0 R >> >>")


def pdf_endless(levels: int = 8) -> bytes:
    """Return nested form objects around a megabyte without drawings: years of processor time in 30 MiB of memory."""
    return _nested_forms(levels, zlib.compress(b"q Q " * 2**18, 9), b"/Filter /FlateDecode")


def _nested_forms(levels: int, innermost: bytes, entries: bytes) -> bytes:
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] "
    objects = page(WORDS + b"/X0 Do", resources=b"/XObject << /X0 10 0 R >>")
    for level in range(levels):
        objects[10 + level] = stream(b"/X Do " * 10, form + b"/Resources << /XObject << /X %d 0 R >> >>" % (11 + level))
    objects[10 + levels] = stream(innermost, form + entries)
    return pdf(objects)


def pdf_deflate_bomb(megabytes: int = 400) -> bytes:
    packer = zlib.compressobj(9)
    row = b"BT /F1 11 Tf (The pump hums.) Tj ET\n" * 30_000
    content = b"".join(packer.compress(row) for _ in range(megabytes)) + packer.flush()
    objects = page(b"")
    objects[4] = stream(content, b"/Filter /FlateDecode")
    return pdf(objects)


def pdf_outline_cycle(_size: int = 0) -> bytes:
    objects = page(WORDS)
    objects[1] = b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>"
    objects[6] = b"<< /First 7 0 R /Last 7 0 R /Count 1 >>"
    objects[7] = b"<< /Title (A) /Parent 6 0 R /Next 7 0 R /First 7 0 R /Dest [3 0 R /Fit] >>"
    return pdf(objects)


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
    """Return a Word file with this body."""
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


def docx_nested_tables(depth: int) -> bytes:
    body = paragraph()
    for _ in range(depth):
        body = b"<w:tbl><w:tr><w:tc>%s</w:tc>%s</w:tr></w:tbl>" % (body, b"<w:tc><w:p/></w:tc>" * 2)
    return docx(body)


def docx_entities(_size: int = 0) -> bytes:
    inner = b'<!ENTITY a0 "haha">' + b"".join(
        b'<!ENTITY a%d "%s">' % (level, b"&a%d;" % (level - 1) * 10) for level in range(1, 10)
    )
    return docx(paragraph(b"&a9;"), prolog=b"<!DOCTYPE w:document [%s]>" % inner)


def docx_overlapping_entries(count: int = 2_000) -> bytes:
    """Return a directory of many names for one packed megabyte."""
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
    """Return an archive that claims a million files."""
    name = b"word/document.xml"
    record = struct.pack(
        "<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0
    ) + name  # fmt: skip
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, len(record) * count, 4, 0)
    return b"PK\x03\x04" + record * count + end


def xlsx(sheet: bytes, *, strings: bytes = b"", prolog: bytes = b"") -> bytes:
    """Return a workbook of one sheet."""
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


def xlsx_far_cells(_size: int = 0) -> bytes:
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


def ods_repeated_cells(_size: int = 0) -> bytes:
    cell = b'<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>'
    row = b'<table:table-row table:number-rows-repeated="1048576">%s</table:table-row>' % cell
    return odf(b"spreadsheet", b'<table:table table:name="S">%s</table:table>' % row)


def mail_nested(depth: int = 2_000) -> bytes:
    head = b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (level, level) for level in range(depth)
    )
    return b"Subject: Pump\n" + head + b"Content-Type: text/plain\n\nThe pump hums.\n"


def html(body: bytes) -> bytes:
    return b"<!doctype html><html><head><title>T</title></head><body><p>The pump hums.</p>%s</body></html>" % body


def markdown_table(columns: int) -> bytes:
    row = b"| a " * columns + b"|\n"
    return b"# T\n\nwords\n\n" + row + b"|---" * columns + b"|\n" + row * 20


def rst_adornments(count: int) -> bytes:
    return b"Title\n=====\n\n" + b"a\n==\n\n" * count + b".. _x:\n" * count


def mail_headers(count: int) -> bytes:
    to = b", ".join(b'"(a <%d@b>' % n for n in range(count))
    return b"Subject: Pump\nTo: " + to + b"\n\nThe pump hums.\n"


def mail_parts(count: int) -> bytes:
    part = b'--b\nContent-Disposition: attachment; filename="a.txt"\n\nhums\n'
    return b'Subject: Pump\nContent-Type: multipart/mixed; boundary="b"\n\n' + part * count + b"--b--\n"


@dataclass(frozen=True)
class Bomb:
    """`make(size)` is a hostile file of this kind; of the size `small` it is as bad, for a suite that is quick."""

    kind: str
    make: Callable[[int], bytes]
    size: int = 0
    small: int = 0

    @property
    def file_name(self) -> str:
        return f"bomb.{self.kind}"

    def made(self, *, small: bool = False) -> bytes:
        return self.make(self.small if small and self.small else self.size)


BOMBS = {
    "pdf_nested_forms": Bomb("pdf", pdf_nested_forms, 12),
    "pdf_endless": Bomb("pdf", pdf_endless, 8),
    "pdf_page_tree_cycle": Bomb(
        "pdf",
        lambda n: pdf(page(WORDS) | {2: b"<< /Type /Pages /Kids [2 0 R 3 0 R 2 0 R] /Count %d >>" % n}),
        1_000_000,
    ),
    "pdf_many_pages": Bomb(
        "pdf",
        lambda n: pdf(page(WORDS) | {2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b"3 0 R " * n, n)}),
        100_000,
    ),
    "pdf_deflate_bomb": Bomb("pdf", pdf_deflate_bomb, 400, 40),
    "pdf_deep_dictionary": Bomb(
        "pdf",
        lambda n: pdf(
            page(WORDS) | {1: b"<< /Type /Catalog /Pages 2 0 R /Extra 6 0 R >>", 6: b"<< /A " * n + b">>" * n}
        ),
        200_000,
    ),
    "pdf_outline_cycle": Bomb("pdf", pdf_outline_cycle),
    "docx_empty_paragraphs": Bomb("docx", docx_empty_paragraphs, 300_000, 30_000),
    "docx_list_numbers": Bomb("docx", docx_list_numbers, 20_000, 2_000),
    "docx_nested_tables": Bomb("docx", docx_nested_tables, 60),
    "docx_entities": Bomb("docx", docx_entities),
    "docx_zip_bomb": Bomb("docx", lambda n: docx(paragraph(), more={"word/media/image.bin": bytes(n << 20)}), 300, 50),
    "docx_overlapping_entries": Bomb("docx", docx_overlapping_entries, 2_000),
    "zip_huge_directory": Bomb("docx", zip_huge_directory, 300_000, 30_000),
    "xlsx_far_cells": Bomb("xlsx", xlsx_far_cells),
    "xlsx_merged_areas": Bomb("xlsx", xlsx_merged_areas, 100_000, 300),
    "xlsx_many_cells": Bomb("xlsx", xlsx_many_cells, 60_000, 2_000),
    "ods_repeated_cells": Bomb("ods", ods_repeated_cells),
    "odt_nested_lists": Bomb(
        "odt",
        lambda n: odf(
            b"text",
            b"<text:list><text:list-item>" * n
            + b"<text:p>The pump hums.</text:p>"
            + b"</text:list-item></text:list>" * n,
        ),
        5_000,
    ),
    "odt_entities": Bomb(
        "odt",
        lambda _: odf(b"text", b"<text:p>&b;</text:p>", b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>'),
    ),
    "rtf_groups": Bomb("rtf", lambda n: b"{\\rtf1 The pump hums. " + b"{" * n + b"}" * n + b"}", 200_000, 50_000),
    "rtf_controls": Bomb("rtf", lambda n: b"{\\rtf1 The pump hums. " + b"\\b\\i0 a|" * n + b"}", 300_000, 50_000),
    "mail_nested": Bomb("eml", mail_nested, 2_000, 1_000),
    "mail_headers": Bomb("eml", mail_headers, 100_000, 20_000),
    "mail_parts": Bomb("eml", mail_parts, 50_000, 1_000),
    "zip_zeros": Bomb("zip", lambda n: zipped({"a.txt": b"The pump hums.", "b.txt": bytes(n << 20)}), 300, 50),
    "zip_many_files": Bomb("zip", lambda n: zipped({f"{each}.txt": b"hums" for each in range(n)}), 15_000, 3_000),
    "zip_overlapping_entries": Bomb(
        "zip", lambda n: docx_overlapping_entries(n).replace(b"word/document.xml", b"worm/document.xml"), 1_500
    ),
    "html_empty_elements": Bomb("html", lambda n: html(b"<i></i>" * n), 100_000, 20_000),
    "html_deep": Bomb("html", lambda n: html(b"<div>" * n + b"x"), 100_000),
    "html_attributes": Bomb(
        "html", lambda n: html(b"<p " + b" ".join(b"a%d=1" % each for each in range(n)) + b">x</p>"), 300_000, 100_000
    ),
    "html_unclosed_tags": Bomb("html", lambda n: html(b"<a href=x<b " * n), 100_000),
    "html_tables_in_tables": Bomb("html", lambda n: html(b"<table><tr><td>x" * n), 200),
    "markdown_quotes": Bomb("md", lambda n: b"# T\n\n" + b">" * n + b" words\n" * 50, 100_000),
    "markdown_lines_of_quotes": Bomb(
        "md", lambda n: b"# T\n\nwords\n" + b"".join(b"> " * each + b"a\n" for each in range(n)), 1_000, 400
    ),
    "markdown_lists": Bomb(
        "md", lambda n: b"# T\n\nwords\n\n" + b"".join(b" " * (2 * each) + b"- a\n" for each in range(n)), 3_000, 600
    ),
    "markdown_table": Bomb("md", markdown_table, 20_000, 2_000),
    "csv_columns": Bomb(
        "csv",
        lambda n: b",".join(b"c%d" % each for each in range(n)) + b"\n" + (b"word," * n + b"\n") * 20,
        100_000,
        20_000,
    ),
    "csv_field": Bomb("csv", lambda n: b'name,text\npump,"' + b"hum " * (n * 250_000) + b'"\n', 40, 12),
    "json_deep": Bomb("json", lambda n: b'{"words": ' + b"[" * n + b"]" * n + b"}", 100_000),
    "json_lines": Bomb("jsonl", lambda n: b'{"words": "The pump hums"}\n' + b"1\n" * n, 2_000_000, 60_000),
    "text_one_line": Bomb("txt", lambda n: b"pump " * (n * 200_000), 20, 1),
    "text_one_word": Bomb("txt", lambda n: b"The pump. " + b"a" * (n * 1_000_000), 5, 1),
    "text_zeros": Bomb("txt", lambda n: b"The pump hums. " + bytes(n << 20), 20, 4),
    "text_utf16_zeros": Bomb("txt", lambda n: b"\xff\xfe" + b"a\0\0\xd8" * n, 1_000_000, 200_000),
    "text_full_stops": Bomb("txt", lambda n: b"The pump hums" + b"." * n + b" " * n + b"x", 500_000, 100_000),
    "text_letters_and_hyphens": Bomb("txt", lambda n: b"The pump hums. " + b"a-" * n, 300_000),
    "rst_adornments": Bomb("rst", rst_adornments, 100_000, 4_000),
    "c_methods": Bomb("c", lambda n: (b"a " * 140 + b"b(\n") * n, 20_000, 1_000),
}
